# SPDX-License-Identifier: MIT
"""What `evaluate` prints for one cluster in each form, as golden files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from tests.support.builders import objects

ROW: dict[str, Any] = {
    "contract": {
        "interfaces": ["api", {"name": "admin", "type": "grpc", "visibility": "public"}],
        "dependencies": ["db", {"name": "cache", "required": False}],
        "capabilities": [
            {"type": "health", "binding": {"type": "http", "interface": "api", "path": "/healthz"}}
        ],
        "workload": "service",
        "state": {
            "type": "stateful",
            "persistence": {"scope": "local", "durability": "persistent"},
            "dataCriticality": "low",
        },
    },
    "target": {
        "interfaceBindings": [
            {"interface": "api", "servicePort": "http"},
            {"interface": "admin", "servicePort": "admin"},
        ]
    },
    "service": {
        "ports": [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "admin", "port": 81, "targetPort": 8081},
        ],
        "slicePorts": [{"name": "http", "port": 8080}, {"name": "admin", "port": 8081}],
    },
    "pods": {
        "a": {
            "listens": ["0.0.0.0:8081"],
            "peers": ["10.96.0.1:5432 fail 5", "10.96.0.3:5432 ok 12"],
        },
    },
    "providers": {"db": {"version": "2.0.0"}, "cache": {}, "audit": {}},
    "windows": {"interface/api": 180, "dependency/db": 60},
}


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize("evidence", [False, True], ids=["plain", "evidence"])
def test_output(
    form: str,
    evidence: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    path = tmp_path / "bundle.yaml"
    path.write_text(yaml.safe_dump_all(objects(ROW)))
    words = ["evaluate", "-f", str(path), "--at", "2026-10-18T09:12:44Z", "-o", form]
    assert main([*words, "--evidence"] if evidence else words) == 3
    golden(f"evaluate{'-evidence' if evidence else ''}.{form}", capsys.readouterr().out)
