# SPDX-License-Identifier: MIT
"""The release as a user installs it: the plugin's own commands, as processes, with short intervals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cluster.layout import REPOSITORY
from tests.images import runtime

OPERATORS: Final = "pacto-operator-system"
AGENTS: Final = "pacto-node-agent"
# nodes with this label run an agent of the operator's; on others a scenario runs its own, or none
LABEL: Final = "acceptance.example/agent"
WINDOW_SECONDS: Final = 4.0
INTERVAL_SECONDS: Final = 3.0
REPOSITORY_NAME, _, TAG = runtime.NAME.rpartition(":")
VALUES: Final[dict[str, Any]] = {
    "image": {"repository": REPOSITORY_NAME, "tag": TAG, "pullPolicy": "Never"},
    "controller": {"stabilizationWindow": f"{WINDOW_SECONDS:g}s"},
    "nodeAgent": {
        "image": runtime.NAME,
        "imagePullPolicy": "Never",
        "publishInterval": f"{INTERVAL_SECONDS:g}s",
        "resyncInterval": "10s",
        "nodeSelector": {LABEL: "managed"},
    },
}


class PluginFailed(Exception):
    """A command of the plugin did not succeed."""


@dataclass
class Plugin:
    """`kubectl pacto` of a source tree, against one cluster."""

    kubeconfig: Path
    tree: Path = REPOSITORY

    def run(self, *words: str, text: str | None = None, check: bool = True) -> str:
        """A command's output. Raises PluginFailed with all it said."""
        done = subprocess.run(
            [sys.executable, "-m", "kubectl_pacto", *words],
            cwd=self.tree,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        if check and done.returncode:
            raise PluginFailed(
                f"kubectl pacto {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def install(self, values: Path, *more: str) -> str:
        """The operator, its CRDs and rights; waits until all of it is ready."""
        values.write_text(json.dumps(VALUES))
        return self.run("install", "-f", str(values), "--timeout", "120s", *more)
