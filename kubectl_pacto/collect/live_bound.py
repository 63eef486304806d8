# SPDX-License-Identifier: MIT
"""The ConfigMaps and Secrets that one Pacto binds, read for its check alone. No Secret's value is read."""

from __future__ import annotations

from kubectl_pacto.collect.live import LiveCluster
from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import METADATA_ONLY, Client
from kubectl_pacto.kube.errors import ApiError, ApiNotFound
from kubectl_pacto.kube.paths import namespaced
from kubectl_pacto.model.decode_net import decode_config_map
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.kube import Secret
from kubectl_pacto.model.pacto import ConfigBinding, Pacto


def read_bound(client: Client, cluster: LiveCluster, pacto: Pacto) -> None:
    """Add what a Pacto binds to its check's cluster; why it cannot be read is added, too."""
    for binding in pacto.configurations:
        key = pacto.namespace, binding.name
        failed = binding.kind, *key
        cluster.late_failures.pop(failed, None)
        try:
            _read(client, cluster, binding, key)
        except ApiNotFound:
            found = cluster.late_config_maps if binding.kind == "ConfigMap" else cluster.late_secrets
            found.pop(key, None)
        except (ApiError, MalformedObject) as error:
            cluster.late_failures[failed] = str(error)


def _read(client: Client, cluster: LiveCluster, binding: ConfigBinding, key: tuple[str, str]) -> None:
    if binding.kind == "ConfigMap":
        raw = client.get(namespaced("/api/v1", key[0], "configmaps", key[1]))
        cluster.late_config_maps[key] = decode_config_map(Fields(raw))
    else:
        client.get(namespaced("/api/v1", key[0], "secrets", key[1]), accept=METADATA_ONLY)
        cluster.late_secrets[key] = Secret(*key)
