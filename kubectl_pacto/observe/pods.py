# SPDX-License-Identifier: MIT
"""Which running pods are a workload's."""

from __future__ import annotations

from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.kube import Pod, Unreadable, Workload
from kubectl_pacto.model.pacto import WORKLOAD_KINDS
from kubectl_pacto.model.snapshot import Snapshot

# what stands between a workload and its pods
_BETWEEN = {"Deployment": "ReplicaSet", "CronJob": "Job"}
_MAX_HOPS = 4


def target_workload(snapshot: Snapshot) -> Workload | Unreadable | None:
    """The target's workload."""
    pacto = snapshot.pacto
    if not pacto.workload_name:
        return None
    return snapshot.cluster.workload(pacto.workload_kind, pacto.namespace, pacto.workload_name)


def running_pods(snapshot: Snapshot) -> list[Pod]:
    """The running pods of the target's workload, by name; none if the workload is not known."""
    workload = target_workload(snapshot)
    if workload is None or isinstance(workload, Unreadable):
        return []
    return [pod for pod in _pods_of(snapshot.cluster, workload) if pod.running]


def _pods_of(cluster: Cluster, workload: Workload) -> list[Pod]:
    if workload.kind == "CronJob":
        jobs = cluster.workloads_owned(workload.namespace, "CronJob", workload.name)
        return [
            pod
            for job in jobs
            if job.kind == "Job" and _leads_to(cluster, job, workload) is not False
            for pod in cluster.pods_owned(job.namespace, "Job", job.name)
        ]
    pods = cluster.pods_selected(workload.namespace, workload.selector)
    return [pod for pod in pods if _leads_to(cluster, pod, workload) is not False]


def _leads_to(cluster: Cluster, item: Pod | Workload, workload: Workload) -> bool | None:
    """Whether the chain of controllers leads to the workload; None when it is not known to its end."""
    for _ in range(_MAX_HOPS):
        owner = item.owner
        if owner is None:
            # a pod without controller is one that the workload may adopt
            return None if isinstance(item, Pod) else False
        if (owner.kind, owner.name) == (workload.kind, workload.name):
            return not owner.uid or not workload.uid or owner.uid == workload.uid
        parent = (
            cluster.workload(owner.kind, workload.namespace, owner.name)
            if owner.kind in WORKLOAD_KINDS
            else None
        )
        if parent is None or isinstance(parent, Unreadable):
            return None if owner.kind == _BETWEEN.get(workload.kind) else False
        if owner.uid and parent.uid and owner.uid != parent.uid:
            return None
        item = parent
    return None
