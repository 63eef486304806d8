# SPDX-License-Identifier: MIT
"""What a person who gives objects to `evaluate` would not see in a verdict: which of them do not count."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.snapshot import KernelOptions
from kubectl_pacto.observe.coverage import staleness_of, why_it_does_not_count
from kubectl_pacto.observe.words import several


def evidence_notes(cluster: Cluster, kernel: KernelOptions, at: float, *, is_now: bool) -> Iterator[str]:
    """One sentence each, for stderr; `is_now`: no clock was given. None without kernel evidence."""
    if not kernel.enabled:
        return
    yield from _not_counted(cluster, kernel)
    beats = [one for one in cluster.leases if one.namespace == kernel.namespace and one.renewed is not None]
    if not beats:
        return
    newest = max(beats, key=lambda one: one.renewed or 0.0)
    seconds = (newest.renewed or 0.0) - at
    bound = staleness_of(kernel, newest)
    last = f"the newest heartbeat of the input is of {format_instant(newest.renewed or 0.0)}"
    if is_now and -seconds > bound:
        yield f"{last} and stale by now: --at TIME judges by that time"
    if not is_now and seconds > bound:
        yield f"{last}, after the time of --at, and counts as of then"


def _not_counted(cluster: Cluster, kernel: KernelOptions) -> Iterator[str]:
    beating = {one.name for one in cluster.leases if one.namespace == kernel.namespace}
    ignored, silent = [], []
    for node in cluster.nodes:
        why = why_it_does_not_count(node, kernel.namespace)
        if why:
            ignored.append(f"{node.namespace}/{node.name} ({why})")
        elif node.name not in beating:
            silent.append(node.name)
    if ignored:
        yield f"NodeRuntimeObservations that do not count: {several(ignored)}"
    if silent and cluster.failure("Lease") is None:
        yield f"no Lease in the input for {several(silent)}: an object's lastPublished is its heartbeat then"
