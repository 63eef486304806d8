# SPDX-License-Identifier: MIT
"""The node agents' DaemonSet as it should be, and what agents of vanished nodes left behind.

Runs on the leader. Namespace, rights and admission policy come from whoever installed the operator; it
creates, changes and removes the DaemonSet alone, and only one that it made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubectl_pacto.controller.manifests.agent_objects import HASH, MANAGED_BY, MANAGER, NAME, desired
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.kube.client import METADATA_LIST, Client
from kubectl_pacto.kube.errors import ApiConflict, ApiForbidden, ApiNotFound
from kubectl_pacto.kube.lists import list_all
from kubectl_pacto.kube.paths import leases, namespaced, node_observations
from kubectl_pacto.model.node import AGENT_LABELS

LOG: Final = logging.getLogger(__name__)
APPS: Final = "/apis/apps/v1"
NODES: Final = "/api/v1/nodes"
GONE_SECONDS: Final = 600.0

Raw = Mapping[str, Any]
# (kind of object, name) -> its path and uid
Found = dict[tuple[str, str], tuple[str, str]]


class NodeAgents:
    """Called again and again, by one thread; `values` None: no agents of ours should run."""

    def __init__(
        self, values: NodeAgentValues | None, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._values = values
        self._namespace = namespace if values is None else values.namespace
        self._clock = clock
        self._generation: int | None = None
        self._missing: dict[tuple[str, str], float] = {}

    def ensure(self, client: Client) -> None:
        """Bring the DaemonSet to what it should be. Raises ApiError; called again, it goes on."""
        path = namespaced(APPS, self._namespace, "daemonsets", NAME)
        try:
            found = client.get(path)
        except ApiForbidden:
            # without the agent, its namespace and the rights in it are gone, too
            if self._values is None:
                return
            raise
        except ApiNotFound:
            if self._values is None:
                return
            path = namespaced(APPS, self._namespace, "daemonsets")
            self._generation = client.post(path, desired(self._values))["metadata"].get("generation")
            LOG.info("created DaemonSet %s/%s", self._namespace, NAME)
            return
        metadata = found["metadata"]
        is_ours = (metadata.get("labels") or {}).get(MANAGED_BY) == MANAGER
        if self._values is None:
            if is_ours:
                client.delete(path, {"preconditions": {"uid": metadata["uid"]}})
                LOG.info("removed DaemonSet %s/%s", self._namespace, NAME)
            return
        if not is_ours:
            LOG.warning("DaemonSet %s/%s is somebody else's: it is left alone", self._namespace, NAME)
            return
        self._update(client, path, found, desired(self._values))

    def _update(self, client: Client, path: str, found: Raw, wanted: Raw) -> None:
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        # the hash tells of our own changes, the generation of anybody else's; comparing the specs would
        # not do, because the server writes quantities in a form of its own
        mark = wanted["metadata"]["annotations"][HASH]
        if annotations.get(HASH) == mark and metadata.get("generation") == self._generation:
            return
        kept = {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **wanted["metadata"]["labels"]},
            "annotations": {**annotations, HASH: mark},
        }
        kept.pop("managedFields", None)
        written = client.put(path, {**wanted, "metadata": kept})["metadata"]
        self._generation = written.get("generation")
        if self._generation != metadata.get("generation"):
            LOG.info("updated DaemonSet %s/%s", self._namespace, NAME)

    def clean(self, client: Client) -> int:
        """Remove what agents of nodes that are gone for ten minutes left; how many. Raises ApiError."""
        if self._values is None:
            return 0
        nodes = set(list_all(client, NODES, _name, accept=METADATA_LIST).items)
        if not nodes:
            return 0  # a cluster without nodes is more likely a mistake than a reason to delete all
        left = {key: where for key, where in self._left(client).items() if key[1] not in nodes}
        now = self._clock()
        self._missing = {key: self._missing.get(key, now) for key in left}
        removed = 0
        for key, since in self._missing.items():
            if now - since >= GONE_SECONDS:
                removed += _remove(client, *left[key])
        return removed

    def _left(self, client: Client) -> Found:
        found: Found = {}

        def keep_object(raw: dict[str, Any]) -> None:
            labels = raw["metadata"].get("labels") or {}
            if all(labels.get(key) == value for key, value in AGENT_LABELS.items()):
                name = _name(raw)
                found["object", name] = node_observations(self._namespace, name), raw["metadata"]["uid"]

        def keep_lease(raw: dict[str, Any]) -> None:
            name = _name(raw)
            # an agent's Lease is held by its node; any other in this namespace is not ours to remove
            if (raw.get("spec") or {}).get("holderIdentity") == name:
                found["lease", name] = leases(self._namespace, name), raw["metadata"]["uid"]

        list_all(client, node_observations(self._namespace), keep_object, accept=METADATA_LIST)
        list_all(client, leases(self._namespace), keep_lease)
        return found


def _remove(client: Client, path: str, uid: str) -> int:
    try:
        client.delete(path, {"preconditions": {"uid": uid}})
    except (ApiNotFound, ApiConflict):
        return 0
    LOG.info("removed %s: its node is gone", path)
    return 1


def _name(raw: dict[str, Any]) -> str:
    return str(raw["metadata"]["name"])
