# SPDX-License-Identifier: MIT
"""Every public case is answered, and every test that it names is one that pytest collects."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import pytest
import yaml

from tests.support.sources import ROOT

# the numbers of the cases that were gathered; they have gaps
KNOWN = (
    "1 2 4 5 7 8 9 11 12 13 15 16 17 18 19 20 21 22 24 25 26 27 28 30 32 33 34 35 37 38 39 40 41 42 43 44 "
    "46 47 48 50 51 54 56 57 58 60 61 62 64 65 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 "
    "89 91 94 95 97 98 99 100 102 103 104 105 106 108 109"
)
DECISION = ROOT / "docs" / "decisions" / "090-public-cases-and-where-we-differ.md"
GROUPS: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "public_cases.yaml").read_text())
CASES: list[dict[str, Any]] = [case for group in GROUPS for case in group["cases"]]


@cache
def collected() -> frozenset[str]:
    """Every test of the files that are named, with and without its parameters, as pytest finds them."""
    files = sorted({name.partition("::")[0] for case in CASES for name in case.get("tests", ())})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    paths = [f"tests/{name}" for name in files]
    done = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = {line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}
    return frozenset(found | {name.partition("[")[0] for name in found})


def test_every_known_case_is_answered_once() -> None:
    assert [case["id"] for case in CASES] == [f"B{number}" for number in KNOWN.split()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_says_what_is_right_and_which_tests_hold_it(case: dict[str, Any]) -> None:
    assert case.keys() <= {"id", "case", "right", "tests", "differs"}
    for part in ("case", "right", "differs"):
        assert part not in case or case[part].endswith((".", "?")), case[part]
    assert case.get("tests"), "a case without a test proves nothing"
    assert len(set(case["tests"])) == len(case["tests"])
    missing = [name for name in case["tests"] if name not in collected()]
    assert not missing


def test_what_differs_is_in_the_record_of_decisions() -> None:
    text = DECISION.read_text()
    for case in CASES:
        assert (f"**{case['id']}**" in text) == ("differs" in case), case["id"]
