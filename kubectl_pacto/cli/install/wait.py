# SPDX-License-Identifier: MIT
"""Waiting for a release: what is missing is named, and why, each time it changes and at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_pacto.cli.errors import NotReadyInTime
from kubectl_pacto.cli.install.objects import path_of, title_of
from kubectl_pacto.controller.manifests.agent_objects import HASH
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound
from kubectl_pacto.kube.lists import list_all, with_query
from kubectl_pacto.kube.paths import namespaced

Raw = Mapping[str, Any]
POLL_SECONDS: Final = 1.0
# the operator's own rollout, and the first thing that it does
AT_LEAST: Final = 120.0
# of an agent that is replaced: one ends, an image is pulled, another starts
START_SECONDS: Final = 20.0


class Lack(NamedTuple):
    """What an object lacks to be ready, and how many seconds its rollout may take from here."""

    what: str
    seconds: float = 0.0


def wait_ready(
    client: Client, objects: Sequence[Raw], timeout: float | None, say: Callable[[str], None]
) -> None:
    """Return when all of these are ready. Raises NotReadyInTime naming what is not, and why.

    `timeout` in seconds; None is two minutes and what the rollout of a DaemonSet takes beside.
    """
    began, told, rollout = time.monotonic(), "", 0.0
    while missing := [lack for raw in objects if (lack := _missing(client, raw))]:
        now = "; ".join(lack.what for lack in missing)
        rollout = max(rollout, *(lack.seconds for lack in missing))
        patience = AT_LEAST + rollout if timeout is None else timeout
        if time.monotonic() - began >= patience:
            raise NotReadyInTime(timeout=patience, missing=now)
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


def _missing(client: Client, raw: Raw) -> Lack | None:
    """What an object lacks to be ready; None if it is."""
    if raw["kind"] not in ("CustomResourceDefinition", "Deployment", "DaemonSet"):
        return None
    try:
        found = client.get(path_of(raw))
    except ApiNotFound:
        return Lack(f"{title_of(raw)} (not there yet)")
    if raw["kind"] == "CustomResourceDefinition":
        conditions = {one["type"]: one["status"] for one in _status(found).get("conditions") or ()}
        is_served = conditions.get("Established") == "True"
        return None if is_served else Lack(f"{title_of(raw)} (not established)")
    if raw["kind"] == "DaemonSet" and not _is_changed(found, raw):
        return Lack(f"{title_of(raw)} (not changed by the operator yet)")
    counts = _counts(found)
    if _is_seen(found) and min(counts.ready, counts.available, counts.updated) >= counts.desired:
        return None
    why = "; ".join(pod_problems(client, found)[:3])
    seconds = rollout_seconds(found) if raw["kind"] == "DaemonSet" else 0.0
    return Lack(f"{title_of(raw)} ({_progress(found, counts)}{f': {why}' if why else ''})", seconds)


def _status(found: Raw) -> Raw:
    status: Raw = found.get("status") or {}
    return status


def _is_seen(found: Raw) -> bool:
    """Whether a status is about the newest of what was asked for."""
    return bool(_status(found).get("observedGeneration", 0) >= found["metadata"].get("generation", 0))


def rollout_seconds(found: Raw) -> float:
    """How long a DaemonSet's rollout takes from here: each batch is waited for until it is available."""
    spec, counts = found["spec"], _counts(found)
    # as Kubernetes counts: one at a time where nothing is said, and a share is rounded up
    share = str(((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable", 1))
    number = int(share.removesuffix("%"))
    at_once = math.ceil(counts.desired * number / 100) if share.endswith("%") else number
    left = counts.desired - (counts.updated if _is_seen(found) else 0)
    batches = max(1, math.ceil(left / max(1, at_once)))
    return batches * (float(spec.get("minReadySeconds") or 0) + START_SECONDS)


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


class Counts(NamedTuple):
    """Pods of a workload; `available` are those that have been ready for as long as it asks for."""

    desired: int
    ready: int
    available: int
    updated: int


def _counts(found: Raw) -> Counts:
    status = _status(found)
    if found["kind"] == "DaemonSet":
        names = ("desiredNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled")
        return Counts(*(int(status.get(name) or 0) for name in names))
    ready, updated = (int(status.get(name) or 0) for name in ("readyReplicas", "updatedReplicas"))
    return Counts(int(found["spec"].get("replicas", 1)), ready, ready, updated)


def _progress(found: Raw, counts: Counts) -> str:
    """How far a workload has come."""
    if counts.ready < counts.desired:
        return f"{counts.ready} of {counts.desired} ready"
    if counts.updated < counts.desired or counts.available >= counts.desired:
        return f"{counts.updated} of {counts.desired} updated"
    seconds = found["spec"].get("minReadySeconds") or 0
    return f"{counts.available} of {counts.desired} available, which is ready for {seconds} s"


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
