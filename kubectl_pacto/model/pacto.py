# SPDX-License-Identifier: MIT
"""The Pacto resource: what to check, and what its status remembers of earlier checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.model.decode_net import int_or_string, name_of
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.kube import IntOrString

WORKLOAD_KINDS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob")
WINDOW_KINDS: Final = ("interface", "dependency", "capability", "configuration")
DEFAULT_CHECK_INTERVAL: Final = 300

# (kind, subject) -> when its negative was first observed, POSIX seconds
Windows = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class ConfigBinding:
    """Where a declared configuration lives."""

    configuration: str
    kind: str
    name: str
    key: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """What a Pacto's status says of its contract; other Pactos resolve their dependencies by it."""

    service: str
    version: str
    resolved_ref: str = ""


@dataclass(frozen=True, slots=True)
class Pacto:
    """A Pacto. `workload_explicit` says that the author wrote both its name and its kind."""

    namespace: str
    name: str
    generation: int = 0
    oci: str = ""
    inline: str = ""
    pull_secret: str = ""
    service: str = ""
    workload_kind: str = "Deployment"
    workload_name: str = ""
    workload_explicit: bool = False
    is_reference: bool = False
    interfaces: tuple[tuple[str, IntOrString], ...] = ()
    configurations: tuple[ConfigBinding, ...] = ()
    overrides: tuple[tuple[str, Mapping[str, str]], ...] = ()
    check_interval: int = DEFAULT_CHECK_INTERVAL
    published: Published | None = None
    windows: Windows = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def port_bindings(self) -> dict[str, IntOrString]:
        """The Service port of each bound interface."""
        return dict(self.interfaces)


def decode_pacto(top: Fields) -> Pacto:
    """A Pacto. Raises MalformedObject naming the field, if one has the wrong shape."""
    namespace, name = name_of(top)
    spec, status = top.child("spec"), top.child("status")
    source, target = spec.child("contractRef"), spec.child("target")
    workload = target.optional_child("workloadRef")
    service = target.text("serviceName")
    kind = _workload_kind(workload) if workload else ""
    workload_name = workload.required_text("name") if workload else service
    raw_status = top.raw("status")
    return Pacto(
        namespace=namespace,
        name=name,
        generation=top.child("metadata").count("generation"),
        oci=source.text("oci"),
        inline=source.text("inline"),
        pull_secret=source.text("pullSecretRef"),
        service=service,
        workload_kind=kind or "Deployment",
        workload_name=workload_name,
        workload_explicit=bool(workload and kind),
        is_reference=not service and workload is None,
        interfaces=tuple(_decode_port_binding(item) for item in target.children("interfaceBindings")),
        configurations=tuple(_decode_config_binding(item) for item in target.children("configBindings")),
        overrides=tuple(
            (item.required_text("name"), item.text_map("values"))
            for item in spec.child("overrides").children("configurations")
        ),
        check_interval=spec.count("checkIntervalSeconds") or DEFAULT_CHECK_INTERVAL,
        published=_decode_published(status),
        windows=dict(_decode_window(item) for item in status.children("observationWindows")),
        status=raw_status if isinstance(raw_status, dict) else {},
    )


def _one_of(fields: Fields, name: str, allowed: tuple[str, ...]) -> str:
    value = fields.text(name)
    if value and value not in allowed:
        raise fields.fail(name, f"must be one of {', '.join(allowed)} (it is {value!r})")
    return value


def _workload_kind(fields: Fields) -> str:
    return _one_of(fields, "kind", WORKLOAD_KINDS)


def _decode_port_binding(fields: Fields) -> tuple[str, IntOrString]:
    port = int_or_string(fields, "servicePort")
    if port in (0, ""):
        raise fields.fail("servicePort", "is required: a port number or a port name of the Service")
    return fields.required_text("interface"), port


def _decode_config_binding(fields: Fields) -> ConfigBinding:
    kind = _one_of(fields, "kind", ("ConfigMap", "Secret"))
    if not kind:
        raise fields.fail("kind", "is required: ConfigMap or Secret")
    return ConfigBinding(
        configuration=fields.required_text("configuration"),
        kind=kind,
        name=fields.required_text("name"),
        key=fields.text("key"),
        format=fields.text("format"),
    )


def _decode_published(status: Fields) -> Published | None:
    contract = status.optional_child("contract")
    if contract is None:
        return None
    return Published(contract.text("serviceName"), contract.text("version"), contract.text("resolvedRef"))


def _decode_window(fields: Fields) -> tuple[tuple[str, str], float]:
    kind = _one_of(fields, "kind", WINDOW_KINDS)
    if not kind:
        raise fields.fail("kind", f"is required: one of {', '.join(WINDOW_KINDS)}")
    start = fields.instant("firstObservedNegativeAt")
    if start is None:
        raise fields.fail("firstObservedNegativeAt", "is required: an RFC 3339 time")
    return (kind, fields.required_text("subject")), start
