# SPDX-License-Identifier: MIT
"""The file and stdout sinks: whole or not at all, and an error that names where it could not go."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.model.node import NodeRuntimeObservation
from kubectl_pacto.model.node_codec import encode_node
from pacto_agent.sinks.file import FileSink
from pacto_agent.sinks.stdout import StdoutSink
from pacto_agent.sinks.top import TopSink

OBJECT: dict[str, Any] = {"kind": "NodeRuntimeObservation", "pods": []}
LEASE: dict[str, Any] = {"kind": "Lease"}


def test_the_file_holds_the_object_and_then_its_lease(tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    sink = FileSink(str(path))
    sink.put(OBJECT)
    assert json.loads(path.read_text()) == {"apiVersion": "v1", "kind": "List", "items": [OBJECT]}
    sink.renew(LEASE)
    assert json.loads(path.read_text())["items"] == [OBJECT, LEASE]
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_left_in_the_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    FileSink(str(path)).put(OBJECT)
    assert FileSink(str(path)).load() == OBJECT


@pytest.mark.parametrize("text", ["", "{", "[]", '{"items": 5}', '{"items": []}', '{"items": ["x"]}', "\0"])
def test_a_file_that_is_not_ours_is_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "view.json"
    path.write_text(text)
    assert FileSink(str(path)).load() is None


def test_an_absent_file_is_nothing(tmp_path: Path) -> None:
    assert FileSink(str(tmp_path / "absent")).load() is None


@pytest.mark.parametrize("place", ["absent/view.json", "."])
def test_a_path_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    path = str(tmp_path / place)
    with pytest.raises(SinkFailed, match=r"No such file|directory") as caught:
        FileSink(path).put(OBJECT)
    assert path in str(caught.value)
    assert list(tmp_path.iterdir()) == [], "nothing half-written stays"


def test_the_old_file_stays_when_a_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "view.json"
    sink = FileSink(str(path))
    sink.put(OBJECT)
    monkeypatch.setattr(
        os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(SinkFailed, match="No space left"):
        sink.renew(LEASE)
    assert json.loads(path.read_text())["items"] == [OBJECT]
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    sink = FileSink(str(path))
    sink.put({**OBJECT, "pods": ["x" * 100] * 1000})
    done = threading.Event()

    def write() -> None:
        for number in range(50):
            sink.renew({**LEASE, "number": number})
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert json.loads(path.read_text())["items"][0]["kind"] == OBJECT["kind"]
    writer.join()


def test_standard_output_gets_one_compact_line_each() -> None:
    stream = io.StringIO()
    sink = StdoutSink(stream)
    sink.put(OBJECT)
    sink.renew(LEASE)
    lines = stream.getvalue().splitlines()
    assert [json.loads(line) for line in lines] == [OBJECT, LEASE]
    assert ": " not in stream.getvalue()


def test_a_closed_standard_output_is_a_failure_of_the_sink() -> None:
    stream = io.StringIO()
    sink = StdoutSink(stream)
    stream.close()
    with pytest.raises(SinkFailed, match="standard output"):
        sink.put(OBJECT)


@pytest.mark.parametrize("kind", [StdoutSink, TopSink])
def test_a_reader_that_went_away_is_the_end_and_no_failure(kind: type[StdoutSink | TopSink]) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        sink = kind(stream)
        sink.put(encode_node(NodeRuntimeObservation(name="n", node_name="n")))
        os.close(reading)
        with pytest.raises(BrokenPipeError):
            sink.renew(LEASE)
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left goes somewhere
