# SPDX-License-Identifier: MIT
"""Which pod a cgroup path names. Pure; called by podmap.

Paths come from the kernel and from the mounted tree alone, never from another process's arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UID = r"[0-9A-Za-z][0-9A-Za-z_.\-]{0,127}"
# the systemd driver nests the names: kubelet-kubepods-burstable-pod<uid with underscores>.slice
_SLICE = re.compile(
    r"(?:[0-9A-Za-z_.]+-)*?kubepods(?:-burstable|-besteffort)?-pod([0-9A-Za-z][0-9A-Za-z_.]{0,127})\.slice"
)
_DIRECTORY = re.compile(rf"pod({_UID})")
_UNIT = re.compile(r".*\.(?:slice|scope|service|mount|socket)")
_PARENTS = frozenset({"kubepods", "burstable", "besteffort", "guaranteed"})
_CONTAINER = re.compile(r"(?:[a-z-]+-)?[0-9a-f]{64}(?:\.scope)?")


@dataclass(frozen=True, slots=True)
class PathPod:
    """What one cgroup path says: the pod's UID, and whether it is a runtime's helper beside it."""

    uid: str
    helper: bool = False


@dataclass(frozen=True, slots=True)
class ProcessPod:
    """What all of a process's cgroup paths say; `uid` is empty outside every pod.

    `by_v2`: the path in the v2 hierarchy names the pod, so a socket's cgroup id can be trusted.
    """

    uid: str = ""
    helper: bool = False
    by_v2: bool = False


def pod_of_path(path: str) -> PathPod | None:
    """The pod that `path` lies in, None for none; the outermost where clusters are nested."""
    segments = [segment for segment in path.split("/") if segment]
    for position, segment in enumerate(segments):
        parent = segments[position - 1] if position else ""
        uid = _uid_of_segment(segment, parent)
        if uid:
            helper = any(inner.startswith("crio-conmon-") for inner in segments[position + 1 :])
            return PathPod(uid, helper)
    return None


def _uid_of_segment(segment: str, parent: str) -> str:
    if found := _SLICE.fullmatch(segment):
        # only here does the driver write the UID's hyphens as underscores
        return found[1].replace("_", "-")
    found = _DIRECTORY.fullmatch(segment)
    if found is None or _UNIT.fullmatch(segment):
        return ""
    if parent in _PARENTS:
        return found[1]
    # relative to a private cgroup namespace no kubepods parent shows; then a word is no UID
    return found[1] if parent == ".." and any(character.isdigit() for character in found[1]) else ""


def pod_of_process(text: bytes, own_uid: str = "") -> ProcessPod:
    """The pod that the text of /proc/PID/cgroup names.

    Controllers' lines decide before the v2 line: on hybrid hosts an exec session may lie elsewhere
    in the v2 tree. `own_uid`: the agent's own pod, whose containers are siblings in a private
    cgroup namespace and show no more than their id.
    """
    v1: PathPod | None = None
    v2: PathPod | None = None
    for line in text.decode("utf-8", "surrogateescape").splitlines():
        number, _, rest = line.partition(":")
        _, separator, path = rest.partition(":")
        if not separator or not path.startswith("/"):
            continue
        named = pod_of_path(path) or _sibling(path, own_uid)
        if number == "0":
            v2 = named
        else:
            v1 = v1 or named
    named = v1 or v2
    if named is None:
        return ProcessPod()
    return ProcessPod(named.uid, named.helper, v2 is not None and v2.uid == named.uid)


def _sibling(path: str, own_uid: str) -> PathPod | None:
    match path.split("/"):
        case ["", "..", container] if own_uid and _CONTAINER.fullmatch(container):
            return PathPod(own_uid)
        case _:
            return None
