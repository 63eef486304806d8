# SPDX-License-Identifier: MIT
"""Waiting for a release: what is missing is named, and why, each time it changes and at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubectl_pacto.cli.errors import NotReadyInTime
from kubectl_pacto.cli.install.objects import path_of, title_of
from kubectl_pacto.controller.manifests.agent_objects import HASH
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound
from kubectl_pacto.kube.lists import list_all, with_query
from kubectl_pacto.kube.paths import namespaced

Raw = Mapping[str, Any]
POLL_SECONDS: Final = 1.0


def wait_ready(client: Client, objects: Sequence[Raw], timeout: float, say: Callable[[str], None]) -> None:
    """Return when all of these are ready. Raises NotReadyInTime naming what is not, and why."""
    end, told = time.monotonic() + timeout, ""
    while missing := [text for raw in objects if (text := _missing(client, raw))]:
        now = "; ".join(missing)
        if time.monotonic() >= end:
            raise NotReadyInTime(timeout=timeout, missing=now)
        if now != told:
            say(f"waiting for {now}")
            told = now
        time.sleep(POLL_SECONDS)


def wait_gone(client: Client, objects: Sequence[Raw], timeout: float) -> None:
    """Return when none of these exists any more. Raises NotReadyInTime naming what stays, and why."""
    end = time.monotonic() + timeout
    while staying := [text for raw in objects if (text := _staying(client, raw))]:
        if time.monotonic() >= end:
            raise NotReadyInTime(timeout=timeout, missing=f"still there: {'; '.join(staying)}")
        time.sleep(POLL_SECONDS)


def _staying(client: Client, raw: Raw) -> str:
    try:
        found = client.get(path_of(raw))
    except ApiNotFound:
        return ""
    finalizers = found["metadata"].get("finalizers") or (found.get("spec") or {}).get("finalizers") or []
    return title_of(raw) + (f" (finalizers: {', '.join(finalizers)})" if finalizers else "")


def _missing(client: Client, raw: Raw) -> str:
    """What an object lacks to be ready; empty if it is."""
    if raw["kind"] not in ("CustomResourceDefinition", "Deployment", "DaemonSet"):
        return ""
    try:
        found = client.get(path_of(raw))
    except ApiNotFound:
        return f"{title_of(raw)} (not there yet)"
    status = found.get("status") or {}
    if raw["kind"] == "CustomResourceDefinition":
        conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
        return "" if conditions.get("Established") == "True" else f"{title_of(raw)} (not established)"
    if raw["kind"] == "DaemonSet" and not _is_changed(found, raw):
        return f"{title_of(raw)} (not changed by the operator yet)"
    desired, ready, updated = _counts(found, status)
    is_seen = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 0)
    if is_seen and ready >= desired and updated >= desired:
        return ""
    why = "; ".join(pod_problems(client, found)[:3])
    told = f"{updated} of {desired} updated" if ready >= desired else f"{ready} of {desired} ready"
    return f"{title_of(raw)} ({told}{f': {why}' if why else ''})"


def _is_changed(found: Raw, wanted: Raw) -> bool:
    """Whether the operator has written these values; else all that is ready is what was there before.

    By its own mark, which nobody else changes. An operator of another version marks differently: then
    by what agents are told, which the server keeps as it was written.
    """
    marks = [(one["metadata"].get("annotations") or {}).get(HASH) for one in (found, wanted)]
    if marks[0] == marks[1]:
        return True
    now, then = (one["spec"]["template"]["spec"]["containers"][0] for one in (found, wanted))
    return all(now.get(key) == then.get(key) for key in ("image", "args"))


def _counts(found: Raw, status: Raw) -> tuple[int, int, int]:
    if found["kind"] == "DaemonSet":
        names = ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled")
        desired, ready, updated = (int(status.get(name) or 0) for name in names)
        return desired, ready, updated
    replicas = int(found["spec"].get("replicas", 1))
    return replicas, int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)


def pod_problems(client: Client, workload: Raw) -> list[str]:
    """Why pods of a workload are not ready, one clause each; or why there are none."""
    metadata = workload["metadata"]
    labels = workload["spec"].get("selector", {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    path = with_query(namespaced("/api/v1", metadata["namespace"], "pods"), labelSelector=selector)
    pods = list_all(client, path, dict).items
    found = [text for pod in pods if (text := _pod_problem(pod))]
    conditions = (workload.get("status") or {}).get("conditions") or ()
    failed = [one for one in conditions if one["type"] == "ReplicaFailure" and one["status"] == "True"]
    return found or [str(one.get("message") or one.get("reason")) for one in failed]


def _pod_problem(pod: Raw) -> str:
    status = pod.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    if (conditions.get("Ready") or {}).get("status") == "True":
        return ""
    where = (pod.get("spec") or {}).get("nodeName")
    head = f"pod {pod['metadata']['name']}" + (f" on {where}" if where else "")
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason"):
            return f"{head}: {waiting['reason']}" + _message(waiting)
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return f"{head}: {scheduled.get('reason')}{_message(scheduled)}"
    return f"{head}: {status.get('reason') or status.get('phase') or 'Pending'}"


def _message(part: Raw) -> str:
    return f" ({str(part['message'])[:160]})" if part.get("message") else ""
