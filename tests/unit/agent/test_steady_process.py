# SPDX-License-Identifier: MIT
"""What an agent's process holds while it watches: each module is memory on every node for good."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

from tests.support.sources import with_sources

# the agent that publishes to an API, up to its first look at the node
PROGRAM = """
import sys
from pacto_agent import run
from pacto_agent.agent import Agent
import pacto_native.ring, pacto_native._libbpf
Agent.open = Agent.run = lambda self: None
run.main(["--sink", "kubernetes", "--node-name", "n"])
print(*sys.modules)
"""
# each of these was there once, or comes with what is convenient
FORBIDDEN = frozenset(
    {
        *("asyncio", "bz2", "concurrent", "ctypes", "decimal", "difflib", "doctest", "elftools", "hashlib"),
        *(
            "importlib.metadata",
            "importlib.resources",
            "logging",
            "lzma",
            "multiprocessing",
            "pathlib",
            "pdb",
        ),
        *("pickle", "pprint", "queue", "secrets", "shutil", "sqlite3", "subprocess", "tempfile", "unittest"),
        *("urllib.request", "uuid", "xml", "zipfile", "click", "jsonschema", "kubernetes", "yaml"),
    }
)
OURS = (
    *("kubectl_pacto.arguments", "kubectl_pacto.errors", "kubectl_pacto.kube", "kubectl_pacto.model"),
    "kubectl_pacto.stopping",
)
# of kube, what one client of one server needs
KUBE = frozenset({"client", "credentials", "errors", "paths", "retry", "transport"})


def loaded() -> set[str]:
    """The modules of that process; without `site`, whose files belong to the environment of a test."""
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    environment = with_sources() | {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *sorted(packages)])
    command = [sys.executable, "-S", "-c", PROGRAM]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return set(done.stdout.split())


def test_an_agent_holds_no_module_that_it_does_not_need() -> None:
    modules = loaded()
    assert "ssl" in modules, "it is the agent with an API"
    packages = {name.partition(".")[0] for name in modules} | modules
    assert packages & FORBIDDEN == set()


def test_of_the_product_an_agent_holds_its_own_part() -> None:
    ours = {name for name in loaded() if name.startswith("kubectl_pacto.")}
    assert {name for name in ours if not name.startswith(OURS)} == set()
    assert {name.split(".")[2] for name in ours if name.startswith("kubectl_pacto.kube.")} <= KUBE
