# SPDX-License-Identifier: MIT
"""What a machine lacks is named, all of it, each with a remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubectl_pacto.cli.demo.preflight import CAPABILITIES, Facts, missing, read_facts, require
from kubectl_pacto.errors import DemoImpossible

FIT = Facts(
    system="Linux",
    release="6.1.0-18-amd64",
    root=True,
    capabilities=(1 << 41) - 1,
    has_btf=True,
    mounts=("/sys/fs/cgroup",),
    writable=("/sys/fs/cgroup",),
    command="/opt/bin/kubectl-pacto demo",
)


def without(*names: str) -> int:
    held = FIT.capabilities
    for name in names:
        held &= ~(1 << CAPABILITIES[name])
    return held


def test_a_fit_machine_lacks_nothing() -> None:
    assert missing(FIT) == []
    require(FIT)


@pytest.mark.parametrize(
    ("facts", "what", "remedy"),
    [
        (Facts("Darwin"), "this is Darwin", "Linux virtual machine"),
        (replace(FIT, release="5.4.0-26-generic"), "this is 5.4.0-26-generic", "newer kernel"),
        (replace(FIT, root=False), "root", "sudo /opt/bin/kubectl-pacto demo"),
        (replace(FIT, has_btf=False), "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF=y"),
        (replace(FIT, native_missing=("pacto_native.ring",)), "pacto_native.ring", "Linux wheel"),
        (replace(FIT, writable=()), "/sys/fs/cgroup", "remount,rw"),
        (replace(FIT, writable=(), mounts=()), "none is mounted", "mount -t cgroup2"),
        (replace(FIT, capabilities=without("NET_ADMIN")), "the capability NET_ADMIN", "--privileged"),
        (
            replace(FIT, capabilities=without("SYS_ADMIN", "BPF")),
            "the capabilities SYS_ADMIN, BPF",
            "--privileged",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_thing_missing_is_named_with_its_remedy(facts: Facts, what: str, remedy: str) -> None:
    (found,) = missing(facts)
    assert what in found.what
    assert remedy in found.remedy


def test_sys_admin_stands_for_bpf_and_perfmon() -> None:
    assert missing(replace(FIT, capabilities=without("BPF", "PERFMON"))) == []


def test_everything_missing_is_told_at_once() -> None:
    facts = replace(FIT, release="4.19.0", has_btf=False, native_missing=("x",), root=False)
    with pytest.raises(DemoImpossible) as caught:
        require(facts)
    text = str(caught.value)
    assert all(word in text for word in ("4.19.0", "BTF", "native parts", "sudo"))
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("release", ["5.8.0", "5.10.0-28-cloud-amd64", "6.18.44-fc-v669", "10.0.0"])
def test_kernels_since_the_oldest_are_new_enough(release: str) -> None:
    assert missing(replace(FIT, release=release)) == []


def test_facts_of_this_machine_can_be_read() -> None:
    assert read_facts().system
