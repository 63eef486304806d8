# SPDX-License-Identifier: MIT
"""A registry over TLS: verified, read in pieces, and given up in time."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubectl_pacto.collect import registry as module
from kubectl_pacto.collect.registry import Registry
from kubectl_pacto.collect.registry_errors import RegistryUnreachable
from kubectl_pacto.model.ociref import OciRef
from tests.support.tls_api import authority

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE = b"1000\r\n" + b"x" * 4096 + b"\r\n"


@contextmanager
def registry(*pieces: bytes, drip: bool = False) -> Iterator[OciRef]:
    """Who answers one connection with these pieces, then drips or ends it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority().certificate, authority().key)
    stop = threading.Event()

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            plain, _ = listener.accept()
            with context.wrap_socket(plain, server_side=True) as stream:
                stream.recv(4096)
                for piece in pieces:
                    stream.sendall(piece)
                while drip and not stop.wait(0.02):
                    stream.sendall(b"1\r\nx\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield OciRef(f"localhost:{listener.getsockname()[1]}", "shop", "1.0.0")
        finally:
            stop.set()
            thread.join(5)


def trusting() -> ssl.SSLContext:
    """A client's context that knows the test's authority."""
    return ssl.create_default_context(cafile=str(authority().certificate))


def test_an_answer_in_pieces_is_read_whole() -> None:
    with registry(HEAD, *[PIECE] * 100, b"0\r\n\r\n") as ref:
        assert Registry(ref, context=trusting()).blob("sha256:0", 1 << 20) == b"x" * 409600


def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    with registry(HEAD, b"0\r\n\r\n") as ref, pytest.raises(RegistryUnreachable, match="certificate verify"):
        Registry(ref).manifest("1.0.0")


def test_drops_over_tls_have_the_same_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.3)
    with registry(HEAD, drip=True) as ref:
        began = time.monotonic()
        with pytest.raises(RegistryUnreachable):
            Registry(ref, context=trusting()).manifest("1.0.0")
        assert time.monotonic() - began < 5
