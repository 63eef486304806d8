# SPDX-License-Identifier: MIT
"""procfs.ProcessScan and its plain-Python twin agree on whole, odd, damaged and vanishing trees."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacto_native import procfs, reference, rows
from tests.support.require import require

Scan = procfs.ProcessScan | reference.ProcessScan
REST = " ".join(["1", "1", "0", "-1", "4194560", *["0"] * 8, "20", "0", "1", "0"])
CGROUP = b"0::/kubepods.slice/kubepods-pod6b7f.slice/cri-containerd-1.scope\n"
NOBODY = 65534


def stat(pid: int = 12, *, name: str = "sh", parent: str = "1", started: str = "7777") -> bytes:
    """A stat text as kernels print it: the start time is field 22, more fields follow."""
    return f"{pid} ({name}) S {parent} {REST} {started} 2416640 224\n".encode("latin-1")


class Tree:
    """A /proc of our own making."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        pid: str,
        text: bytes | None = stat(),
        cgroup: bytes | None = CGROUP,
        link: str | None = "net:[4026531840]",
    ) -> Path:
        """One process; None leaves a file out."""
        folder = self.root / pid
        (folder / "ns").mkdir(parents=True)
        if text is not None:
            (folder / "stat").write_bytes(text)
        if cgroup is not None:
            (folder / "cgroup").write_bytes(cgroup)
        if link is not None:
            (folder / "ns" / "net").symlink_to(link)
        return folder


class Said(NamedTuple):
    """A whole pass."""

    rows: list[rows.ProcessRow]
    gone: int
    denied: int
    malformed: int


def passed(scan: Scan) -> Said:
    """One pass, in batches of three."""
    found: list[rows.ProcessRow] = []
    while batch := scan.batch(3):
        assert len(batch) <= 3
        found += batch
    said = Said(sorted(found), scan.gone, scan.denied, scan.malformed)
    scan.close()
    return said


def agreed(root: Path) -> Said:
    """What both say of a tree."""
    native = passed(procfs.ProcessScan(str(root)))
    assert native == passed(reference.ProcessScan(str(root)))
    return native


@pytest.fixture
def tree() -> Iterator[Tree]:
    """An empty tree that any user may read."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield Tree(root)
    shutil.rmtree(root)


def test_a_process_is_a_row(tree: Tree) -> None:
    tree.add("12")
    assert agreed(tree.root) == ([(12, 1, 7777, 4026531840, CGROUP)], 0, 0, 0)


def test_what_is_no_process_is_passed_over(tree: Tree) -> None:
    for name in ("self", "net", "0", "012", "1a", "+1", "-1", " 1", "1 ", "2147483648", "9" * 19, "9" * 200):
        tree.add(name)
    (tree.root / "uptime").write_text("1 2\n")
    (tree.root / "55").write_text("a file, no directory")
    assert agreed(tree.root) == ([], 1, 0, 0)


def test_the_largest_pid_is_a_process(tree: Tree) -> None:
    tree.add("2147483647")
    assert len(agreed(tree.root).rows) == 1


@pytest.mark.parametrize(
    "name",
    ["", ")", "(", ") S 99 (", "a b", "a\nb", ")\n(", "\xff\xfe", "(" * 15, ")" * 15, ") R 5 " * 2, "\t \t"],
)
def test_a_name_may_hold_anything(tree: Tree, name: str) -> None:
    tree.add("12", stat(name=name))
    assert agreed(tree.root).rows == [(12, 1, 7777, 4026531840, CGROUP)]


@pytest.mark.parametrize(
    "text",
    [
        b"12",
        b"12 (sh",
        b"12 (sh)",
        b"12 (sh) S",
        b"12 (sh) S\n1 " + b"1 " * 30,
        stat().rstrip(b"\n").rsplit(b" ", 3)[0],
        stat(started="-1"),
        stat(started="x"),
        stat(started="07"),
        stat(started="9" * 19),
        stat(parent="-1"),
        stat(parent="2147483648"),
        stat(parent="00"),
        b"\0" * 100,
        b" " * 5000,
        b"12 (" + b"x" * 3000 + b") S 1",
    ],
)
def test_a_stat_of_no_known_format_is_malformed(tree: Tree, text: bytes) -> None:
    tree.add("12", text)
    assert agreed(tree.root) == ([], 0, 0, 1)


@pytest.mark.parametrize(("parent", "started"), [("0", "0"), ("2147483647", "9" * 18)])
def test_numbers_at_their_bounds_are_read(tree: Tree, parent: str, started: str) -> None:
    tree.add("12", stat(parent=parent, started=started))
    assert agreed(tree.root).rows[0][1:3] == (int(parent), int(started))


def test_a_stat_cut_at_any_byte_is_judged_alike(tree: Tree) -> None:
    whole = stat(name="a) b")
    folder = tree.add("12")
    for cut in range(len(whole) + 1):
        (folder / "stat").write_bytes(whole[:cut])
        said = agreed(tree.root)
        assert len(said.rows) + said.gone + said.malformed == 1


@pytest.mark.parametrize("missing", ["stat", "cgroup", "ns/net", "ns"])
def test_a_process_that_ends_while_it_is_read_is_gone(tree: Tree, missing: str) -> None:
    folder = tree.add("12")
    tree.add("13")
    path = folder / missing
    shutil.rmtree(path) if missing == "ns" else path.unlink()
    said = agreed(tree.root)
    assert ([row[0] for row in said.rows], said.gone) == ([13], 1)


def test_an_empty_stat_is_a_process_that_is_gone(tree: Tree) -> None:
    tree.add("12", b"")
    assert agreed(tree.root) == ([], 1, 0, 0)


@pytest.mark.parametrize(
    ("link", "netns"),
    [
        ("net:[1]", 1),
        ("net:[4294967295]", 4294967295),
        ("net:[4294967296]", 0),
        ("net:[0]", 0),
        ("net:[01]", 0),
        ("net:[]", 0),
        ("net:[", 0),
        ("net:[-1]", 0),
        ("net:[1", 0),
        ("net:[1] ", 0),
        ("net:[1]]", 0),
        ("mnt:[1]", 0),
        ("net:[" + "9" * 30 + "]", 0),
        ("net:[" + "1" * 3000 + "]", 0),
    ],
)
def test_the_namespace_is_the_number_in_the_link(tree: Tree, link: str, netns: int) -> None:
    tree.add("12", link=link)
    said = agreed(tree.root)
    assert [row[3] for row in said.rows] == ([netns] if netns else [])
    assert said.malformed == (not netns)


@pytest.mark.parametrize(
    ("size", "accepted"), [(0, True), (1, True), (8191, True), (8192, False), (100_000, False)]
)
def test_a_cgroup_text_has_a_bound(tree: Tree, size: int, accepted: bool) -> None:
    tree.add("12", cgroup=b"x" * size)
    said = agreed(tree.root)
    assert [len(row[4]) for row in said.rows] == ([size] if accepted else [])
    assert said.malformed == (not accepted)


def test_a_cgroup_text_keeps_every_byte(tree: Tree) -> None:
    text = bytes(range(256))
    tree.add("12", cgroup=text)
    assert agreed(tree.root).rows[0][4] == text


@pytest.mark.parametrize("closed", ["", "stat", "cgroup", "ns"])
def test_what_may_not_be_read_is_denied(tree: Tree, closed: str) -> None:
    (tree.add("12") / closed).chmod(0)
    tree.add("13")
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        said = agreed(tree.root)
    finally:
        if root:
            os.seteuid(0)
    (tree.root / "12" / closed).chmod(0o700)
    assert ([row[0] for row in said.rows], said.gone, said.denied) == ([13], 0, 1)


def test_processes_may_vanish_between_batches(tree: Tree) -> None:
    for pid in range(100, 140):
        tree.add(str(pid))
    scans: list[Scan] = [procfs.ProcessScan(str(tree.root)), reference.ProcessScan(str(tree.root))]
    first = [scan.batch(5) for scan in scans]
    assert first[0] == first[1]
    for pid in range(100, 140):
        shutil.rmtree(tree.root / str(pid))
    rest = [passed(scan) for scan in scans]
    assert rest[0] == rest[1]
    assert rest[0].rows == []
    assert rest[0].gone <= 35


@pytest.mark.parametrize("scan", [procfs.ProcessScan, reference.ProcessScan])
def test_a_pass_ends_once_and_for_all(tree: Tree, scan: type[Scan]) -> None:
    tree.add("12")
    one = scan(os.fsencode(tree.root))
    assert one.batch(0) == one.batch(-1) == []
    assert len(one.batch(9)) == 1
    assert one.batch(9) == []
    one.close()
    one.close()
    assert one.batch(9) == []


@pytest.mark.parametrize("scan", [procfs.ProcessScan, reference.ProcessScan])
def test_a_tree_that_cannot_be_listed_is_an_error(tree: Tree, scan: type[Scan]) -> None:
    with pytest.raises(FileNotFoundError):
        scan(str(tree.root / "absent"))
    (tree.root / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        scan(str(tree.root / "file"))
    with pytest.raises(ValueError, match="embedded null"):
        scan("/proc\0/x")


@given(st.binary(max_size=200), st.binary(max_size=60), st.booleans())
def test_random_texts_are_judged_alike(text: bytes, name: bytes, framed: bool) -> None:
    with tempfile.TemporaryDirectory() as root:
        Tree(Path(root)).add("12", b"12 (" + name + b") S 1 " + text if framed else text)
        agreed(Path(root))


WORDS = st.sampled_from(
    ["(", ")", " ", "  ", "\n", "1", "0", "-1", "S", "77", "9" * 18, "9" * 19, "2147483648"]
)


@given(st.lists(WORDS, max_size=60))
def test_random_words_of_the_format_are_judged_alike(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as root:
        Tree(Path(root)).add("12", ("12 (x) " + " ".join(words)).encode())
        agreed(Path(root))


def test_this_machine_has_this_process() -> None:
    require("native", "" if sys.platform == "linux" else "needs Linux")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        both = [passed(procfs.ProcessScan("/proc")).rows, passed(reference.ProcessScan("/proc")).rows]
        child.communicate(b"\n")
    for found in both:
        row = next(row for row in found if row[0] == child.pid)
        assert row[1] == os.getpid()
        assert row[3] == Path("/proc/self/ns/net").stat().st_ino
        assert row[4] == Path("/proc/self/cgroup").read_bytes()


@pytest.mark.parametrize("kind", [procfs.ProcessScan, reference.ProcessScan])
def test_a_number_used_again_never_mixes_two_processes(tree: Tree, kind: type[Scan]) -> None:
    folder = tree.add("12", text=None)
    os.mkfifo(folder / "stat")  # a reader waits here, with the process's directory open

    def end_and_begin_again() -> None:
        with (folder / "stat").open("wb") as pipe:
            folder.rename(tree.root / "ended")
            tree.add("12", stat(started="9999"), b"0::/another\n", "net:[4026539999]")
            pipe.write(stat())

    other = threading.Thread(target=end_and_begin_again)
    other.start()
    said = passed(kind(str(tree.root)))
    other.join()
    assert (12, 1, 7777, 4026531840, CGROUP) in said.rows
    assert {row[1:] for row in said.rows} <= {
        (1, 7777, 4026531840, CGROUP),
        (1, 9999, 4026539999, b"0::/another\n"),
    }
