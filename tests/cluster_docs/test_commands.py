# SPDX-License-Identifier: MIT
"""What the documentation tells a reader to type on a cluster, typed on a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.live import Live
from tests.support.blocks import Block, blocks, in_order, pages, type_in

pytestmark = pytest.mark.cluster
ALL = [block for page in pages() for block in blocks(page) if block.tier == "cluster"]


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.name)
def test_a_block_works_on_a_cluster(block: Block, served: Live, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert not in_order(block.prints, type_in(block, tmp_path, served.kubeconfig))
