# SPDX-License-Identifier: MIT
"""Kubernetes objects from files and decoded JSON to a Cluster. Judges nothing.

Whatever is wrong names the file, the object and the field. Kinds that no check reads are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kubectl_pacto.collect.documents import STDIN, read_documents
from kubectl_pacto.errors import InputError, MalformedObject, UnreadableInput
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.decode_net import (
    decode_config_map,
    decode_http_route,
    decode_ingress,
    decode_lease,
    decode_monitor,
    decode_namespace,
    decode_secret,
    decode_service,
    decode_slice,
)
from kubectl_pacto.model.decode_pods import decode_pod, decode_workload
from kubectl_pacto.model.fields import Fields, kind_of
from kubectl_pacto.model.group import API_VERSION, GROUP
from kubectl_pacto.model.node_codec import decode_node
from kubectl_pacto.model.pacto import decode_pacto
from kubectl_pacto.model.probe import HttpAnswer, PortKey, Probes, Protocol, decode_probe

SUFFIXES: Final = (".yaml", ".yml", ".json")
# {kind: Unread, unread: [{kind, namespace, name, reason}]}: an empty name stands for a whole kind of a
# namespace, an empty namespace for all of it. A bundle carries one, for Secrets if for nothing else.
UNREAD: Final = "Unread"
_MAX_LIST_DEPTH: Final = 4

# (group, kind) -> the field of Cluster that holds it, and its decoder; the version is not looked at
_KINDS: Final[dict[tuple[str, str], tuple[str, Callable[[Fields], Any]]]] = {
    (GROUP, "Pacto"): ("pactos", decode_pacto),
    ("", "Pod"): ("pods", decode_pod),
    ("", "Service"): ("services", decode_service),
    ("", "Namespace"): ("namespaces", decode_namespace),
    ("", "ConfigMap"): ("config_maps", decode_config_map),
    ("", "Secret"): ("secrets", decode_secret),
    ("discovery.k8s.io", "EndpointSlice"): ("slices", decode_slice),
    ("apps", "Deployment"): ("workloads", decode_workload),
    ("apps", "StatefulSet"): ("workloads", decode_workload),
    ("apps", "ReplicaSet"): ("workloads", decode_workload),
    ("batch", "Job"): ("workloads", decode_workload),
    ("batch", "CronJob"): ("workloads", decode_workload),
    ("coordination.k8s.io", "Lease"): ("leases", decode_lease),
    ("networking.k8s.io", "Ingress"): ("ingresses", decode_ingress),
    ("gateway.networking.k8s.io", "HTTPRoute"): ("routes", decode_http_route),
    ("monitoring.coreos.com", "ServiceMonitor"): ("monitors", decode_monitor),
    ("monitoring.coreos.com", "PodMonitor"): ("monitors", decode_monitor),
    (GROUP, "NodeRuntimeObservation"): ("nodes", lambda top: decode_node(top.whole)),
}


_NODE: Final = ("", "Node")


class Objects:
    """Objects as they are added, by the field of Cluster they belong to.

    An object that comes twice counts once: the later one stands. Objects of the kinds in `keep` are also
    kept as they came, in `kept`.
    """

    def __init__(self, keep: Iterable[str] = ()) -> None:
        self.kept: dict[str, dict[tuple[str, str], dict[str, Any]]] = {kind: {} for kind in keep}
        self.found: dict[str, dict[tuple[str, ...], Any]] = {}
        self.skipped: Counter[str] = Counter()
        self.failures: dict[tuple[str, str, str], str] = {}

    def add(self, raw: object, file: str = "", place: str = "") -> None:
        """Decode one object, or each of a List. Raises InputError."""
        for item, where in _flatten(raw, place or "document", 0, file):
            try:
                self._keep(Fields(item), item)
                self._add_one(Fields(item))
            except MalformedObject as error:
                raise InputError(file=file, where=f"{where}: {error.where}", problem=error.problem) from None

    def _add_one(self, top: Fields) -> None:
        kind, group = top.text("kind"), _group(top.text("apiVersion"))
        if (group, kind) == _NODE and kind in self.kept:
            return  # no check reads it, and whoever keeps it does
        entry = _KINDS.get((group, kind))
        if (group, kind) == (GROUP, UNREAD):
            self._add_unread(top)
            return
        if entry is None:
            self.skipped[f"{kind}.{group}" if group else kind] += 1
            return
        field, decode = entry
        item = decode(top)
        key = (kind, getattr(item, "namespace", ""), item.name)
        self.found.setdefault(field, {})[key] = item

    def _keep(self, top: Fields, raw: dict[str, Any]) -> None:
        name = _group(top.text("apiVersion")), top.text("kind")
        # a kind of another group may have the same name
        if (name in _KINDS or name == _NODE) and (kept := self.kept.get(name[1])) is not None:
            metadata = top.child("metadata")
            kept[metadata.text("namespace"), metadata.required_text("name")] = raw

    def _add_unread(self, top: Fields) -> None:
        """Note what whoever wrote the input did not read: it is then not known, rather than not there."""
        for item in top.children("unread"):
            key = (item.required_text("kind"), item.text("namespace"), item.text("name"))
            self.failures[key] = item.text("reason") or "not part of the input"

    def cluster(self, probes: Probes | None = None) -> Cluster:
        """Everything added so far."""
        fields: dict[str, Any] = {field: tuple(items.values()) for field, items in self.found.items()}
        return Cluster(**fields, probes=probes or Probes(), failures=dict(self.failures))


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _flatten(raw: object, place: str, depth: int, file: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects in a document, each with its name for a person."""
    if not isinstance(raw, dict):
        raise InputError(file=file, where=place, problem=f"must be a Kubernetes object, not {kind_of(raw)}")
    kind, version = raw.get("kind"), raw.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise InputError(file=file, where=f"{place}: kind", problem="is required, as in kind: Pacto")
    if not isinstance(version, str) or not version:
        raise InputError(
            file=file,
            where=f"{_name(raw, kind)}: apiVersion",
            problem=f"is required, as in apiVersion: {API_VERSION}",
        )
    items = raw.get("items")
    if not (kind.endswith("List") and "items" in raw):
        yield raw, _name(raw, kind)
        return
    if not isinstance(items, list | None) or depth >= _MAX_LIST_DEPTH:
        problem = (
            f"must be a list, not {kind_of(items)}" if depth < _MAX_LIST_DEPTH else "is nested too deeply"
        )
        raise InputError(file=file, where=f"{place}: items", problem=problem)
    # `kubectl get -o json` gives its items a kind; a raw API list does not, its own kind implies it
    implied = {} if kind == "List" else {"kind": kind.removesuffix("List"), "apiVersion": version}
    for index, item in enumerate(items or ()):
        whole = {**implied, **item} if isinstance(item, dict) else item
        yield from _flatten(whole, f"{place}, items[{index}]", depth + 1, file)


def _name(raw: dict[str, Any], kind: str) -> str:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return f"{kind} (without a name)"
    namespace = metadata.get("namespace")
    return f"{kind} {namespace}/{metadata['name']}" if namespace else f"{kind} {metadata['name']}"


def read_objects(paths: Iterable[str], keep: Iterable[str] = ()) -> Objects:
    """The objects in files, in every YAML and JSON file under directories, and in stdin for `-`.

    Raises InputError, or UnreadableInput for a path that cannot be read.
    """
    objects = Objects(keep)
    for file in _expand(paths):
        for number, document in enumerate(read_documents(file), start=1):
            if document is not None:
                objects.add(document, file=file, place=f"document {number}")
    return objects


def _expand(paths: Iterable[str]) -> Iterator[str]:
    for text in paths:
        path = Path(text)
        if text != STDIN and path.is_dir():
            yield from sorted(str(item) for item in path.rglob("*") if _is_object_file(item))
        else:
            yield text


def _is_object_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file()


def read_probes(file: str) -> Probes:
    """The answers in a probe results file: a list. Raises InputError."""
    protocols: dict[PortKey, Protocol] = {}
    http: dict[tuple[PortKey, str], HttpAnswer] = {}
    for document in read_documents(file):
        if not isinstance(document, list | None):
            problem = f"must be a list of probe results, not {kind_of(document)}"
            raise UnreadableInput(file=file, problem=problem)
        for index, item in enumerate(document or ()):
            try:
                key, protocol, path, answer = decode_probe(Fields(item))
            except MalformedObject as error:
                where = f"[{index}]: {error.where}"
                raise InputError(file=file, where=where, problem=error.problem) from None
            if protocol is not None:
                protocols[key] = protocol
            if answer is not None:
                http[key, path] = answer
    return Probes(True, protocols, http)
