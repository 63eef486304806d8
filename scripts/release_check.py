# SPDX-License-Identifier: MIT
"""What of a built wheel is run before it is released, on the machine that it is for.

Its compiled readers against their plain-Python twins (tests/native), installed as a user would, away from
the checkout. Under emulation that is the user-mode emulator's processor and this machine's kernel.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path
from typing import Final

from scripts.release_machines import ROOT, Machine, ReleaseError

# as pyproject.toml has them for tests
PACKAGES: Final = ("pytest>=8.3", "hypothesis>=6.100")
# they compile sources of their own, and ask nothing of a wheel
LEFT_OUT: Final = ("test_sanitized.py", "test_build_libbpf.py")
NEEDED: Final = ("tests", "bpf", "ext/src")
PASSED: Final = re.compile(r"^(\d+) passed.*$", re.MULTILINE)


def readers(machine: Machine, python: Path, wheel: Path, tree: Path) -> str:
    """Run the tests in `tree`, a copy of them; one line about it. Raises ReleaseError where one fails."""
    for name in NEEDED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.o"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    with zipfile.ZipFile(wheel) as archive:  # the programs that it has are those that are looked at
        for name in archive.namelist():
            if name.endswith(".bpf.o"):
                archive.extract(name, tree / "agent")
    left_out = [f"--ignore=tests/native/{name}" for name in LEFT_OUT]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=.", *left_out, "tests/native")
    said = machine.run(python, *words, cwd=tree, PACTO_PROMISED="native", PYTHONDONTWRITEBYTECODE="1")
    found = PASSED.search(said)
    if found is None:
        raise ReleaseError(f"{wheel.name}: its tests said no result:\n{said[-2000:]}")
    return f"{wheel.name}: readers against their twins, {found[0]}"
