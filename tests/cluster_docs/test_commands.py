# SPDX-License-Identifier: MIT
"""What the documentation tells a reader to type on a cluster, typed on a real API server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.live import Live
from tests.support.blocks import Block, blocks, in_order, pages, shims
from tests.support.sources import ROOT

pytestmark = pytest.mark.cluster
ALL = [block for page in pages() for block in blocks(page) if block.tier == "cluster"]


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.name)
def test_a_block_works_on_a_cluster(block: Block, served: Live, tmp_path: Path) -> None:
    programs, work = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    shims(programs, f"{sys.executable} -m kubectl_pacto")
    paths = os.pathsep.join(str(ROOT / part) for part in ("", "agent", "ext"))
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": paths,
        "KUBECONFIG": str(served.kubeconfig),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        ["sh", "-eu", "-c", block.source],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not in_order(block.prints, done.stdout)
