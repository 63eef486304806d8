# SPDX-License-Identifier: MIT
"""The values that shape the node agent's objects, with the specification's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto import __version__
from kubectl_pacto.model.node import AGENT_NAMESPACE

IMAGE: Final = "ghcr.io/trianalab/pacto/dashboard"
OPERATOR_NAMESPACE: Final = "pacto-operator-system"
MAPPERS: Final = ("auto", "proc", "iter")
SECCOMP_PROFILES: Final = ("RuntimeDefault", "Unconfined")


def default_resources() -> dict[str, Any]:
    """CPU and memory of one agent."""
    return {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "256Mi"}}


@dataclass(frozen=True, slots=True)
class NodeAgentValues:
    """`nodeAgent` of the chart; durations as Kubernetes writes them."""

    namespace: str = AGENT_NAMESPACE
    image: str = f"{IMAGE}:{__version__}"
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: list[dict[str, Any]] = field(default_factory=list)
    publish_interval: str = "30s"
    resync_interval: str = "60s"
    mapper: str = "auto"
    sys_resource: bool = False
    seccomp_profile: str = "RuntimeDefault"
    max_unavailable: str = "10%"
    priority_class_name: str = ""
    resources: dict[str, Any] = field(default_factory=default_resources)
    node_selector: dict[str, str] = field(default_factory=dict)
    # a node without an agent reads as Stale, so by default the agent runs on every Linux node
    tolerations: list[dict[str, Any]] = field(default_factory=lambda: [{"operator": "Exists"}])

    @property
    def capabilities(self) -> list[str]:
        """Exactly what the agent needs: the iterators read no other process's /proc."""
        needed = ["BPF", "PERFMON"]
        if self.mapper != "iter":
            needed.append("SYS_PTRACE")
        if self.sys_resource:
            needed.append("SYS_RESOURCE")
        return needed
