# SPDX-License-Identifier: MIT
"""The metrics' text, and that nothing of a Pacto stays when it goes."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from kubectl_pacto.controller.health import Server
from kubectl_pacto.controller.metrics import Metrics

KEY = ("ns", 'a"b')


def test_the_status_is_one_of_seven_series() -> None:
    metrics = Metrics()
    metrics.pacto(KEY, {"contractStatus": "Warning"})
    lines = [one for one in metrics.text().splitlines() if one.startswith("pacto_contract_status")]
    assert len(lines) == 7
    assert 'pacto_contract_status{name="a\\"b",namespace="ns",status="Warning"} 1' in lines
    assert sum(line.endswith(" 1") for line in lines) == 1


def test_coverage_by_level_and_readiness_only_where_there_is_any() -> None:
    metrics = Metrics()
    metrics.pacto(KEY, {"contractStatus": "Compliant"})
    assert "readiness" not in metrics.text()
    assert "coverage" not in metrics.text()
    metrics.pacto(
        KEY,
        {
            "kernelEvidence": {"complete": 2, "stale": 1},
            "readiness": {"score": 80, "passing": True, "doneCount": 4},
        },
    )
    text = metrics.text()
    assert 'namespace="ns",level="complete"} 2' in text
    assert 'namespace="ns"} 80' in text
    assert 'status="Satisfied"} 1' in text
    assert 'status="done"} 4' in text


def test_a_pacto_that_went_has_no_series() -> None:
    metrics = Metrics()
    for number in range(100):
        metrics.pacto(("ns", str(number)), {"contractStatus": "Compliant"})
        metrics.forget(("ns", str(number)))
    assert "pacto_contract_status" not in metrics.text()


def test_check_durations_are_a_histogram() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.003, 99.0):
        metrics.checked(seconds, "ok")
    text = metrics.text()
    assert 'pacto_check_duration_seconds_bucket{le="0.001"} 1' in text
    assert 'pacto_check_duration_seconds_bucket{le="0.005"} 2' in text
    assert 'pacto_check_duration_seconds_bucket{le="+Inf"} 3' in text
    assert "pacto_check_duration_seconds_count 3" in text
    assert 'pacto_checks_total{result="ok"} 3' in text


def test_a_large_counter_is_not_rounded() -> None:
    metrics = Metrics()
    metrics._checks["ok"] = 12_345_678
    assert 'pacto_checks_total{result="ok"} 12345678' in metrics.text()
    metrics.live("pacto_watch_age_seconds", lambda: [((("kind", "Pod"),), 1234567.25)])
    assert 'pacto_watch_age_seconds{kind="Pod"} 1234567.25' in metrics.text()


def test_each_metric_says_what_it_is_before_its_series() -> None:
    metrics = Metrics()
    metrics.live("pacto_queue_depth", lambda: [((), 3.0)])
    lines = metrics.text().splitlines()
    place = lines.index("pacto_queue_depth 3")
    assert lines[place - 1] == "# TYPE pacto_queue_depth gauge"
    assert lines[place - 2].startswith("# HELP pacto_queue_depth ")


def test_the_servers_answer_what_they_are_given() -> None:
    answers = {"/healthz": lambda: (200, "ok\n"), "/readyz": lambda: (503, "not yet\n")}
    with Server("127.0.0.1:0", answers) as server:
        base = f"http://127.0.0.1:{server.port}"
        with urlopen(f"{base}/healthz?verbose") as answer:
            assert answer.read() == b"ok\n"
        for path, status in (("/readyz", 503), ("/else", 404)):
            with pytest.raises(HTTPError) as caught:
                urlopen(f"{base}{path}")
            assert caught.value.code == status
            caught.value.close()
