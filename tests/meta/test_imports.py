# SPDX-License-Identifier: MIT
"""The arrow points down: the contracts hold, each breaks on a planted fault, no module is in a cycle."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.support.require import require
from tests.support.sources import PACKAGES, ROOT, files

DEPTH = 8
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
# (contract, file that gets the line, the line): one for each contract at least
FAULTS = [
    ("layers", "kubectl_pacto/model/bounds.py", "import kubectl_pacto.observe.pods"),
    ("layers", "kubectl_pacto/observe/pods.py", "import kubectl_pacto.engine"),
    ("layers", "kubectl_pacto/engine/__init__.py", "import kubectl_pacto.cli"),
    ("layers", "kubectl_pacto/cli/main.py", "import kubectl_pacto.controller"),
    ("manifests", "kubectl_pacto/controller/manifests/__init__.py", "import kubectl_pacto.kube.client"),
    ("manifests", "kubectl_pacto/controller/manifests/agent_objects.py", "import kubectl_pacto.kube"),
    ("layers", "kubectl_pacto/cli/__init__.py", "import kubectl_pacto.controller.generate"),
    ("agent-layers", "agent/pacto_agent/view.py", "import pacto_agent.tracer"),
    ("agent-layers", "agent/pacto_agent/tracer.py", "import pacto_agent.mapper"),
    ("pure-core", "kubectl_pacto/observe/pods.py", "import time"),
    ("pure-core", "kubectl_pacto/model/bounds.py", "import socket"),
    ("pure-core", "agent/pacto_agent/view.py", "import os"),
    ("agent-reports", "agent/pacto_agent/run.py", "import kubectl_pacto.engine"),
    ("pure-plugin", "kubectl_pacto/cli/__init__.py", "import pacto_agent"),
    ("pure-plugin", "kubectl_pacto/model/bounds.py", "import elftools"),
    ("native-alone", "ext/pacto_native/rows.py", "import kubectl_pacto.errors"),
    ("twins-stay-home", "agent/pacto_agent/baseline.py", "import pacto_native.reference"),
]
AGENT_MAY_IMPORT = {
    "kubectl_pacto",
    *("kubectl_pacto.arguments", "kubectl_pacto.errors", "kubectl_pacto.model", "kubectl_pacto.kube"),
    "kubectl_pacto.launcher",  # how a command ends
    "kubectl_pacto.stopping",  # when one is told to
}


def lint(root: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a tree, for some contracts or all."""
    script = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    limited = [word for one in contracts for word in ("--contract", one)]
    path = os.pathsep.join(str(root / source) for source in PACKAGES.values())
    return subprocess.run(
        [sys.executable, "-c", script, "--no-cache", *limited],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, to plant faults in."""
    require("unit", "" if have_linter() else "import-linter is not installed (pip install --group lint)")
    root = tmp_path_factory.mktemp("tree")
    for package, source in PACKAGES.items():
        skip = shutil.ignore_patterns("__pycache__", "*.so", "*.o", "*.egg-info")
        shutil.copytree(ROOT / source / package, root / source / package, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


@cache
def have_linter() -> bool:
    """Whether the lint group is installed here."""
    command = [sys.executable, "-c", "import importlinter"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_contracts_hold(tree: Path) -> None:
    done = lint(tree)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("contract", "name", "line"), FAULTS)
def test_a_planted_fault_breaks_its_contract(tree: Path, contract: str, name: str, line: str) -> None:
    path = tree / name
    text = path.read_text()
    try:
        path.write_text(f"{text}\n{line}\n")
        done = lint(tree, contract)
    finally:
        path.write_text(text)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout


def test_every_contract_has_a_planted_fault() -> None:
    assert {contract["id"] for contract in CONTRACTS} == {contract for contract, _, _ in FAULTS}


def imported(name: str) -> set[str]:
    """Modules that a file imports anywhere, by full name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
    return found


@pytest.mark.parametrize("name", [name for name in files(".py") if name.startswith("agent/pacto_agent/")])
def test_the_agent_reads_only_the_model_and_the_transport(name: str) -> None:
    ours = {one for one in imported(name) if one.startswith("kubectl_pacto.")}
    beyond = {one for one in ours if ".".join(one.split(".")[:2]) not in AGENT_MAY_IMPORT}
    assert not {one for one in beyond if module_exists(one)}


def module_exists(name: str) -> bool:
    """Whether a dotted name is a module of ours rather than a name in one."""
    path = ROOT / Path(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


@cache
def graph() -> dict[str, set[str]]:
    """Our modules and what each imports of ours, lazily too."""
    modules = {}
    for package, source in PACKAGES.items():
        for name in files(".py"):
            base = name.removeprefix(f"{source}/")
            if base.startswith(f"{package}/") and not name.startswith("tests/"):
                modules[base.removesuffix(".py").removesuffix("/__init__").replace("/", ".")] = name
    return {module: (imported(name) & modules.keys()) - {module} for module, name in modules.items()}


def test_no_module_imports_itself_in_a_circle() -> None:
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above[above.index(module) :], module])
        if module not in done:
            for one in sorted(graph()[module]):
                visit(one, (*above, module))
            done.add(module)

    for module in graph():
        visit(module, ())


def test_the_chain_of_imports_is_short() -> None:
    # within a package: between packages the layers bound the way already
    @cache
    def depth(module: str) -> int:
        beside = {one for one in graph()[module] if one.rpartition(".")[0] == module.rpartition(".")[0]}
        return 1 + max((depth(one) for one in beside), default=0)

    deep = {module: depth(module) for module in graph() if depth(module) > DEPTH}
    assert not deep
