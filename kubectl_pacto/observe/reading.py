# SPDX-License-Identifier: MIT
"""What one look says, before the stabilization window has had its word; and that window.

Called by every observer whose negative must stand for a while. The window proves a continuous
negative or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kubectl_pacto.model.evidence import Collector, Outcome
from kubectl_pacto.model.instant import format_instant


class Answer(StrEnum):
    """The answer to one yes-or-no question, the ways of not knowing included."""

    YES = "yes"
    NO = "no"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    STALE = "stale"
    INSUFFICIENT = "insufficient"

    @property
    def outcome(self) -> Outcome:
        """The outcome of an observation with this answer."""
        match self:
            case Answer.YES | Answer.NO:
                return Outcome.OBSERVED
            case Answer.UNSUPPORTED:
                return Outcome.UNSUPPORTED
            case Answer.FAILED:
                return Outcome.FAILED
            case Answer.STALE:
                return Outcome.STALE
            case Answer.INSUFFICIENT:
                return Outcome.INSUFFICIENT


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at one question; times are the checking clock's.

    `young` is set when only a pod too young to be covered keeps this from being known: the seconds
    until its node may have covered it. A kernel
    negative says when something last happened that breaks its continuity (`restarted_at`)
    and how old the oldest view is that it rests on (`vouched_at`).
    """

    answer: Answer
    why: str
    collector: Collector = Collector.API
    restarted_at: float | None = None
    vouched_at: float | None = None
    young: float | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A reading after the window: `window` is when the negative began, None while there is none."""

    outcome: Outcome
    positive: bool
    why: str
    collector: Collector
    window: float | None = None


def settle(reading: Reading, *, prior: float | None, at: float, window: float) -> Settled:
    """Apply the stabilization window to a reading; `prior` is the start of an open window."""
    if reading.answer is not Answer.NO:
        return Settled(reading.answer.outcome, reading.answer is Answer.YES, reading.why, reading.collector)
    start = at if prior is None or prior > at else prior
    if reading.restarted_at is not None and reading.restarted_at > start:
        start = at
    is_vouched = reading.vouched_at is None or reading.vouched_at > start
    # The first look at a negative never confirms it, however short the window is.
    if start == prior and at - start >= window and is_vouched:
        why = f"{reading.why}; so since {format_instant(start)}"
        return Settled(Outcome.OBSERVED, False, why, reading.collector, start)
    # since when, not for how long: a status that differs only in a time is not written again
    waiting = f"{reading.why}; so since {format_instant(start)}, a finding if it lasts "
    if at - start < window:
        waiting += f"until {format_instant(start + window)}"
    elif is_vouched:
        waiting += "to the next check"
    else:
        waiting += "to the next heartbeat of every node involved"
    return Settled(Outcome.INSUFFICIENT, False, waiting, reading.collector, start)
