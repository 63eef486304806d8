# SPDX-License-Identifier: MIT
"""An operator as a process of this machine, with the arguments of the one that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.acceptance.release import OPERATORS
from tests.cluster.layout import REPOSITORY, cache
from tests.cluster.live import Live
from tests.faults.proxy import FaultyProxy
from tests.support import debian

NAME: Final = "pacto-operator"
LEFT_OUT: Final = ("--leader-elect", "--metrics-bind-address", "--health-probe-bind-address")
START: Final = "import sys; from kubectl_pacto.controller.run import main; sys.exit(main(sys.argv[1:]))"
END_SECONDS: Final = 30


def arguments(live: Live) -> list[str]:
    """What the installed operator was told, but for its ports and its election."""
    found = live.api.get("apps/v1", "Deployment", NAME, OPERATORS)
    assert found is not None
    told = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return [one for one in told if not one.startswith(LEFT_OUT)]


def kubeconfig(path: Path, url: str) -> Path:
    """A kubeconfig of the proxy, which needs no credentials."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": url}}],
        "users": [{"name": "proxy", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "current-context": "proxy",
    }
    path.write_text(json.dumps(config))
    return path


def faketime() -> Path | None:
    """Debian's library that shifts a process's clock; None where apt has none."""
    root = cache() / "packages" / "libfaketime"
    if not list(root.glob("usr/lib/*/faketime/libfaketimeMT.so.1")):
        debian._unpack("libfaketime", root)
    return next(iter(root.glob("usr/lib/*/faketime/libfaketimeMT.so.1")), None)


@dataclass
class HostOperator:
    """One operator; its log is beside its kubeconfig."""

    live: Live
    proxy: FaultyProxy
    folder: Path
    skew: float = 0.0
    more: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run it through the proxy."""
        config = kubeconfig(self.folder / "proxy.kubeconfig", self.proxy.url)
        environment = os.environ | {
            "POD_NAMESPACE": OPERATORS,
            "POD_NAME": "on-the-host",
            "PYTHONPATH": str(REPOSITORY),
        }
        if self.skew:
            library = faketime()
            assert library is not None, "Debian's libfaketime cannot be had"
            environment |= {
                "LD_PRELOAD": str(library),
                "FAKETIME": f"{self.skew:+.0f}s",
                "DONT_FAKE_MONOTONIC": "1",
            }
        words = [*arguments(self.live), f"--kubeconfig={config}", *self.more]
        ports = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
        with (self.folder / "operator.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, *words, *ports],
                cwd=REPOSITORY, env=environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def runs(self) -> bool:
        """Whether it is still the process that was started."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """End it as a node would, and see that it ends."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise

    def log(self) -> str:
        """The end of what it said."""
        return (self.folder / "operator.log").read_text(errors="replace")[-4000:]
