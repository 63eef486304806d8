# SPDX-License-Identifier: MIT
"""A status against what is expected of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.acceptance.table import Expected


def words_of(finding: Mapping[str, Any]) -> str:
    """A finding as the tables write it: code, severity, collector, subject."""
    refs = finding.get("evidenceRefs") or [{}]
    words = [finding["code"], finding["severity"], refs[0].get("collector", "-"), finding.get("subject", "-")]
    return " ".join(words)


def codes(status: Mapping[str, Any]) -> set[str]:
    """The codes of a status's findings."""
    return {item["code"] for item in status.get("findings", ())}


def mismatch(expected: Expected, status: Mapping[str, Any]) -> str:
    """How a status differs from what is expected; empty if it does not."""
    if status.get("contractStatus") != expected.status:
        return f"is {status.get('contractStatus', 'unchecked')}, not {expected.status}: {summary(status)}"
    found = [words_of(item) for item in status.get("findings", ())]
    if expected.findings is not None and not _same(expected.findings, found):
        return f"has findings {found}, not {list(expected.findings)}"
    messages = [item["message"] for item in status.get("findings", ())]
    if expected.says and not any(re.search(expected.says, text) for text in messages):
        return f"says {messages}, not {expected.says!r}"
    return _coverage(expected, status)


def _coverage(expected: Expected, status: Mapping[str, Any]) -> str:
    listed = (status.get("evaluationCoverage") or {}).get("unverified") or ()
    unverified = sorted(item["contractPath"] for item in listed)
    if expected.unverified is not None and unverified != sorted(expected.unverified):
        return f"leaves {unverified} unverified, not {sorted(expected.unverified)}"
    evidence = status.get("kernelEvidence") or {}
    if wrong := _differing(expected.kernel, evidence):
        return f"has kernel evidence {evidence}, not {wrong}"
    if wrong := _differing(expected.reasons, evidence.get("reasons") or {}):
        return f"has reasons {evidence.get('reasons')}, not {wrong}"
    return ""


def _differing(wanted: Mapping[str, int], found: Mapping[str, Any]) -> dict[str, int]:
    return {key: number for key, number in wanted.items() if found.get(key, 0) != number}


def _same(wanted: Iterable[str], found: list[str]) -> bool:
    """Whether each finding begins with the words of one that is wanted, and none is left over."""
    left = list(found)
    for one in wanted:
        matching = [item for item in left if item.split()[: len(one.split())] == one.split()]
        if not matching:
            return False
        left.remove(matching[0])
    return not left


def summary(status: Mapping[str, Any]) -> str:
    """A status in one line, for a failure and for a record."""
    found = [f"{words_of(item)} ({item['message']})" for item in status.get("findings", ())]
    return f"{status.get('contractStatus', 'unchecked')} {'; '.join(found)}".strip()


def short(status: Mapping[str, Any]) -> str:
    """A status in a few words, for a table."""
    return " ".join([status.get("contractStatus", "unchecked"), *sorted(codes(status))])
