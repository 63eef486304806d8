# SPDX-License-Identifier: MIT
"""IP addresses as text in one spelling, and what can be said of one.

Used wherever addresses of two sources meet: the agent's, the API's and a status'. Text that is
no address is kept as it is (it then equals nothing but itself).
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

IPV4_WILDCARD: Final = "0.0.0.0"  # noqa: S104 -- compared with, never bound
IPV6_WILDCARD: Final = "::"

# The specification's list, and no more: documentation ranges, for one, are as public as any.
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",  # private
        "127.0.0.0/8",
        "::1/128",  # loopback
        "169.254.0.0/16",
        "fe80::/10",  # link-local
        "100.64.0.0/10",  # carrier-grade NAT
        "fc00::/7",  # unique local
        "0.0.0.0/8",
        "::/128",
        "224.0.0.0/4",
        "ff00::/8",
        "255.255.255.255/32",  # no host's address
    )
)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


# IPv4 in its one spelling, which nearly all addresses of a fleet have: too many to remember each of them
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_is_plain: Final = re.compile(rf"{_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET}").fullmatch


def canonical(text: str) -> str:
    """The one spelling of an address: IPv4-mapped as IPv4, IPv6 shortened, no zone."""
    return text if _is_plain(text) else _respelled(text)


@lru_cache(maxsize=16384)
def _respelled(text: str) -> str:
    address = _parse(text)
    return text if address is None else str(address)


def family(text: str) -> int:
    """4 or 6; 0 when the text is no address."""
    return 4 if _is_plain(text) else _other_family(text)


@lru_cache(maxsize=16384)
def _other_family(text: str) -> int:
    address = _parse(text)
    return 0 if address is None else address.version


def is_wildcard(text: str) -> bool:
    """Whether a socket at this address accepts for every address of its family."""
    return canonical(text) in (IPV4_WILDCARD, IPV6_WILDCARD)


@lru_cache(maxsize=4096)
def is_public(text: str) -> bool:
    """Whether the address is reachable from outside private networks; False for text that is none.

    Private, loopback, link-local, carrier-grade NAT and unique local addresses are not public.
    """
    address = _parse(text)
    return address is not None and not any(address in network for network in _NOT_PUBLIC)
