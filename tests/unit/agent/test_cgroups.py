# SPDX-License-Identifier: MIT
"""Which pod a cgroup path names, and a process by all of its paths."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pacto_agent.cgroups import PathPod, ProcessPod, pod_of_path, pod_of_process

TABLE = Path(__file__).parents[2] / "tables" / "agent_cgroups.yaml"
FILL = {"{id}": "0123456789abcdef" * 4, "{many}": "a" * 127}
UID = "11111111-1111-4111-8111-111111111111"
POD = f"/kubepods/burstable/pod{UID}/{'ab' * 32}"
SLICE = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{'ab' * 32}.scope"


def filled(text: str) -> str:
    """A row's text with its placeholders replaced."""
    for placeholder, value in FILL.items():
        text = text.replace(placeholder, value)
    return text


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["name"]) for row in yaml.safe_load(TABLE.read_text())]
)
def test_a_path_names(row: dict[str, Any]) -> None:
    expected = PathPod(filled(row["pod"]), row.get("helper", False)) if "pod" in row else None
    assert pod_of_path(filled(row["path"])) == expected


@given(st.text(string.ascii_letters + string.digits + "_.-", min_size=1, max_size=127))
def test_every_uid_of_these_characters_is_accepted(rest: str) -> None:
    uid = f"0{rest}"
    if not rest.endswith((".slice", ".scope", ".service", ".mount", ".socket")):
        assert pod_of_path(f"/kubepods/pod{uid}/container") == PathPod(uid)


@given(st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=36))
def test_both_drivers_name_the_same_pod(rest: str) -> None:
    uid = f"0{rest}"
    name = uid.replace("-", "_")
    for level in ("", "burstable", "besteffort"):
        inner = f"-{level}" if level else ""
        slices = f"/kubepods.slice/kubepods{inner}.slice/kubepods{inner}-pod{name}.slice/x.scope"
        assert pod_of_path(f"/kubepods/{level}/pod{uid}/x") == pod_of_path(slices) == PathPod(uid)


@given(st.text())
def test_no_path_is_an_error(path: str) -> None:
    pod_of_path(path)
    pod_of_process(path.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("path", [POD, SLICE])
def test_a_v2_process_is_trusted_by_its_cgroup(path: str) -> None:
    assert pod_of_process(f"0::{path}\n".encode()) == ProcessPod(UID, by_v2=True)


def test_a_v1_process_is_named_by_any_controller() -> None:
    text = f"11:pids:{POD}\n1:name=systemd:/\n".encode()
    assert pod_of_process(text) == ProcessPod(UID, by_v2=False)


def test_in_hybrid_mode_the_controllers_name_a_process_and_the_v2_line_alone_its_trust() -> None:
    # one container: its first process, and a session that was executed into it
    first = pod_of_process(f"3:memory:{POD}\n1:name=systemd:{POD}\n0::{POD}\n".encode())
    session = pod_of_process(f"3:memory:{POD}\n1:name=systemd:{POD}\n0::/system.slice/x.service\n".encode())
    assert first == ProcessPod(UID, by_v2=True)
    assert session == ProcessPod(UID, by_v2=False)


def test_a_hybrid_host_without_v1_pods_is_named_by_its_v2_line() -> None:
    assert pod_of_process(f"3:memory:/\n1:name=systemd:/\n0::{POD}\n".encode()) == ProcessPod(UID, by_v2=True)


def test_a_monitor_is_a_helper_by_either_hierarchy() -> None:
    monitor = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-conmon-{'ab' * 32}.scope"
    assert pod_of_process(f"0::{monitor}\n".encode()) == ProcessPod(UID, helper=True, by_v2=True)
    assert pod_of_process(f"3:memory:{monitor}\n0::/\n".encode()) == ProcessPod(UID, helper=True)


def test_a_sibling_in_a_private_namespace_is_the_agents_own_pod() -> None:
    for name in ("ab" * 32, f"cri-containerd-{'ab' * 32}.scope", f"crio-{'ab' * 32}.scope"):
        text = f"0::/../{name}\n".encode()
        assert pod_of_process(text, own_uid=UID) == ProcessPod(UID, by_v2=True)
        assert pod_of_process(text) == ProcessPod()


@pytest.mark.parametrize("path", ["/../init.scope", f"/../../{'ab' * 32}", f"/{'ab' * 32}", "/../kubelet"])
def test_what_is_no_sibling_is_not_the_agents_own_pod(path: str) -> None:
    assert pod_of_process(f"0::{path}\n".encode(), own_uid=UID) == ProcessPod()


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"0::\n", b"0:\n", b"0::relative\n", b":::::\n", b"0::/\n", b"\xff\xfe\n"]
)
def test_a_malformed_text_names_nothing(text: bytes) -> None:
    assert pod_of_process(text) == ProcessPod()


def test_a_path_with_colons_is_read_whole() -> None:
    assert pod_of_process(f"0::/a:b{POD}\n".encode()) == ProcessPod(UID, by_v2=True)
