# SPDX-License-Identifier: MIT
"""Where the API serves what: one function per resource that we ask for."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from kubectl_pacto.model.group import API_VERSION

PACTO_API: Final = f"/apis/{API_VERSION}"
LEASE_API: Final = "/apis/coordination.k8s.io/v1"


def namespaced(api: str, namespace: str, resource: str, name: str = "") -> str:
    """A namespaced resource, or one object of it; every part is escaped."""
    path = f"{api}/namespaces/{quote(namespace, safe='')}/{resource}"
    return f"{path}/{quote(name, safe='')}" if name else path


def node_observations(namespace: str, name: str = "") -> str:
    """NodeRuntimeObservations of the agents' namespace."""
    return namespaced(PACTO_API, namespace, "noderuntimeobservations", name)


def leases(namespace: str, name: str = "") -> str:
    """Leases of a namespace."""
    return namespaced(LEASE_API, namespace, "leases", name)
