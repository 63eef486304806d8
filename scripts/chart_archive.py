# SPDX-License-Identifier: MIT
"""The chart's archive (`make chart`): the same bytes from the same commit; `helm package` gives others.

Helm stamps each file with the time of day. What goes in is what git knows of the chart.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
NAME: Final = "pacto-operator"
CHART: Final = ROOT / "charts" / NAME


def files() -> list[Path]:
    """The chart's files that git knows, relative to the chart."""
    listing = ["git", "ls-files", "-z", "--", "."]
    done = subprocess.run(listing, cwd=CHART, capture_output=True, text=True, check=True)
    return [Path(name) for name in sorted(filter(None, done.stdout.split("\0")))]


def build(folder: Path, epoch: int) -> Path:
    """Write the archive into a folder; its path, named as Helm names it."""
    from scripts.krew import pack

    version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["version"]
    archive = folder / f"{NAME}-{version}.tgz"
    with tempfile.TemporaryDirectory(prefix="pacto-chart-") as work:
        for name in files():
            target = Path(work) / NAME / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHART / name, target)
        pack(Path(work), archive, epoch)
    return archive


def main() -> int:
    """Build, and say what was written."""
    from scripts.krew import source_date

    parser = argparse.ArgumentParser(description="Packs the Helm chart.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "charts", help="where it goes")
    print(build(parser.parse_args().output.resolve(), source_date()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
