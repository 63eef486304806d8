# SPDX-License-Identifier: MIT
"""rtnetlink requests, byte by byte where the kernel is particular."""

from __future__ import annotations

import errno
import struct

import pytest

from kubectl_pacto.cli.demo import netlink


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message, by kind."""
    found = {}
    while data:
        size, kind = struct.unpack_from("=HH", data)
        found[kind] = data[4:size]
        data = data[(size + 3) & ~3 :]
    return found


def test_an_attribute_is_padded_but_its_length_is_not() -> None:
    assert netlink.attribute(3, b"abc") == b"\x07\0\x03\0abc\0"


def test_a_veth_pair_names_bridge_peer_and_the_process_it_goes_to() -> None:
    request = netlink.veth_request("veth0", master=2, peer="eth0", peer_pid=77)
    family, index, flags, change = struct.unpack_from("=BxxxiII", request)
    assert (family, index, flags, change) == (0, 0, netlink.IFF_UP, netlink.IFF_UP)
    outer = attributes(request[16:])
    assert outer[netlink.IFLA_IFNAME] == b"veth0\0"
    assert outer[netlink.IFLA_MASTER] == struct.pack("=I", 2)
    info = attributes(outer[netlink.IFLA_LINKINFO])
    assert info[netlink.IFLA_INFO_KIND] == b"veth\0"
    peer = attributes(info[netlink.IFLA_INFO_DATA])[netlink.VETH_INFO_PEER]
    inner = attributes(peer[16:])
    assert inner[netlink.IFLA_IFNAME] == b"eth0\0"
    assert inner[netlink.IFLA_NET_NS_PID] == struct.pack("=I", 77)


def test_an_address_is_local_and_its_own_peer() -> None:
    request = netlink.address_request(5, "10.1.2.3", 24)
    assert request[:8] == struct.pack("=BBBBi", 2, 24, 0, 0, 5)
    found = attributes(request[8:])
    assert found == {netlink.IFA_LOCAL: b"\x0a\x01\x02\x03", netlink.IFA_ADDRESS: b"\x0a\x01\x02\x03"}


def reply(kind: int, result: int) -> bytes:
    return struct.pack("=IHHIIi", 20, kind, 0, 1, 0, result)


def test_an_acknowledgement_is_silent() -> None:
    netlink.check(reply(netlink.NLMSG_ERROR, 0), "make x")


def test_a_refusal_says_what_was_asked() -> None:
    with pytest.raises(OSError, match="make the bridge pods: Operation not permitted") as caught:
        netlink.check(reply(netlink.NLMSG_ERROR, -errno.EPERM), "make the bridge pods")
    assert caught.value.errno == errno.EPERM


def test_any_other_answer_is_refused() -> None:
    with pytest.raises(OSError, match="message 16"):
        netlink.check(reply(16, 0), "make x")
