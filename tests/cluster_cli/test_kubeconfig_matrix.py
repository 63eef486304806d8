# SPDX-License-Identifier: MIT
"""The real kubectl makes the same choice in every case of the unit tests' table."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.kube.kubeconfig import Flags
from tests.support.require import require_programs
from tests.unit.kube.kubeconfig_cases import CASES, PATH, Case, Clusters, run_clusters

pytestmark = pytest.mark.cluster


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    """The clusters of the table."""
    require_programs("cluster", "kubectl")
    with run_clusters() as made:
        yield made


def flag_words(flags: Flags, servers: dict[str, str]) -> list[str]:
    """The flags as kubectl takes them."""
    named = {name: getattr(flags, name) for name in ("kubeconfig", "context", "cluster", "user", "token")}
    named["server"] = servers.get(flags.server[1:-1], "")
    insecure = ["--insecure-skip-tls-verify"] if flags.insecure else []
    return [*insecure, *(f"--{name}={value}" for name, value in named.items() if value)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kubectl_chooses_what_the_table_says(case: Case, clusters: Clusters, tmp_path: Path) -> None:
    apis, servers = clusters
    environment = {"PATH": os.environ["PATH"], **case.write(tmp_path, servers)}

    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["kubectl", *words, *flag_words(case.flags, servers)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
        )

    if not case.asks_for_a_password:
        asked = kubectl("get", "--raw", PATH)
        assert (asked.returncode != 0) == case.fails, asked.stderr
        if case.fails:
            return
        seen = {letter: api.seen for letter, api in apis.items() if api.seen}
        assert list(seen) == [case.server]
        assert seen[case.server][0].token == case.token
    if not case.flags.server and not case.flags.cluster and not case.flags.user:
        view: dict[str, Any] = json.loads(kubectl("config", "view", "--minify", "-o", "json").stdout)
        context = view["contexts"][0]["context"]
        assert context["cluster"] == case.cluster
        assert context.get("user", "") == case.user
        assert context.get("namespace", "default") == case.namespace
