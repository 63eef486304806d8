# SPDX-License-Identifier: MIT
"""How ready a service says it is, as a score. Kept apart from compliance, which it never touches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from kubectl_pacto.model.contract import Claim, Readiness


@dataclass(frozen=True, slots=True)
class Score:
    """The score of 100, what it is made of, and how long it counts."""

    score: int
    passing: bool
    expired: bool
    total: int
    earned: int
    days_remaining: int


def score_readiness(readiness: Readiness, today: date) -> Score:
    """The score on a day; `expires` is a date that layer 2 found nothing wrong with.

    Deferred claims count neither way. With nothing left to count there is nothing to pass with.
    """
    days = (date.fromisoformat(readiness.expires) - today).days
    counted = [claim for claim in readiness.claims if claim.status != "deferred"]
    total = sum(claim.weight for claim in counted)
    earned = sum(_earn(claim, readiness.partial_credit) for claim in counted)
    score = _round(100 * earned / total) if total and days >= 0 else 0
    return Score(score, score >= readiness.min_score and days >= 0, days < 0, total, earned, days)


def _earn(claim: Claim, partial_credit: float) -> int:
    match claim.status:
        case "done":
            return claim.weight
        case "partial":
            return _round(claim.weight * partial_credit)
        case _:
            return 0


def _round(value: float) -> int:
    """Halves up, as a person rounds."""
    return int(value + 0.5)
