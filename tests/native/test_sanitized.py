# SPDX-License-Identifier: MIT
"""The C of ext/src under the address and undefined-behaviour sanitizers, on every test's corpus.

harness.c reads frames from its standard input and feeds them to the readers; whatever the
sanitizers find ends it with a report.
"""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from pacto_native import rows
from tests.native.test_procfs import Tree, stat
from tests.native.test_procnet import CONNECTING, IPV6, LISTENING, TEXT
from tests.native.test_ring import flow, spilled
from tests.support.require import require, require_programs

ROOT = Path(__file__).parents[2]
FLAGS = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled harness."""
    require_programs("native", "cc")
    program = tmp_path_factory.mktemp("harness") / "harness"
    sources = [Path(__file__).with_name("harness.c"), *sorted((ROOT / "ext" / "src").glob("*.c"))]
    includes = [f"-I{ROOT / 'bpf'}", f"-I{ROOT / 'ext' / 'src'}"]
    command = ["cc", *FLAGS, *includes, *map(str, sources), "-o", str(program), "-lpthread"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    missing = "libasan" if "asan" in built.stderr or "ubsan" in built.stderr else ""
    require("native", missing and f"the compiler has no sanitizers: {built.stderr.splitlines()[0]}")
    assert built.returncode == 0, built.stderr
    return program


def run(harness: Path, what: str, frames: list[bytes]) -> list[int]:
    """Feed frames; returns the numbers that the harness prints at its end."""
    stream = b"".join(struct.pack("=I", len(frame)) + frame for frame in frames)
    done = subprocess.run([harness, what], input=stream, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return [int(word) for word in done.stdout.split()]


def test_the_harness_would_notice(harness: Path) -> None:
    done = subprocess.run([harness, "overrun"], input=b"", capture_output=True, check=False)
    assert done.returncode != 0
    assert b"AddressSanitizer" in done.stderr or b"runtime error" in done.stderr


def test_records_of_every_size_and_every_byte(harness: Path) -> None:
    frames = [(flow() * 4)[:size] for size in range(4 * 48 + 1)]
    for kind in range(rows.KINDS):
        for place in range(40, 48):
            for value in range(256):
                record = bytearray(flow(kind))
                record[place] = value
                frames.append(bytes(record))
    records, *_ = run(harness, "ring", frames)
    assert records == len(frames)


def test_a_full_table_and_a_full_log(harness: Path) -> None:
    bound = rows.TABLE_ENTRIES + 100
    frames = [flow(port=i, cgroup=i // 100) for i in range(bound)]
    frames += [flow(rows.LISTEN, stamp=i) for i in range(bound)]
    printed = run(harness, "ring", frames)
    assert printed == [2 * bound, 0, 200, rows.TABLE_ENTRIES, rows.LOG_ENTRIES, 0, (bound + 99) // 100]


def test_more_callers_than_are_told_apart_and_more_peers_than_one_may_have(harness: Path) -> None:
    frames = [flow(cgroup=i) for i in range(rows.ORIGINS + 5)]
    frames += [flow(cgroup=3, port=i) for i in range(1000)]
    cut = 1000 - rows.ORIGIN_PEERS + 1
    used = rows.ORIGINS + rows.ORIGIN_PEERS - 1
    cut -= 1  # one of the ports is the one that it had
    assert run(harness, "ring", frames) == [len(frames), 0, 5, used, 0, cut, rows.ORIGINS]


def test_spilled_entries_of_random_bytes(harness: Path) -> None:
    chance = random.Random(5)
    frames = [b"".join(spilled(i % 6, chance.getrandbits(64), i, i % 9)) for i in range(500)]
    frames += [chance.randbytes(56) for _ in range(20_000)]
    assert run(harness, "spill", frames)[2] > 0


def test_socket_texts_whole_cut_and_damaged(harness: Path) -> None:
    chance = random.Random(7)
    frames = [TEXT[:cut] for cut in range(len(TEXT) + 1)]
    for line in (LISTENING, CONNECTING, IPV6):
        frames += [line[:cut] + b"\n" for cut in range(len(line))]
    for _ in range(5_000):
        damaged = bytearray(TEXT)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        frames.append(bytes(damaged))
    frames += [chance.randbytes(chance.randrange(400)) + b"\n" for _ in range(2_000)]
    frames.append(LISTENING.replace(b"16843", b"9" * 100_000) * 3)
    sockets, _ = run(harness, "net", frames)
    assert sockets > len(TEXT)


def test_process_trees_whole_cut_and_damaged(harness: Path, tmp_path: Path) -> None:
    chance = random.Random(9)
    tree = Tree(tmp_path)
    whole = stat(name="a) b")
    for cut in range(len(whole) + 1):
        tree.add(str(1000 + cut), whole[:cut])
    for pid in range(2000, 2300):
        tree.add(str(pid), chance.randbytes(chance.randrange(4096)), chance.randbytes(chance.randrange(9000)))
    for pid, link in enumerate(["net:[1]", "net:[", "n", "net:[" + "9" * 2500 + "]"], start=3000):
        tree.add(str(pid), link=link)
    tree.add("9" * 200)
    found, *rest = run(harness, "proc", [bytes(tmp_path)])
    assert found >= 2
    assert sum(rest) > 300
