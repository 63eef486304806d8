# SPDX-License-Identifier: MIT
"""An application of a scenario, as the objects that a user would apply for it.

Of an app: `run` names a workload image and its arguments, `program` a script of `programs/` instead.
`needs` are its dependencies, `contract` and `pacto` go over what is made by default, `pod` and `service`
over their specs. `place: mine` puts it on the node whose agent the scenario runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.acceptance.release import LABEL
from tests.acceptance.watcher import API
from tests.cluster import manifests
from tests.cluster.api import Object
from tests.images import workloads

PROGRAMS: Final = Path(__file__).parent / "programs"
MOUNT: Final = "/programs"
REGISTRY: Final = "oci://registry.example"
INTERVAL: Final = 30
KNOWN: Final = frozenset(
    {
        "annotations", "awaited", "called", "claims", "contract", "image", "kind", "labels", "later", "needs",
        "pacto", "place", "pod", "port", "probe", "program", "replicas", "run", "serve", "service", "shell",
        "version", "with",
    }
)  # fmt: skip


def over(base: Any, more: Any) -> Any:
    """A mapping with another's keys over it, as deep as both are mappings."""
    if not isinstance(base, Mapping) or not isinstance(more, Mapping):
        return more
    return {**base, **{key: over(base[key], value) if key in base else value for key, value in more.items()}}


def programs(namespace: str) -> Object:
    """The scripts as a ConfigMap: one image runs them all."""
    data = {path.name: path.read_text() for path in sorted(PROGRAMS.glob("*.py"))}
    metadata = {"name": "programs", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class App:
    """One application in the namespace of its scenario."""

    def __init__(self, namespace: str, name: str, raw: Mapping[str, Any]) -> None:
        """Raises ValueError for a key that means nothing."""
        if unknown := set(raw) - KNOWN:
            raise ValueError(f"app {name}: no field {', '.join(sorted(unknown))}")
        self.namespace, self.name, self.raw = namespace, name, raw

    @property
    def full_name(self) -> str:
        """The name of its contract's service: no other scenario's."""
        return f"{self.namespace}-{self.raw.get('called', self.name)}"

    @property
    def is_checked(self) -> bool:
        """Whether it has a Pacto."""
        return self.raw.get("pacto", True) is not False

    def objects(self) -> list[Object]:
        """Service and workload, in this order: a Service is there before its pods."""
        return [*([self.service()] if self.raw.get("serve", True) else []), self.workload()]

    def service(self) -> Object:
        """A ClusterIP Service on port 80."""
        made = manifests.service(self.namespace, self.name, target=self.raw.get("port", 8080))
        made["spec"] = over(made["spec"], self.raw.get("service", {}))
        return made

    def container(self) -> Object:
        """The one that serves."""
        if "program" in self.raw:
            made = _script("main", self.raw.get("image", "http"), f"{MOUNT}/{self.raw['program']}")
        else:
            name, *words = str(self.raw.get("run", "http")).split()
            made = manifests.container(name, *([name, *words] if words else []), port=0, name="main")
        if "shell" in self.raw:
            made["command"] = ["sh", "-c", self.raw["shell"]]
        match self.raw.get("probe"):
            case "file":
                made["readinessProbe"] = {**manifests.file_probe(), "periodSeconds": 2}
            case "http":
                made["readinessProbe"] = manifests.http_probe(self.raw.get("port", 8080))
            case _:
                pass
        return made

    def _spec(self) -> Object:
        """Where it runs, and its volumes."""
        raw = self.raw
        spec: Object = {
            "automountServiceAccountToken": False,
            "nodeSelector": {LABEL: raw.get("place", "managed")},
        }
        if raw.get("place") == "both":
            spec["nodeSelector"] = {}
            spec["topologySpreadConstraints"] = [_spread(self.name)]
        if "program" in raw or raw.get("with"):
            spec["volumes"] = [{"name": "programs", "configMap": {"name": "programs"}}]
        found: Object = over(spec, raw.get("pod", {}))
        return found

    def workload(self) -> Object:
        """A Deployment unless it says otherwise."""
        raw, kind = self.raw, self.raw.get("kind", "Deployment")
        beside = [_script(name, "http", words) for name, words in raw.get("with", {}).items()]
        spec, containers = self._spec(), [self.container(), *beside]
        if kind == "Pod":
            made = manifests.pod(self.namespace, self.name, containers, **spec)
            made["metadata"]["labels"] |= raw.get("labels", {})
            return made
        made = manifests.deployment(self.namespace, self.name, containers, raw.get("replicas", 1), **spec)
        template = made["spec"]["template"]["metadata"]
        template["labels"] |= raw.get("labels", {})
        template["annotations"] = raw.get("annotations", {})
        if kind == "StatefulSet":
            made["kind"] = kind
            made["spec"] |= {"serviceName": self.name, "podManagementPolicy": "Parallel"}
            if raw.get("claims"):
                made["spec"]["volumeClaimTemplates"] = [_claim()]
        return made

    def contract(self) -> Object:
        """What it promises: one interface, and the dependencies it needs."""
        made: Object = {
            "pactoVersion": "2.0",
            "service": {"name": self.full_name, "version": self.raw.get("version", "1.2.3")},
            "interfaces": [{"name": "api", "type": "openapi", "ref": "openapi.yaml"}],
        }
        if not self.raw.get("serve", True):
            del made["interfaces"]
        if needs := self.raw.get("needs"):
            made["dependencies"] = [self._dependency(one) for one in needs]
        contract: Object = over(made, self.raw.get("contract", {}))
        return contract

    def _dependency(self, needed: Any) -> Object:
        raw = {"name": needed} if isinstance(needed, str) else dict(needed)
        name = f"{self.namespace}-{raw.pop('name')}"
        return {"name": name, "ref": f"{REGISTRY}/{name}", "compatibility": "^1.0.0", "required": True, **raw}

    def pacto(self) -> Object:
        """The Pacto of its Service and workload."""
        target: Object = {"workloadRef": {"name": self.name, "kind": self.raw.get("kind", "Deployment")}}
        if self.raw.get("serve", True):
            target |= {
                "serviceName": self.name,
                "interfaceBindings": [{"interface": "api", "servicePort": 80}],
            }
        spec = {
            "contractRef": {"inline": yaml.safe_dump(self.contract())},
            "target": target,
            "checkIntervalSeconds": INTERVAL,
        }
        more = self.raw.get("pacto", {})
        return {
            "apiVersion": API,
            "kind": "Pacto",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": over(spec, {} if more is True else more),
        }


def _script(name: str, image: str, words: str) -> Object:
    """A container that runs a script; any image with a Python will do."""
    made = {"name": name, "image": workloads.name(image), "imagePullPolicy": "Never"}
    return {
        **made,
        "command": ["python3", "-u", *words.split()],
        "volumeMounts": [{"name": "programs", "mountPath": MOUNT}],
    }


def _claim() -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"metadata": {"name": "data"}, "spec": spec}


def _spread(name: str) -> Object:
    """One pod on a node with the operator's agent, one on the node without."""
    return {
        "maxSkew": 1,
        "topologyKey": LABEL,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
