# SPDX-License-Identifier: MIT
"""What active probes of Service ports answered, as plain data: made by `collect` or read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kubectl_pacto.model.fields import Fields

PortKey = tuple[str, str, int]
_KEYS: Final = ("namespace", "service", "port", "protocol", "http")
_HTTP_KEYS: Final = ("path", "code", "contentType", "body")


class Protocol(StrEnum):
    """What a Service port answered to an HTTP/2 preface; NONE is no answer."""

    HTTP1 = "http1"
    HTTP2 = "http2"
    TLS = "tls"
    OTHER = "other"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a GET of a path: a status code, None when nothing answered; body cut to 4 KiB."""

    code: int | None
    content_type: str = ""
    body: str = ""


@dataclass(frozen=True, slots=True)
class Probes:
    """Answers by (namespace, service, port), those to a GET also by path. Empty: probing was off."""

    enabled: bool = False
    protocols: Mapping[PortKey, Protocol] = field(default_factory=dict)
    http: Mapping[tuple[PortKey, str], HttpAnswer] = field(default_factory=dict)


def decode_probe(fields: Fields) -> tuple[PortKey, Protocol | None, str, HttpAnswer | None]:
    """One entry of a probe results file: port, protocol, and path and answer of a GET if any.

    Raises MalformedObject naming the field, if one has the wrong shape or is none of these: the file is
    written by hand, and what a slip names would count as not probed.
    """
    _refuse_others(fields, _KEYS)
    key = (fields.required_text("namespace"), fields.required_text("service"), fields.port("port"))
    protocol = fields.choice("protocol", Protocol, Protocol.NONE) if "protocol" in fields else None
    http = fields.optional_child("http")
    if http is None:
        return key, protocol, "", None
    _refuse_others(http, _HTTP_KEYS)
    code = http.optional_int("code")
    if code is not None and not 100 <= code <= 599:
        raise http.fail("code", f"must be an HTTP status from 100 to 599 (it is {code})")
    answer = HttpAnswer(code, http.text("contentType"), http.text("body"))
    return key, protocol, http.text("path") or "/", answer


def _refuse_others(fields: Fields, known: tuple[str, ...]) -> None:
    for name in fields.names():
        if name not in known:
            raise fields.fail(name, f"is no field of a probe result: {', '.join(known)} are")
