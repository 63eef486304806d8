# SPDX-License-Identifier: MIT
"""`pacto operator`'s options: the public project's names, and those of kernel evidence."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto import __version__
from kubectl_pacto.arguments import Parser
from kubectl_pacto.controller.manifests.agent_values import MAPPERS, SECCOMP_PROFILES, NodeAgentValues
from kubectl_pacto.controller.mirror import MIRROR_SECONDS
from kubectl_pacto.controller.pull_secrets import LOOK_SECONDS
from kubectl_pacto.controller.serving import CertificateFiles
from kubectl_pacto.model.bounds import LONGEST_INTERVAL_SECONDS, SHORTEST_INTERVAL_SECONDS
from kubectl_pacto.model.duration import parse_duration, parse_interval
from kubectl_pacto.model.node import AGENT_NAMESPACE
from kubectl_pacto.model.snapshot import HOST_KERNEL_RUNTIMES, KernelOptions, Options

DEFAULTS = NodeAgentValues()
WORKERS = 4


DEFAULT: Final = "default %(default)s"
INTERVAL: Final = (
    f"{SHORTEST_INTERVAL_SECONDS:g}s to {LONGEST_INTERVAL_SECONDS / 3600:g}h, default %(default)s"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the operator was told."""

    namespace: str
    identity: str
    checks: Options
    agent: NodeAgentValues | None = None
    agent_namespace: str = AGENT_NAMESPACE
    kubeconfig: str = ""
    watch_namespace: str = ""
    leader_elect: bool = False
    metrics_address: str = ""
    metrics_certificate: CertificateFiles | None = None
    health_address: str = ""
    probing: bool = False
    workers: int = WORKERS
    node_object_age: float = 10.0
    mirror_interval: float = MIRROR_SECONDS
    secret_interval: float = LOOK_SECONDS
    insecure_registries: tuple[str, ...] = field(default=())


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _interval(text: str) -> str:
    try:
        parse_interval(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def parser() -> Parser:
    """The parser of `pacto operator`."""
    made = Parser("pacto operator", "Check Pactos and write their statuses.")
    made.add_argument("--version", action="version", version=f"pacto {__version__}")
    _add_process(made)
    _add_checks(made)
    _add_kernel(made)
    _add_agent(made)
    return made


def _add_process(made: Parser) -> None:
    add = made.add_argument
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="where to connect instead of the pod's own API server",
    )
    add("--watch-namespace", default="", metavar="NAME", help="check the Pactos of one namespace only")
    add("--leader-elect", action=argparse.BooleanOptionalAction, default=False, help="one of several leads")
    add("--metrics-bind-address", default=":8080", metavar="ADDRESS", help="default :8080; 0: no metrics")
    secure = "TLS, and only for who may get /metrics; needs system:auth-delegator"
    add("--metrics-secure", action=argparse.BooleanOptionalAction, default=False, help=secure)
    add("--metrics-cert-path", default="", metavar="FOLDER", help="of the certificate, which may be renewed")
    add("--metrics-cert-name", default="tls.crt", metavar="FILE", help="default: tls.crt")
    add("--metrics-cert-key", default="tls.key", metavar="FILE", help="default: tls.key")
    add("--health-probe-bind-address", default=":8081", metavar="ADDRESS", help="default :8081; 0: no probes")
    add("--workers", type=int, default=WORKERS, metavar="N", help="checks at a time, default %(default)s")


def _add_checks(made: Parser) -> None:
    add = made.add_argument
    window = "how long an absence must stand before it is a finding, default 2m"
    add("--stabilization-window", type=_seconds, default=120.0, metavar="DURATION", help=window)
    add("--enable-probing", action="store_true", help="ask Service ports for protocol and health")
    add("--enable-metrics-observation", action="store_true", help="observe the metrics capability")
    add("--interface-name-match-discovery", action="store_true", help="bind interfaces by port name")


def _add_kernel(made: Parser) -> None:
    add = made.add_argument
    runtimes = f"runtime classes whose pods share the node's kernel, default {','.join(HOST_KERNEL_RUNTIMES)}"
    add("--enable-node-agent", action="store_true", help="run the node agent and read its evidence")
    add(
        "--kernel-evidence-namespace",
        default="",
        metavar="NAME",
        help="read the evidence of agents that you run there",
    )
    add(
        "--staleness",
        type=_seconds,
        default=None,
        metavar="DURATION",
        help="of a heartbeat; default as Leases say",
    )
    add(
        "--recency",
        type=_seconds,
        default=None,
        metavar="DURATION",
        help="of a connection; default the staleness",
    )
    add(
        "--host-kernel-runtime-classes",
        type=_names,
        default=HOST_KERNEL_RUNTIMES,
        metavar="NAMES",
        help=runtimes,
    )
    add("--mesh-proxies", type=_names, default=(), metavar="NAMES", help="more proxy containers")


def _add_agent(made: Parser) -> None:
    add = made.add_argument
    add("--node-agent-namespace", default=AGENT_NAMESPACE, metavar="NAME", help=DEFAULT)
    add("--node-agent-image", default=DEFAULTS.image, metavar="IMAGE", help=DEFAULT)
    policy = DEFAULTS.image_pull_policy
    add("--node-agent-image-pull-policy", default=policy, metavar="POLICY", help=DEFAULT)
    every = DEFAULTS.publish_interval, DEFAULTS.resync_interval
    add("--publish-interval", type=_interval, default=every[0], metavar="DURATION", help=INTERVAL)
    add("--resync-interval", type=_interval, default=every[1], metavar="DURATION", help=INTERVAL)
    add("--mapper", choices=MAPPERS, default=DEFAULTS.mapper, help=DEFAULT)
    add("--node-agent-sys-resource", action="store_true", help="give it SYS_RESOURCE (before Linux 5.11)")
    seccomp = DEFAULTS.seccomp_profile
    add("--node-agent-seccomp-profile", choices=SECCOMP_PROFILES, default=seccomp, help=DEFAULT)
    add(
        "--node-agent-max-unavailable",
        default=DEFAULTS.max_unavailable,
        metavar="N",
        help=f"nodes at a time, {DEFAULT}",
    )
    add(
        "--node-agent-priority-class",
        default=DEFAULTS.priority_class_name,
        metavar="NAME",
        help="of its pods",
    )
    add("--node-agent-values", default="", metavar="JSON", help="lists and mappings of the values")


def settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a command line; exits with status 2 on a wrong one."""
    made = parser()
    given = made.parse_args(arguments)
    namespace = environment.get("POD_NAMESPACE", "")
    if not namespace:
        made.exit(1, "pacto operator: POD_NAMESPACE is not set: the operator must know its own namespace\n")
    if given.workers < 1:
        made.error("--workers must be 1 or more")
    if given.metrics_secure != bool(given.metrics_cert_path):
        made.error("--metrics-secure and --metrics-cert-path go together: a folder with tls.crt and tls.key")
    certificate = CertificateFiles(given.metrics_cert_path, given.metrics_cert_name, given.metrics_cert_key)
    agent = _agent(made, given) if given.enable_node_agent else None
    return Settings(
        namespace=namespace,
        identity=environment.get("POD_NAME") or f"{os.uname().nodename}_{os.getpid()}",
        checks=_checks(given),
        agent=agent,
        agent_namespace=given.node_agent_namespace,
        kubeconfig=given.kubeconfig,
        watch_namespace=given.watch_namespace,
        leader_elect=given.leader_elect,
        metrics_address=_address(given.metrics_bind_address),
        metrics_certificate=certificate if given.metrics_secure else None,
        health_address=_address(given.health_probe_bind_address),
        probing=given.enable_probing,
        workers=given.workers,
        insecure_registries=_names(environment.get("PACTO_INSECURE_REGISTRIES", "")),
    )


def _address(text: str) -> str:
    return "" if text in ("", "0") else text


def _checks(given: argparse.Namespace) -> Options:
    kernel = KernelOptions(
        enabled=given.enable_node_agent or bool(given.kernel_evidence_namespace),
        namespace=given.kernel_evidence_namespace or given.node_agent_namespace,
        staleness=given.staleness,
        recency=given.recency,
        host_kernel_runtimes=tuple(given.host_kernel_runtime_classes),
        mesh_proxies=tuple(given.mesh_proxies),
    )
    return Options(
        window=given.stabilization_window,
        match_interfaces_by_name=given.interface_name_match_discovery,
        observe_metrics=given.enable_metrics_observation,
        kernel=kernel,
    )


def _agent(made: Parser, given: argparse.Namespace) -> NodeAgentValues:
    import json

    try:
        more = json.loads(given.node_agent_values or "{}")
        chosen: dict[str, Any] = {
            "image_pull_secrets": list(more.get("imagePullSecrets") or ()),
            "resources": dict(more.get("resources", DEFAULTS.resources)),
            "node_selector": dict(more.get("nodeSelector") or {}),
            "tolerations": list(more.get("tolerations", DEFAULTS.tolerations)),
        }
    except (ValueError, TypeError, AttributeError) as error:
        made.error(f"--node-agent-values is not the JSON it should be: {error}")
    return NodeAgentValues(
        namespace=given.node_agent_namespace,
        image=given.node_agent_image,
        image_pull_policy=given.node_agent_image_pull_policy,
        publish_interval=given.publish_interval,
        resync_interval=given.resync_interval,
        mapper=given.mapper,
        sys_resource=given.node_agent_sys_resource,
        seccomp_profile=given.node_agent_seccomp_profile,
        max_unavailable=given.node_agent_max_unavailable,
        priority_class_name=given.node_agent_priority_class,
        **chosen,
    )
