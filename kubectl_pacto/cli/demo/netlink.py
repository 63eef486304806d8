# SPDX-License-Identifier: MIT
"""A bridge, veth pairs and addresses over rtnetlink, so that the demo needs no program of the host.

Called by the demo's fabric and pods, each in a network namespace of its own. Every call waits for
the kernel's acknowledgement and raises OSError with what was asked for.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Final

RTM_NEWLINK: Final = 16
RTM_NEWADDR: Final = 20
NLMSG_ERROR: Final = 2

REQUEST: Final = 0x1 | 0x4  # NLM_F_REQUEST | NLM_F_ACK
CREATE: Final = 0x200 | 0x400  # NLM_F_EXCL | NLM_F_CREATE

IFF_UP: Final = 1
IFLA_IFNAME: Final = 3
IFLA_MASTER: Final = 10
IFLA_LINKINFO: Final = 18
IFLA_NET_NS_PID: Final = 19
IFLA_INFO_KIND: Final = 1
IFLA_INFO_DATA: Final = 2
VETH_INFO_PEER: Final = 1
IFA_ADDRESS: Final = 1
IFA_LOCAL: Final = 2

_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBi")
_REPLY_BYTES = 65536


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    return struct.pack("=HH", len(value) + 4, kind) + value + b"\0" * (-len(value) % 4)


def text(kind: int, value: str) -> bytes:
    """An attribute that holds a string."""
    return attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    """An attribute that holds 32 bits."""
    return attribute(kind, struct.pack("=I", value))


def link(index: int = 0, *, up: bool = False) -> bytes:
    """The header of a link message."""
    state = IFF_UP if up else 0
    return _LINK.pack(socket.AF_UNSPEC, 0, index, state, state)


def bridge_request(name: str) -> bytes:
    """Make a bridge that is up."""
    return link(up=True) + text(IFLA_IFNAME, name) + attribute(IFLA_LINKINFO, text(IFLA_INFO_KIND, "bridge"))


def veth_request(name: str, *, master: int, peer: str, peer_pid: int) -> bytes:
    """Make a veth pair: `name` here, up and on the bridge `master`; `peer` where the process lives."""
    other = link() + text(IFLA_IFNAME, peer) + number(IFLA_NET_NS_PID, peer_pid)
    data = attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, other))
    info = attribute(IFLA_LINKINFO, text(IFLA_INFO_KIND, "veth") + data)
    return link(up=True) + text(IFLA_IFNAME, name) + number(IFLA_MASTER, master) + info


def address_request(index: int, address: str, prefix: int) -> bytes:
    """Give an IPv4 address to a link."""
    packed = socket.inet_aton(address)
    header = _ADDRESS.pack(socket.AF_INET, prefix, 0, 0, index)
    return header + attribute(IFA_LOCAL, packed) + attribute(IFA_ADDRESS, packed)


def ask(kind: int, flags: int, body: bytes, what: str) -> None:
    """Send one request and wait until it is done; raises OSError."""
    request = _HEADER.pack(_HEADER.size + len(body), kind, REQUEST | flags, 1, 0) + body
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as talk:
        talk.bind((0, 0))
        talk.send(request)
        check(talk.recv(_REPLY_BYTES), what)


def check(reply: bytes, what: str) -> None:
    """Raise OSError unless `reply` is an acknowledgement without error."""
    _, kind, _, _, _ = _HEADER.unpack_from(reply)
    (result,) = struct.unpack_from("=i", reply, _HEADER.size)
    if kind != NLMSG_ERROR:
        raise OSError(errno.EPROTO, f"{what}: the kernel answered with message {kind}")
    if result:
        raise OSError(-result, f"{what}: {os.strerror(-result)}")


def make_bridge(name: str) -> int:
    """Make a bridge; returns its index."""
    ask(RTM_NEWLINK, CREATE, bridge_request(name), f"make the bridge {name}")
    return socket.if_nametoindex(name)


def make_veth(name: str, *, master: int, peer: str, peer_pid: int) -> None:
    """Make a veth pair from here to the namespace of a process."""
    request = veth_request(name, master=master, peer=peer, peer_pid=peer_pid)
    ask(RTM_NEWLINK, CREATE, request, f"make the veth pair {name}")


def set_up(name: str) -> None:
    """Bring a link up."""
    ask(RTM_NEWLINK, 0, link(socket.if_nametoindex(name), up=True), f"bring {name} up")


def add_address(name: str, address: str, prefix: int) -> None:
    """Give a link an address."""
    request = address_request(socket.if_nametoindex(name), address, prefix)
    ask(RTM_NEWADDR, CREATE, request, f"give {name} the address {address}/{prefix}")
