# SPDX-License-Identifier: MIT
"""RFC 3339 times to POSIX seconds and back; the only place that knows their spelling."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))"
)

# what `format_instant` can spell: a zone may carry a time of these years out of them
_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp() + 1


def parse_instant(text: str) -> float:
    """POSIX seconds of an RFC 3339 time.

    Raises ValueError naming the text when it is not one (no zone, impossible date).
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-10-18T09:12:44Z")
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    zone: timezone = UTC
    if match[9]:
        offset = timedelta(hours=int(match[10]), minutes=int(match[11]))
        zone = timezone(offset if match[9] == "+" else -offset)
    try:
        whole = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone).timestamp()
    except ValueError as error:
        raise ValueError(f"{text!r} is not an RFC 3339 time: {error}") from None
    # a leap second reads as the second after :59, as POSIX time has it
    instant = whole + max(0, second - 59) + (float("0." + match[7]) if match[7] else 0.0)
    if not _FIRST <= instant < _END:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC, where no time can be written")
    return instant


def format_instant(instant: float, *, digits: int = 0) -> str:
    """RFC 3339 text in UTC with `digits` decimals of a second, cut (never rounded up)."""
    scale = 10**digits
    ticks = int(instant * scale + 1e-6)  # a float may lie a hair below the tick it was parsed from
    text = datetime.fromtimestamp(ticks // scale, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{ticks % scale:0{digits}d}" if digits else ""
    return f"{text}{fraction}Z"
