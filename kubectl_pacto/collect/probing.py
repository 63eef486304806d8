# SPDX-License-Identifier: MIT
"""Asks a target's own Service ports what they speak and how they are; opt-in.

Where it connects is never a contract's choice: only the cluster IPs of the Pacto's own Service, on ports
of that Service. Bounded in bytes, time and number; redirects are answers like any other.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from kubectl_pacto import __version__
from kubectl_pacto.collect.live import LiveCluster
from kubectl_pacto.model.contract import Binding, Contract
from kubectl_pacto.model.kube import Service, ServicePort
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.probe import HttpAnswer, PortKey, Protocol
from kubectl_pacto.observe.capability import find_metrics
from kubectl_pacto.observe.protocol import PREFACE, agree, classify

PREFACE_SECONDS: Final = 2.0
PREFACE_BYTES: Final = 64
HTTP_SECONDS: Final = 5.0
# asks for nothing, and changes nothing
PLAIN: Final = b"OPTIONS * HTTP/1.1\r\nHost: pacto\r\nConnection: close\r\n\r\n"
BODY_BYTES: Final = 4096
HTTP_BYTES: Final = 32 << 10
AT_ONCE: Final = 4
Connect = Callable[[tuple[str, int], float], socket.socket]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: protocols and health, and metrics."""

    probing: bool = True
    metrics: bool = False

    @property
    def anything(self) -> bool:
        """Whether there is anything to probe."""
        return self.probing or self.metrics


class PortProber:
    """Used by all workers; `connect` is for tests, which have no cluster IPs."""

    def __init__(
        self,
        wanted: Wanted | None = None,
        connect: Connect = socket.create_connection,
        at_once: int = AT_ONCE,
    ) -> None:
        self._wanted = wanted or Wanted()
        self._connect = connect
        self._free = threading.BoundedSemaphore(at_once)

    def probe(self, cluster: LiveCluster, pacto: Pacto, contract: Contract) -> None:
        """Add what the ports of a Pacto's Service answer now to the cluster's probes."""
        service = cluster.service(pacto.namespace, pacto.service) if pacto.service else None
        if not isinstance(service, Service):
            return
        protocols: Any = cluster.probes.protocols
        answers: Any = cluster.probes.http
        address = probed_address(service)
        for number in _interface_ports(contract, pacto, service) if self._wanted.probing else ():
            key: PortKey = service.namespace, service.name, number
            protocols.pop(key, None)
            if address:
                with self._free:
                    protocols[key] = self.protocol(address, number)
        for number, path in self._paths(cluster, pacto, contract, service):
            where = (service.namespace, service.name, number), path
            answers.pop(where, None)
            if address:
                host = f"{service.name}.{service.namespace}.svc:{number}"
                with self._free:
                    answers[where] = self.get(address, number, host, path)

    def _paths(
        self, cluster: LiveCluster, pacto: Pacto, contract: Contract, service: Service
    ) -> Iterator[tuple[int, str]]:
        if self._wanted.probing:
            yield from _health_paths(contract, pacto, service)
        if self._wanted.metrics:
            yield from _metrics_paths(cluster, contract, pacto, service)

    def protocol(self, address: str, port: int) -> Protocol:
        """What a port speaks, asked twice; NONE where it does not answer, or not alike.

        A server may answer the preface in a way that is no HTTP and speak HTTP/1 all the same: `other` is an
        accusation, so it is only said of a port that answers a request of HTTP/1 no better.
        """
        first = self._preface(address, port)
        found = first if first is Protocol.NONE else agree(first, self._preface(address, port))
        if found is not Protocol.OTHER:
            return found
        plain = classify(self._talk((address, port), PLAIN, PREFACE_SECONDS, PREFACE_BYTES))
        return Protocol.HTTP1 if plain is Protocol.HTTP1 else found

    def _preface(self, address: str, port: int) -> Protocol:
        return classify(self._talk((address, port), PREFACE, PREFACE_SECONDS, PREFACE_BYTES))

    def get(self, address: str, port: int, host: str, path: str) -> HttpAnswer:
        """The answer to a GET; a code of None when there was none."""
        safe = quote(path, safe="/%?&=:@!$'()*+,;~-._")
        request = (
            f"GET {safe} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: pacto-operator/{__version__}\r\n"
            "Accept: */*\r\nConnection: close\r\n\r\n"
        )
        return parse_answer(self._talk((address, port), request.encode("ascii"), HTTP_SECONDS, HTTP_BYTES))

    def _talk(self, where: tuple[str, int], words: bytes, seconds: float, limit: int) -> bytes:
        """What comes back within a time and up to a size; a part of it where it ends badly."""
        deadline = time.monotonic() + seconds
        found = b""
        try:
            with self._connect(where, seconds) as stream:
                stream.sendall(words)
                while len(found) < limit and (left := deadline - time.monotonic()) > 0:
                    stream.settimeout(left)
                    piece = stream.recv(limit - len(found))
                    found += piece
                    if not piece or (limit == PREFACE_BYTES and len(found) >= 9):
                        break
        except OSError:
            pass
        return found


class _Answered:
    """What http.client reads an answer from."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, mode: str) -> io.BytesIO:  # noqa: ARG002 - a socket's shape
        """The bytes as a file."""
        return io.BytesIO(self._content)


def parse_answer(content: bytes) -> HttpAnswer:
    """An HTTP answer from its bytes, whole or cut off."""
    response = http.client.HTTPResponse(_Answered(content))  # type: ignore[arg-type]
    try:
        response.begin()
        try:
            body = response.read(BODY_BYTES)
        except http.client.IncompleteRead as error:
            body = error.partial[:BODY_BYTES]
        kind = response.headers.get("Content-Type", "")
    except (http.client.HTTPException, ValueError, OSError):
        return HttpAnswer(None)
    finally:
        response.close()
    return HttpAnswer(response.status, kind, body.decode("utf-8", "replace"))


def probed_address(service: Service) -> str:
    """The cluster IP to probe; empty for a Service that has none, or whose endpoints nobody selects."""
    if service.type == "ExternalName" or not service.selector:
        return ""
    for address in service.cluster_ips:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            continue
        if not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast):
            return str(parsed)
    return ""


def _interface_ports(contract: Contract, pacto: Pacto, service: Service) -> list[int]:
    names = {item.name for item in contract.interfaces}
    ports = [service.port(wanted) for name, wanted in pacto.interfaces if name in names]
    return sorted({port.number for port in ports if port is not None and port.protocol == "TCP"})


def _bound(
    kind: str, contract: Contract, pacto: Pacto, service: Service
) -> Iterator[tuple[Binding, ServicePort]]:
    """Where a capability of a kind is bound."""
    for item in contract.capabilities:
        binding = item.binding
        if item.type != kind or binding is None or binding.type != "http":
            continue
        wanted = pacto.port_bindings.get(binding.interface)
        port = None if wanted is None else service.port(wanted)
        if port is not None and port.protocol == "TCP":
            yield binding, port


def _health_paths(contract: Contract, pacto: Pacto, service: Service) -> Iterator[tuple[int, str]]:
    for binding, port in _bound("health", contract, pacto, service):
        yield port.number, binding.path if binding.path.startswith("/") else f"/{binding.path}"


def _metrics_paths(
    cluster: LiveCluster, contract: Contract, pacto: Pacto, service: Service
) -> Iterator[tuple[int, str]]:
    """Where metrics are said to be, as far as that is a port of the very Service."""
    ports = {port.number for port in service.ports if port.protocol == "TCP"}
    for binding, port in _bound("metrics", contract, pacto, service):
        found = find_metrics(cluster, service, port, binding.path)
        if found is not None and found[1] in ports:
            yield found[1], found[2]
