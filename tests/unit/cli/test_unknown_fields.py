# SPDX-License-Identifier: MIT
"""A field that no Pacto has is named, with the one that is meant: it must not pass as if it were read."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.cli.unknown_fields import unknown_fields

ROOT = Path(__file__).parents[3]


def pacto(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "pacto.trianalab.io/v1alpha1",
        "kind": "Pacto",
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"target": {"serviceName": "web"}}, []),
        (
            {"target": {"serviceNam": "web"}},
            ["spec.target.serviceNam, which is not read: is serviceName meant?"],
        ),
        (
            {"zzz": 1, "target": {"workloadRef": {"kind": "Deployment", "nme": "web"}}},
            ["spec.zzz, which is not read", "spec.target.workloadRef.nme, which is not read: is name meant?"],
        ),
        ({"target": None, "contractRef": []}, []),
        ("text", []),
    ],
)
def test_a_field_that_is_none_is_named_with_the_one_that_is_meant(spec: object, said: list[str]) -> None:
    raw = pacto()
    raw["spec"] = spec
    found = list(unknown_fields([raw]))
    assert found == [f"Pacto shop/web has the unknown field {one}" for one in said]


def test_a_pacto_of_another_version_is_named() -> None:
    raw = pacto(target={"serviceName": "web"}) | {"apiVersion": "pacto.trianalab.io/v1"}
    (said,) = unknown_fields([raw])
    assert said == "Pacto shop/web is of pacto.trianalab.io/v1 and read as pacto.trianalab.io/v1alpha1"


def test_evaluate_says_it_on_standard_error_and_still_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pacto.yaml"
    file.write_text(yaml.safe_dump(pacto(contractRef={"inline": "x"}, target={"serviceNam": "web"})))
    main(["evaluate", "-f", str(file)])
    done = capsys.readouterr()
    assert "unknown field spec.target.serviceNam" in done.err
    assert "web" in done.out


def test_examples_have_known_fields_alone() -> None:
    for file in [*ROOT.glob("docs/examples/*.yaml"), *ROOT.glob("kubectl_pacto/cli/**/*.yaml")]:
        pactos = [one for one in yaml.safe_load_all(file.read_text()) if one and one.get("kind") == "Pacto"]
        assert list(unknown_fields(pactos)) == []
