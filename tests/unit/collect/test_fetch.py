# SPDX-License-Identifier: MIT
"""A Pacto's contract from its registry to its status."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.conformance.fetch import contract_loader, load
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.pacto import Pacto, decode_pacto
from tests.support.builders import objects, pacto
from tests.support.bundles import CONTRACT, Answer, archive, repository, serving

SCHEMA = b'{"required": ["port"]}'
FULL = CONTRACT + b"configurations: [{name: app, required: true, schema: app.json}]\n"
LAYER = archive({"pacto.yaml": FULL, "app.json": SCHEMA})


def decoded(oci: str, **spec: Any) -> Pacto:
    return decode_pacto(Fields(pacto({"contractRef": {"oci": oci}, "spec": spec})))


def test_a_bundle_brings_its_files_and_ref() -> None:
    with serving(lambda path, _: repository("shop", LAYER).get(path, Answer(status=404))) as server:
        loaded = load(decoded(f"oci://{server.host}/shop"), contract_loader(f" {server.host} ,x"))
    assert loaded.validated.contract is not None
    assert loaded.resolved_ref == f"{server.host}/shop:1.0.0"
    assert loaded.files is not None
    assert loaded.files["app.json"] == SCHEMA


def test_overrides_are_validated_with_the_bundle() -> None:
    overrides = {"configurations": [{"name": "gone", "values": {"a": "b"}}]}
    with serving(lambda path, _: repository("shop", LAYER).get(path, Answer(status=404))) as server:
        one = decoded(f"oci://{server.host}/shop", overrides=overrides)
        loaded = load(one, contract_loader(server.host))
    assert [issue.path for issue in loaded.validated.errors] == ["spec.overrides"]


@pytest.mark.parametrize(
    ("oci", "is_unavailable"),
    [("oci://127.0.0.1:1/shop:1.0.0", True), ("oci://nowhere", False), ("oci://127.0.0.1:1/a b", False)],
)
def test_a_failure_is_unknown_if_it_may_pass_and_else_invalid(oci: str, is_unavailable: bool) -> None:
    loaded = load(decoded(oci), contract_loader())
    assert bool(loaded.unavailable) is is_unavailable
    assert bool(loaded.validated.errors) is not is_unavailable


def test_a_pull_secret_of_another_registry_is_not_used() -> None:
    data = {"token": base64.b64encode(b"t").decode(), "registry": base64.b64encode(b"other.example").decode()}
    secret = {"metadata": {"name": "pull", "namespace": "shop"}, "data": data}
    with serving(lambda *_: Answer(status=500)) as server:
        loaded = load(decoded(f"oci://{server.host}/shop:1.0.0"), contract_loader(server.host), secret)
        assert server.seen == []
    assert "is for the registry other.example" in loaded.unavailable


def test_a_pacto_without_any_contract_is_invalid() -> None:
    loaded = load(decoded(""), contract_loader())
    assert [issue.path for issue in loaded.validated.errors] == ["spec.contractRef"]


def test_evaluate_pulls_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda path, _: repository("shop", LAYER).get(path, Answer(status=404))) as server:
        row = {
            "contractRef": {"oci": f"oci://{server.host}/shop:1.0.0"},
            "target": {
                "configBindings": [
                    {
                        "configuration": "app",
                        "kind": "ConfigMap",
                        "name": "conf",
                        "key": "k",
                        "format": "yaml",
                    }
                ]
            },
            "objects": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "conf", "namespace": "shop"},
                    "data": {"k": "host: x"},
                }
            ],
        }
        path = tmp_path / "bundle.yaml"
        path.write_text(yaml.safe_dump_all(objects(row)))
        monkeypatch.setenv("PACTO_INSECURE_REGISTRIES", server.host)
        arguments = ["evaluate", "-f", str(path), "--at", "2026-10-18T09:12:44Z", "-o", "json"]
        assert main([*arguments, "--pull"]) == 3
        (item,) = json.loads(capsys.readouterr().out)
        assert item["status"]["findings"][0]["code"] == "CONFIGURATION_MISMATCH"
        assert item["status"]["contract"]["resolvedRef"] == f"{server.host}/shop:1.0.0"
        asked = len(server.seen)
        assert main(arguments) == 0
        assert len(server.seen) == asked
