# SPDX-License-Identifier: MIT
"""Times and their spelling: whatever is read can be written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.model.instant import format_instant, parse_instant


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59.999999999-00:01",
    ],
)
def test_a_time_that_a_zone_carries_out_of_the_calendar_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="outside the years 1 to 9999 in UTC"):
        parse_instant(text)


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z", "2016-12-31T23:59:60Z"],
)
def test_the_ends_of_the_calendar_are_times(text: str) -> None:
    assert format_instant(parse_instant(text))


@given(
    st.datetimes(),
    st.sampled_from(["Z", "+14:00", "-14:00", "+23:59", "-23:59"]),
    st.sampled_from(["", ".5", ".999999999"]),
)
def test_whatever_is_read_can_be_written(when: object, zone: str, fraction: str) -> None:
    text = f"{str(when)[:19].replace(' ', 'T')}{fraction}{zone}"
    try:
        instant = parse_instant(text)
    except ValueError:
        return
    for digits in (0, 3):
        format_instant(instant, digits=digits)
