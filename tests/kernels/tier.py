# SPDX-License-Identifier: MIT
"""The kernel tier (tests/kernel) under another kernel, and what of it did not run there."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.layout import REPOSITORY, ClusterError
from tests.images import runtime
from tests.kernels import machine
from tests.kernels.machine import Machine
from tests.support import balancer

SOURCES: Final = {"/src/tests": REPOSITORY / "tests", "/src/pyproject.toml": REPOSITORY / "pyproject.toml"}
FOLDER: Final = "tests/kernel"
EXTRA: Final = ("pytest", "hypothesis")
PATIENCE: Final = "120"  # seconds that a test waits for what has to come
APART: Final = ("test_demo.py",)
# Left out and counted: they are about what only the machine's own kernel or host has.
CHOICE: Final = ("-m", "not own_kernel")
PYTEST: Final = ("python3", "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-rfEs")
SKIPPED: Final = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.*)$", re.MULTILINE)
COUNT: Final = re.compile(r"(\d+) (passed|failed|error|skipped|deselected)s?\b")
TOOK: Final = re.compile(
    r"^(?:=+ )?\d+ (?:passed|failed|error|skipped|deselected).* in [\d.]+s.*$", re.MULTILINE
)
# What a kernel may lack; any other skip in there is a test that ought to have run.
LACKS: Final = {
    "bullseye": ("kernel: without MPTCP", "kernel: no iterator of sockets before 5.11"),
    "bookworm": (),
    "trixie": (),
}


@dataclass(frozen=True)
class Outcome:
    """How a part of the tier went under one kernel; `skipped` has the number of tests per reason."""

    suite: str
    release: str
    passed: int
    failed: int
    left_out: int
    skipped: Counter[str]
    seconds: float
    output: str

    def unexpected(self) -> list[str]:
        """Reasons of skips that this kernel gives no cause for."""
        return [one for one in self.skipped if not one.startswith(LACKS[self.suite])]

    def line(self) -> str:
        """One line for a person."""
        skipped = f", {self.skipped.total()} skipped" if self.skipped else ""
        return (
            f"Linux {self.release}: {self.passed} passed, {self.failed} failed{skipped}, "
            f"{self.left_out} left out, {self.seconds:.0f} s"
        )


def programs(root: Path, *names: str) -> dict[str, Path]:
    """This machine's own programs for a root that lacks them, with the libraries that it lacks too.

    The root's release of Debian has to be no older than theirs; raises ClusterError for one that is
    not installed.
    """
    taken: dict[str, Path] = {}
    for name in names:
        found = shutil.which(name)
        if found is None:
            raise ClusterError(f"not on PATH: {name}")
        taken[f"/usr/local/sbin/{name}"] = Path(found)
        listed = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"=> (/\S+)", listed):
            if not (root / library.lstrip("/")).exists():
                taken[f"/usr/lib/{Path(library).name}"] = Path(library).resolve()
    return taken


def parts() -> list[tuple[str, ...]]:
    """The tier's files, in parts that take minutes each: what hangs takes no other part along."""
    files = [f"{FOLDER}/{path.name}" for path in sorted((REPOSITORY / FOLDER).glob("test_*.py"))]
    apart = [f"{FOLDER}/{name}" for name in APART]
    return [tuple(one for one in files if one not in apart), *((one,) for one in apart)]


def run(
    suite: str,
    chosen: Sequence[str] = (),
    *,
    timeout: int = 460,
    echo: bool = False,
    arm64: Path | None = None,
) -> Outcome:
    """Run these files of the tier, all of it by default, under a suite's kernel.

    With `arm64`, a root of that architecture with all that tests need, under its kernel of that suite.
    """
    with tempfile.TemporaryDirectory() as name:
        prepared = Path(name) / balancer.PREPARED.name
        prepared.write_bytes(balancer.compiled())  # the root has no compiler
        root = arm64 or runtime.directory(EXTRA)
        added = {} if arm64 else programs(root, "nft")
        made = Machine(
            suite,
            root,
            cwd="/src",
            add={**SOURCES, f"/src/tests/support/{prepared.name}": prepared, **added},
            environment={"PACTO_PROMISED": "kernel", "PACTO_PATIENCE": PATIENCE},
            timeout=timeout,
            architecture="arm64" if arm64 else "amd64",
        )
        words = ("sh", "-c", 'uname -r; exec "$@"', "sh", *PYTEST, *CHOICE, *(chosen or (FOLDER,)))
        result = machine.run(made, words, echo=echo)
    return read(suite, result)


def read(suite: str, result: machine.Result) -> Outcome:
    """The outcome that pytest's last lines tell; raises ClusterError where it did not get that far."""
    ends = TOOK.findall(result.output)
    if not ends:
        raise ClusterError(f"{suite}: pytest ended with {result.status} and said no result\n{result.output}")
    counts = {word: int(number) for number, word in COUNT.findall(ends[-1])}
    skipped: Counter[str] = Counter()
    for number, reason in SKIPPED.findall(result.output):
        skipped[reason] += int(number)
    return Outcome(
        suite=suite,
        release=result.output.partition("\n")[0].strip(),
        passed=counts.get("passed", 0),
        failed=counts.get("failed", 0) + counts.get("error", 0),
        left_out=counts.get("deselected", 0),
        skipped=skipped,
        seconds=result.seconds,
        output=result.output,
    )
