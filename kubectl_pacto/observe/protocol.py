# SPDX-License-Identifier: MIT
"""What a port speaks, from the bytes it answered to an HTTP/2 preface. Bytes in, a word out."""

from __future__ import annotations

from typing import Final

from kubectl_pacto.model.probe import Protocol

# The client's connection preface with an empty SETTINGS frame: what `collect` sends.
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_FRAME_HEADER: Final = 9
_SETTINGS: Final = 4
_TLS_RECORDS: Final = (0x15, 0x16)


def classify(answer: bytes) -> Protocol:
    """The protocol of the first bytes that came back; NONE for none.

    A cut answer is judged by what is there: a first frame without its type byte is no SETTINGS.
    """
    if not answer:
        return Protocol.NONE
    if answer.startswith(b"HTTP/1."):
        return Protocol.HTTP1
    if len(answer) >= 2 and answer[0] in _TLS_RECORDS and answer[1] == 3:
        return Protocol.TLS
    if len(answer) >= _FRAME_HEADER and answer[3] == _SETTINGS and _is_settings(answer):
        return Protocol.HTTP2
    return Protocol.OTHER


def _is_settings(answer: bytes) -> bool:
    """Whether a frame header that says SETTINGS is one: stream 0, whole settings of six bytes."""
    length = int.from_bytes(answer[:3], "big")
    stream = int.from_bytes(answer[5:9], "big") & 0x7FFFFFFF
    return stream == 0 and length % 6 == 0


def agree(first: Protocol, second: Protocol) -> Protocol:
    """What two answers on two connections say together: nothing, if they differ."""
    return first if first is second else Protocol.NONE
