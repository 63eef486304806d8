# SPDX-License-Identifier: MIT
"""When to ask again, and after how long. Pure: chance is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts and delays in seconds; each delay is drawn between half of its bound and its bound."""

    attempts: int = 4
    first_delay: float = 0.25
    longest_delay: float = 8.0

    def delays(self, chance: Callable[[], float]) -> Iterator[float]:
        """The pause before each attempt but the first; `chance` gives numbers in [0, 1)."""
        bound = self.first_delay
        for _ in range(self.attempts - 1):
            yield bound * (0.5 + 0.5 * chance())
            bound = min(2 * bound, self.longest_delay)


def retry_after(text: str | None, longest: float) -> float:
    """Seconds of a Retry-After header in its number form, bounded; 0 for anything else."""
    return min(float(text), longest) if text and text.isdigit() else 0.0
