# SPDX-License-Identifier: MIT
"""The fake API over TLS, with a certificate made for the run: credentials never travel without it."""

from __future__ import annotations

import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.support import fake_api
from tests.support.require import require_programs


@dataclass(frozen=True)
class Authority:
    """A self-signed server certificate for localhost, its key, and the folder that holds both."""

    folder: tempfile.TemporaryDirectory[str]

    @property
    def certificate(self) -> Path:
        """What a client trusts."""
        return Path(self.folder.name, "server.crt")

    @property
    def key(self) -> Path:
        """The certificate's key."""
        return Path(self.folder.name, "server.key")


@cache
def authority() -> Authority:
    """The certificate of this run."""
    require_programs("unit", "openssl")
    made = Authority(tempfile.TemporaryDirectory())
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    subprocess.run(
        [*command, *names, "-keyout", made.key, "-out", made.certificate], check=True, capture_output=True
    )
    return made


@contextmanager
def serve_tls(api: fake_api.FakeApi, *, client_certificate: bool = False) -> Iterator[str]:
    """Run the server until the block ends; its URL. May demand a client certificate (any of ours)."""
    made = authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    if client_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(made.certificate)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust us ends the handshake; its test says the rest."""

    http = Server(("127.0.0.1", 0), fake_api._handler(api))
    http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
