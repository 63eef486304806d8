# SPDX-License-Identifier: MIT
"""Text that never ends, is no text, or says one thing twice is refused with its place."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from kubectl_pacto.collect import documents
from kubectl_pacto.collect.documents import read_documents, read_text
from kubectl_pacto.errors import UnreadableInput
from kubectl_pacto.yamltext import load_all
from tests.support.sources import ROOT

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"


def refusal(tmp_path: Path, text: str, name: str = "x.yaml") -> str:
    """What is said of a text, without the folder."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UnreadableInput) as caught:
        list(read_documents(str(path)))
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml: line 3, column 1: the document has the key 'a' twice"),
        (
            "kind: List\nitems:\n- spec:\n    target: {}\n    ports: [{name: a, port: 1, name: b}]\n",
            "x.yaml: line 5, column 32: items[0].spec.ports[0] has the key 'name' twice",
        ),
        (f"{POD}---\na: {{b: 1, b: 1}}\n", "x.yaml: line 6, column 11: a has the key 'b' twice"),
        (
            "a:\n- b: 9223372036854775808\n",
            "x.yaml: line 2, column 6: a[0].b is a number of more than 64 bits",
        ),
        (
            f"a: {'9' * 5000}\n",
            "x.yaml: line 1, column 4: a is a number of more than 64 bits",
        ),
        ("a: 0xffffffffffffffff\n", "x.yaml: line 1, column 4: a is a number of more than 64 bits"),
    ],
)  # fmt: skip
def test_yaml_that_reads_in_two_ways_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text) == said


@pytest.mark.parametrize("name", ["x.json", "x.yaml"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": {}, "a": 3}', "the document has the key 'a' twice"),
        ('{"items": [{"spec": {"n": 1, "n": 1}}]}', "items[0].spec has the key 'n' twice"),
        ('{"a": [1, {"b": 9223372036854775808}]}', "a[1].b is a number of more than 64 bits"),
        (f'{{"a": -{"9" * 5000}}}', "a is a number of more than 64 bits"),
        ('{"a": NaN}', "a is NaN, which JSON has no number for"),
    ],
)
def test_json_that_reads_in_two_ways_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    assert refusal(tmp_path, text, name) == f"{name}: {said}"


def test_the_biggest_and_smallest_numbers_are_read(tmp_path: Path) -> None:
    for name, text in (
        ("a.json", '{"a": 9223372036854775807, "b": -9223372036854775808}'),
        ("a.yaml", "a: 9223372036854775807\nb: -9223372036854775808\n"),
    ):
        (tmp_path / name).write_text(text)
        assert list(read_documents(str(tmp_path / name))) == [{"a": 2**63 - 1, "b": -(2**63)}]


@pytest.mark.parametrize("name", ["x.json", "x.yaml"])
@pytest.mark.parametrize("between", ["\n", "", " \r\n\t", "\n\n"])
def test_json_values_one_after_the_other_are_documents(tmp_path: Path, name: str, between: str) -> None:
    path = tmp_path / name
    path.write_text(between + between.join(['{"a": 1}', '{"b": {"c": []}}', "{}"]) + between)
    assert list(read_documents(str(path))) == [{"a": 1}, {"b": {"c": []}}, {}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"b": 1, "b": 2}', "the document has the key 'b' twice"),
        ('{"a": 1}\n{"b": ', "is not JSON: Expecting value: line 2 column 7 (char 15)"),
        ('{"a": 1} x', "is not JSON: Expecting value: line 1 column 10 (char 9)"),
        ('{"a": "\\ud800"}\n{}', "spells half of a character: \\ud800 without the other half"),
    ],
)
def test_a_json_value_after_another_is_as_strictly_read(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text, "x.json") == f"x.json: {said}"


def test_yaml_that_begins_as_json_is_yaml(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text('{"a": 1}\n---\nb: 2\n')
    assert list(read_documents(str(path))) == [{"a": 1}, {"b": 2}]


def test_a_key_that_a_merge_brings_may_be_there_once_more(tmp_path: Path) -> None:
    text = "base: &base {a: 1, c: {d: 1}}\none: {<<: *base, a: 2}\ntwo: *base\n"
    (tmp_path / "a.yaml").write_text(text)
    (found,) = read_documents(str(tmp_path / "a.yaml"))
    assert found["one"] == {"a": 2, "c": {"d": 1}}


def test_a_stream_that_is_not_strict_takes_the_last_of_a_key() -> None:
    assert list(load_all("a: 1\na: 2\n")) == [{"a": 2}]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: b\0", "is not text (byte 4 is zero)"),
        (b"a: \xff", "is not UTF-8 text (byte 3)"),
        (b"a: \xc3", "is not UTF-8 text (it ends within a character)"),
    ],
)
def test_what_is_no_text_is_said(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UnreadableInput, match="x: ") as caught:
        read_text(str(tmp_path / "x"))
    assert said in str(caught.value)


def test_a_character_across_two_pieces_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_CHUNK", 1)
    (tmp_path / "x").write_bytes("\ufeffaé€\U0001f600".encode())
    assert read_text(str(tmp_path / "x")) == "aé€\U0001f600"


def test_a_file_of_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    limit = 1 << 20
    (tmp_path / "x").write_bytes(b"#" * limit)
    assert len(read_text(str(tmp_path / "x"), limit)) == limit
    (tmp_path / "x").write_bytes(b"#" * (limit + 1))
    with pytest.raises(UnreadableInput, match="has more than 1 MiB"):
        read_text(str(tmp_path / "x"), limit)


def test_a_pipe_without_an_end_is_left_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()

    def write() -> None:
        try:
            while True:
                os.write(writer, b"# and so on\n" * 1000)
        except BrokenPipeError:
            os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    with io.open(reader, "rb") as stream:  # noqa: UP020 -- a descriptor, not a path
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        with pytest.raises(UnreadableInput, match="-: has more than 2 MiB"):
            read_text("-", 2 << 20)
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_ends_the_run_at_once(device: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_pacto", "evaluate", "-f", device],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {device}: is not")
    assert "Traceback" not in done.stderr
