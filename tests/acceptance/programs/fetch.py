# SPDX-License-Identifier: MIT
"""Fetches a page again and again, and says what came. usage: fetch HOST:PORT"""

import http.client
import pathlib
import sys
import time

pathlib.Path("/tmp/ready").touch()
while True:
    connection = http.client.HTTPConnection(sys.argv[1], timeout=3)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        print(answer.status, answer.read(80), flush=True)
    except OSError as error:
        print("failed", error, flush=True)
    finally:
        connection.close()
    time.sleep(0.7)
