# SPDX-License-Identifier: MIT
"""What the file sink will not replace, and how much it reads of what it finds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kubectl_pacto.errors import SinkFailed
from pacto_agent.sinks.file import LARGEST_BYTES, FileSink

VIEW = {"kind": "NodeRuntimeObservation"}


def test_a_pipe_is_refused_before_anything_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SinkFailed, match="no regular file"):
        FileSink(str(tmp_path / "pipe"))


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full", "/"])
def test_a_device_or_a_directory_is_refused(path: str) -> None:
    with pytest.raises(SinkFailed, match="no regular file"):
        FileSink(path)


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    FileSink(str(link)).put(VIEW)
    assert link.is_symlink()
    assert json.loads(target.read_text())["items"] == [VIEW]


def test_a_file_too_long_to_be_ours_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as sparse:
        sparse.truncate(64 * LARGEST_BYTES)
    assert FileSink(str(file)).load() is None
