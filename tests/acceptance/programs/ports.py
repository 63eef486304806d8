# SPDX-License-Identifier: MIT
"""Listens on many ports at once. usage: ports FIRST COUNT"""

import pathlib
import socket
import sys
import time

FIRST, COUNT = int(sys.argv[1]), int(sys.argv[2])
HELD = [socket.create_server(("0.0.0.0", FIRST + number)) for number in range(COUNT)]
pathlib.Path("/tmp/ready").touch()
while True:
    time.sleep(3600)
