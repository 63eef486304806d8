# SPDX-License-Identifier: MIT
"""Cgroup texts under atheris: never an exception, never a pod that the text does not spell."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "agent"), str(ROOT / "ext")]

with atheris.instrument_imports():
    from pacto_agent.cgroups import pod_of_process


def one_input(data: bytes) -> None:
    """A UID that is found stands in the text, with hyphens or the systemd driver's underscores."""
    found = pod_of_process(data)
    if found.uid:
        text = data.decode("utf-8", "surrogateescape")
        assert found.uid in text or found.uid.replace("-", "_") in text.replace("-", "_")
        assert "/" not in found.uid
        assert len(found.uid) <= 128


atheris.Setup(sys.argv, one_input)
atheris.Fuzz()
