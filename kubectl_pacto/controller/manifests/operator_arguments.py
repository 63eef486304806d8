# SPDX-License-Identifier: MIT
"""Which value becomes which option of `pacto operator`: one table, for the plugin and for the chart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.controller.manifests.release_values import AGENT

Values = Mapping[str, Any]
METRICS_PORT: Final = 8080
CERTIFICATE_FOLDER: Final = "/etc/pacto/metrics"


@dataclass(frozen=True, slots=True)
class Argument:
    """An option and the dotted path of its value; what is empty, false or 0 is not told."""

    option: str
    path: str
    default: str = ""


SWITCHES: Final = (
    Argument("--leader-elect", "leaderElection.enabled"),
    Argument("--metrics-secure", "metrics.secure"),
    Argument("--enable-probing", "controller.enableProbing"),
    Argument("--enable-metrics-observation", "controller.enableMetricsObservation"),
    Argument("--interface-name-match-discovery", "controller.interfaceNameMatchDiscovery"),
)
TOLD: Final = (
    Argument("--watch-namespace", "controller.watchNamespace"),
    Argument("--stabilization-window", "controller.stabilizationWindow"),
    Argument("--workers", "controller.workers"),
    Argument("--kernel-evidence-namespace", "controller.kernelEvidence.namespace"),
    Argument("--staleness", "controller.kernelEvidence.staleness"),
    Argument("--recency", "controller.kernelEvidence.recency"),
    Argument("--host-kernel-runtime-classes", "controller.kernelEvidence.hostKernelRuntimeClasses"),
    Argument("--mesh-proxies", "controller.kernelEvidence.meshProxies"),
)
AGENT_SWITCHES: Final = (Argument("--node-agent-sys-resource", "nodeAgent.sysResource"),)
AGENT_TOLD: Final = (
    Argument("--node-agent-namespace", "nodeAgent.namespace"),
    Argument("--node-agent-image", "nodeAgent.image", AGENT.image),
    Argument("--node-agent-image-pull-policy", "nodeAgent.imagePullPolicy"),
    Argument("--publish-interval", "nodeAgent.publishInterval"),
    Argument("--resync-interval", "nodeAgent.resyncInterval"),
    Argument("--mapper", "nodeAgent.mapper"),
    Argument("--node-agent-seccomp-profile", "nodeAgent.seccompProfile"),
    Argument("--node-agent-max-unavailable", "nodeAgent.maxUnavailable"),
    Argument("--node-agent-priority-class", "nodeAgent.priorityClassName"),
)
# with --metrics-secure
CERTIFICATE: Final = (
    Argument("--metrics-cert-name", "metrics.certificate.certName"),
    Argument("--metrics-cert-key", "metrics.certificate.keyName"),
)
# what no option can say goes as JSON in one
AGENT_JSON: Final = ("imagePullSecrets", "nodeSelector", "resources", "tolerations")


def arguments(values: Values) -> list[str]:
    """The command line; what is not told is the option's own default."""
    address = f":{METRICS_PORT}" if values["metrics"]["enabled"] else "0"
    found = [*_on(values, SWITCHES), f"--metrics-bind-address={address}", *_told(values, TOLD)]
    if values["metrics"]["secure"]:
        found += [f"--metrics-cert-path={CERTIFICATE_FOLDER}", *_told(values, CERTIFICATE)]
    if not values["nodeAgent"]["enabled"]:
        return found
    more = {key: values["nodeAgent"][key] for key in AGENT_JSON}
    text = json.dumps(more, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found += ["--enable-node-agent", *_on(values, AGENT_SWITCHES), *_told(values, AGENT_TOLD)]
    return [*found, f"--node-agent-values={text}"]


def value_at(values: Values, path: str) -> Any:
    """The value of a dotted path."""
    for name in path.split("."):
        values = values[name]
    return values


def _on(values: Values, switches: tuple[Argument, ...]) -> Iterator[str]:
    return (one.option for one in switches if value_at(values, one.path))


def _told(values: Values, told: tuple[Argument, ...]) -> Iterator[str]:
    for one in told:
        value = value_at(values, one.path) or one.default
        if value:
            yield f"{one.option}={','.join(value) if isinstance(value, list) else value}"
