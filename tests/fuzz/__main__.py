# SPDX-License-Identifier: MIT
"""Fuzz the parsers: `python -m tests.fuzz [SECONDS]`, a minute each unless told otherwise.

The C kernels run under libFuzzer with the address and undefined-behaviour sanitizers, the parser of
cgroup paths under atheris where it is installed. Needs clang and its runtime (libclang-rt-dev). Exit
status 1, and the input that did it, when anything crashes or breaks a promise.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
SOURCES: Final = {"ring": ["flow_passes.c", "flow_reader.c"], "procnet": ["proc_net.c"], "procstat": []}
SEEDS: Final = {
    "ring": b"\x30" + bytes(48),
    "procnet": b" 0: 0100007F:0019 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 1\n",
    "procstat": b"42 (a b) c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0\n",
}


def fuzz_c(name: str, seconds: int, directory: Path) -> int:
    """One C harness; its exit status."""
    program, corpus = directory / name, directory / f"{name}.corpus"
    corpus.mkdir()
    (corpus / "seed").write_bytes(SEEDS[name])
    sources = [HERE / f"{name}.c", *(ROOT / "ext" / "src" / source for source in SOURCES[name])]
    flags = ["-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined"]
    include = [f"-I{ROOT / 'ext' / 'src'}", f"-I{ROOT / 'bpf'}"]
    subprocess.run(["clang", *flags, *include, *sources, "-lpthread", "-o", program], check=True)
    limits = [f"-max_total_time={seconds}", "-max_len=4096", "-print_final_stats=1", "-verbosity=0"]
    done = subprocess.run(
        [program, *limits, corpus], cwd=directory, capture_output=True, text=True, check=False
    )
    runs = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    print(f"{name}: {runs[0].split()[-1] if runs else '?'} inputs, exit status {done.returncode}")
    if done.returncode:
        print(done.stderr[-4000:])
    return done.returncode


def fuzz_python(seconds: int) -> int:
    """The parser of cgroup paths; its exit status."""
    if find_spec("atheris") is None:
        print("cgroups: atheris is not installed (pip install atheris)")
        return 0
    command = [sys.executable, str(HERE / "cgroup_paths.py"), f"-max_total_time={seconds}", "-verbosity=0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(f"cgroups: exit status {done.returncode}")
    if done.returncode:
        print(done.stderr[-4000:])
    return done.returncode


def main() -> int:
    """Fuzz each in turn; 1 when one failed."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as directory:
        statuses = [fuzz_c(name, seconds, Path(directory)) for name in SOURCES]
    return int(any([*statuses, fuzz_python(seconds)]))


if __name__ == "__main__":
    sys.exit(main())
