# SPDX-License-Identifier: MIT
"""Accepts every connection and answers none, or each second one alone. usage: mute [--every-second]"""

import pathlib
import socket
import sys

SERVER = socket.create_server(("0.0.0.0", 8080))
pathlib.Path("/tmp/ready").touch()
HELD = []
while True:
    client, _ = SERVER.accept()
    HELD.append(client)
    if "--every-second" in sys.argv and len(HELD) % 2:
        client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    del HELD[:-50]
