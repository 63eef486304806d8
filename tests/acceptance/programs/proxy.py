# SPDX-License-Identifier: MIT
"""What a mesh's sidecar does to a pod: it listens beside the process and calls in its place.

usage: proxy LISTEN_PORT TARGET_HOST:PORT
"""

import pathlib
import socket
import sys
import threading


def copy(source: socket.socket, target: socket.socket) -> None:
    """One direction, to its end."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client: socket.socket) -> None:
    """One connection through."""
    host, _, port = sys.argv[2].rpartition(":")
    with client:
        try:
            onward = socket.create_connection((host, int(port)), timeout=3)
        except OSError:
            return
        with onward:
            back = threading.Thread(target=copy, args=(onward, client), daemon=True)
            back.start()
            copy(client, onward)
            back.join()


if __name__ == "__main__":
    listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
    pathlib.Path("/tmp/ready").touch()
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve, args=(accepted,), daemon=True).start()
