# SPDX-License-Identifier: MIT
"""The promise itself: a skip on a laptop is a failure where the tier was promised."""

from __future__ import annotations

import pytest

from tests.support.require import promised, require, require_programs


def test_nothing_missing_goes_on() -> None:
    require("kernel", "")


def test_a_skip_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACTO_PROMISED", raising=False)
    with pytest.raises(pytest.skip.Exception, match="kernel: no BTF"):
        require("kernel", "no BTF")


def test_a_promised_tier_fails_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACTO_PROMISED", "cluster, kernel")
    with pytest.raises(pytest.fail.Exception, match="no BTF"):
        require("kernel", "no BTF")
    with pytest.raises(pytest.fail.Exception, match="not on PATH: no-such-program"):
        require_programs("cluster", "sh", "no-such-program")


def test_an_unpromised_tier_still_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACTO_PROMISED", "kernel")
    with pytest.raises(pytest.skip.Exception, match="cluster: no API server"):
        require("cluster", "no API server")


def test_a_promise_of_an_unknown_tier_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACTO_PROMISED", "kernal")
    with pytest.raises(pytest.UsageError, match="no tier kernal"):
        promised()
    with pytest.raises(ValueError, match="no tier"):
        require("kernal", "")
