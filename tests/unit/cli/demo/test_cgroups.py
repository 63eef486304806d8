# SPDX-License-Identifier: MIT
"""Which cgroup mounts can be used, and that a tree of the demo goes away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubectl_pacto.cli.demo import cgroups, cleaner

HYBRID = """\
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
proc /proc proc rw 0 0
"""


def test_the_v2_tree_comes_first_and_then_hierarchies_that_need_no_setting() -> None:
    roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd"]
    assert cgroups.hierarchies(HYBRID) == roots


def test_a_host_without_v2_has_its_v1_hierarchies() -> None:
    v1 = "".join(line for line in HYBRID.splitlines(keepends=True) if "cgroup2" not in line)
    assert cgroups.hierarchies(v1) == ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd"]


def test_a_mount_where_the_agent_does_not_look_is_none() -> None:
    assert cgroups.hierarchies("none /mnt/groups cgroup2 rw 0 0\n") == []
    assert cgroups.hierarchies("none /sys/fs/cgroups cgroup2 rw 0 0\n") == []
    assert cgroups.hierarchies("none /sys/fs/cgroup cgroup2 rw 0 0\n") == ["/sys/fs/cgroup"]


def test_no_mount_no_hierarchy() -> None:
    assert cgroups.hierarchies("") == []
    assert cgroups.hierarchies("cgroup2\n") == []


def test_a_read_only_or_absent_mount_is_not_writable(tmp_path: Path) -> None:
    assert cgroups.is_writable(str(tmp_path))
    assert not cgroups.is_writable(str(tmp_path / "absent"))


def test_a_pod_lies_where_a_kubelet_would_put_it() -> None:
    path = cgroups.pod_directory("/c/pacto-demo-1", "u-1", "f00")
    assert path == Path("/c/pacto-demo-1/kubepods/burstable/podu-1/f00")


def test_a_tree_is_removed_from_its_leaves(tmp_path: Path) -> None:
    tree = tmp_path / "pacto-demo-1"
    cgroups.pod_directory(str(tree), "u-1", "f00").mkdir(parents=True)
    assert cgroups.remove(tree) == ""
    assert not tree.exists()


def test_what_does_not_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "KILL_SECONDS", 0.05)
    tree = tmp_path / "pacto-demo-1"
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "file").touch()
    assert str(tree / "a") in cgroups.remove(tree)


def test_only_trees_of_demos_that_are_gone_are_swept(tmp_path: Path) -> None:
    gone = tmp_path / "pacto-demo-999999999-abc"
    alive = tmp_path / f"pacto-demo-{os.getpid()}-abc"
    other = tmp_path / "kubepods"
    for tree in (gone, alive, other):
        (tree / "inner").mkdir(parents=True)
    cgroups.sweep(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, alive.name]


def test_folders_of_demos_that_are_gone_are_swept_with_what_is_in_them(tmp_path: Path) -> None:
    gone = tmp_path / "pacto-demo-999999999-abc"
    alive = tmp_path / f"pacto-demo-{os.getpid()}-abc"
    for folder in (gone, alive):
        folder.mkdir()
        (folder / "node.json").touch()
    (tmp_path / "pacto-demo-999999998-abc").symlink_to(alive)
    cleaner.sweep(str(tmp_path / "absent"), str(tmp_path))
    assert not gone.exists()
    assert (alive / "node.json").exists()
