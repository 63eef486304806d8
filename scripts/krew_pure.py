# SPDX-License-Identifier: MIT
"""The krew archive for platforms that we do not build on: Python files, for the Python that is there."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# what the plugin never imports, is native, or only built the other archive
LEFT_OUT: Final = re.compile(r"^(pacto_agent|pacto_native|_yaml|rpds)/|\.(so|pyd|pyc)$|^\.\.|__pycache__")
NOT_PURE: Final = frozenset({"rpds_py"})
LAUNCHER: Final = """\
#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
import os
import sys

if sys.version_info < (3, 11):
    sys.stderr.write("error: kubectl pacto needs Python 3.11 or newer, and this is %s (%s)\\n"
                     % (sys.version.split()[0], sys.executable))
    sys.exit(1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from kubectl_pacto.entry import main

sys.exit(main())
"""


def dists(site: Path, tools: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """Name and dist-info of each distribution that comes along: ours, and what it needs at run time."""
    for info in sorted(site.glob("*.dist-info")):
        name = info.name.partition("-")[0].lower()
        built_with = name in tools - {"kubectl_pacto"} or name.startswith("pyinstaller")
        if not built_with and name not in NOT_PURE and name != "pip":
            yield name, info


def lay_out(folder: Path, site: Path, tools: frozenset[str], completion: str) -> None:
    """Fill a folder: the launcher, `lib` with the packages, `licenses` with what they ask to be shown."""
    for name, info in dists(site, tools):
        with (info / "RECORD").open(newline="", encoding="utf-8") as record:
            listed = [row[0] for row in csv.reader(record)]
        for one in listed:
            if not LEFT_OUT.search(one):
                copy(site / one, folder / "lib" / one)
        for text in info.rglob("*"):
            if text.is_file() and re.match(r"(LICEN[CS]E|COPYING|NOTICE)", text.name):
                copy(text, folder / "licenses" / name / text.name)
    copy(ROOT / "scripts" / "krew_rpds.py", folder / "lib" / "rpds" / "__init__.py")
    for name in ("LICENSE", "NOTICE"):
        copy(ROOT / name, folder / name)
    write_program(folder / "kubectl-pacto", LAUNCHER)
    write_program(folder / "kubectl_complete-pacto", completion)


def copy(source: Path, target: Path) -> None:
    """A file with the folders above it; never as a program."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o644)


def write_program(path: Path, text: str) -> None:
    """A script that may be run."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
