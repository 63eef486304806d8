# SPDX-License-Identifier: MIT
"""The applications that an upgrade goes past: some on each of two nodes, one rightly accused on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.acceptance.table import Scenario, _scenario

SERVES: Final = "interface/api Observed present=True type=openapi k8s-observer+ebpf"
CALLS: Final = "dependency/store Observed reachable=True k8s-observer+ebpf"
CODE: Final = "INTERFACE_ABSENT"
ABSENT: Final = f"{CODE} error k8s-observer+ebpf interface/api"
# rightly accused, of CODE and of nothing else
GUILTY: Final = frozenset({"bad", "worse"})
# calls before the upgrade and is quiet through it: what is known of it then is what was taken over
QUIET: Final = "guest"
CALLER: Final = "caller.py ${ip:store}:80"
# name -> which of the nodes, and what it runs
APPS: Final[Mapping[str, tuple[int, dict[str, Any]]]] = {
    "store": (0, {}),
    "good": (1, {}),
    "shop": (1, {"program": CALLER, "serve": False, "needs": ["store"]}),
    QUIET: (0, {"program": CALLER, "serve": False}),
    "bad": (0, {"run": "silent"}),
    "worse": (1, {"run": "silent"}),
}
EXPECTED: Final[Mapping[str, dict[str, Any]]] = {
    "store": {"status": "Compliant", "findings": [], "evidence": [SERVES]},
    "good": {"status": "Compliant", "findings": [], "evidence": [SERVES]},
    "shop": {"status": "Compliant", "findings": [], "evidence": [CALLS]},
    QUIET: {"status": "Warning", "findings": ["DEPENDENCY_UNDECLARED warning ebpf dependency/store"]},
    "bad": {"status": "NonCompliant", "findings": [ABSENT]},
    "worse": {"status": "NonCompliant", "findings": [ABSENT]},
}


def scenario(nodes: Sequence[str]) -> Scenario:
    """All of them, and what each must say whichever release judges it."""
    apps = {
        name: {**raw, "pod": {"nodeSelector": {"kubernetes.io/hostname": nodes[number]}}}
        for name, (number, raw) in APPS.items()
    }
    step = {"cause": "all is as it should be", "expect": EXPECTED}
    return _scenario({"id": "upgrade", "proves": [], "keeps": True, "apps": apps, "steps": [step]})
