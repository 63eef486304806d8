# SPDX-License-Identifier: MIT
"""procnet.scan_sockets and its plain-Python twin agree on good, random, cut and hostile texts."""

from __future__ import annotations

import random
import socket
import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacto_native import procnet, reference, rows

HEADER = (
    b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
    b"                                                     \n"
)
LISTENING = (
    b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 16843"
    b" 1 0000000000000000 100 0 0 10 0\n"
)
CONNECTING = (
    b"  12: 0A00A8C0:C350 0102030A:1538 02 00000001:00000000 01:00000150 00000003  1000        0 99999"
    b" 2 0000000000000000 800 0 0 1 7\n"
)
OTHERS = LISTENING.replace(b" 0A ", b" 06 ")
IPV6 = (
    b"   3: 00000000000000000000000000000000:0102 00000000000000000000000000000000:0000 0A"
    b" 00000000:00000000 00:00000000 00000000     0        0 31337 1 0000000000000000 100 0 0 10 0\n"
)
TEXT = HEADER + LISTENING + OTHERS + CONNECTING + IPV6


def hex_address(address: str) -> bytes:
    """An address as the kernel prints it on this machine."""
    packed = IPv6Address(address).packed if ":" in address else IPv4Address(address).packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return b"".join(b"%08X" % word for word in words)


def line(local: str, port: int, remote: str, remote_port: int, *, state: int = 1, inode: int = 5) -> bytes:
    """One line of the kernel's text."""
    ends = b"%b:%04X %b:%04X" % (hex_address(local), port, hex_address(remote), remote_port)
    return b"   0: %b %02X 00000000:00000000 00:00000000 00000000     0        0 %d 1\n" % (
        ends,
        state,
        inode,
    )


def agreed(text: bytes) -> tuple[list[rows.SocketRow], int, int]:
    """What both say of a text."""
    said = procnet.scan_sockets(text)
    assert said == reference.scan_sockets(text), text
    return said


def test_a_kernels_text_gives_its_sockets() -> None:
    found, malformed, used = agreed(TEXT)
    assert found == [
        (10, 4, bytes([127, 0, 0, 1]), 8080, bytes(4), 0, 0, 16843),
        (2, 4, bytes([192, 168, 0, 10]), 50000, bytes([10, 3, 2, 1]), 5432, 3, 99999),
        (10, 6, bytes(16), 258, bytes(16), 0, 0, 31337),
    ]
    assert (malformed, used) == (0, len(TEXT))


def test_an_asymmetric_port_keeps_its_byte_order() -> None:
    found, _, _ = agreed(line("10.1.2.3", 258, "10.4.5.6", 513))
    assert found == [(1, 4, bytes([10, 1, 2, 3]), 258, bytes([10, 4, 5, 6]), 513, 0, 5)]


@pytest.mark.parametrize(
    ("local", "remote", "told"),
    [
        ("::ffff:10.1.2.3", "::ffff:10.4.5.6", (4, bytes([10, 1, 2, 3]), bytes([10, 4, 5, 6]))),
        ("::ffff:10.1.2.3", "::", (4, bytes([10, 1, 2, 3]), bytes(4))),
        ("::ffff:0.0.0.0", "::", (4, bytes(4), bytes(4))),
        ("::", "::", (6, bytes(16), bytes(16))),
        ("::1", "::ffff:10.4.5.6", (6, bytes(15) + b"\1", bytes(10) + bytes([255, 255, 10, 4, 5, 6]))),
        ("::ffff:10.1.2.3", "::1", (6, bytes(10) + bytes([255, 255, 10, 1, 2, 3]), bytes(15) + b"\1")),
    ],
)
def test_a_mapped_address_is_ipv4(local: str, remote: str, told: tuple[int, bytes, bytes]) -> None:
    found, malformed, _ = agreed(line(local, 258, remote, 513))
    assert not malformed
    assert [(row[1], row[2], row[4]) for row in found] == [told]


@pytest.mark.parametrize(
    "text", [b"", HEADER, HEADER[:-1], b"\n", b" \n", b"\n\n\n", b"s\n", b"x\n", b"\0\n"]
)
def test_a_text_without_sockets_has_none(text: bytes) -> None:
    found, _, used = agreed(text)
    assert found == []
    assert used == (len(text) if text.endswith(b"\n") else 0)


def test_a_text_cut_at_any_byte_loses_only_its_last_line() -> None:
    for cut in range(len(TEXT) + 1):
        found, malformed, used = agreed(TEXT[:cut])
        assert malformed == 0
        assert used == TEXT[:cut].rfind(b"\n") + 1
        # the rest is not lost: it goes before the next piece
        assert found + agreed(TEXT[used:])[0] == agreed(TEXT)[0]


@pytest.mark.parametrize("whole", [LISTENING, CONNECTING, IPV6])
def test_a_line_cut_at_any_byte_is_judged_alike(whole: bytes) -> None:
    for cut in range(len(whole)):
        agreed(whole[:cut] + b"\n")
        agreed(whole[cut:])


@pytest.mark.parametrize("whole", [LISTENING, IPV6])
def test_any_byte_anywhere_is_judged_alike(whole: bytes) -> None:
    for place in range(len(whole)):
        for value in (0, 9, 10, 13, 32, 47, 48, 58, 64, 65, 71, 96, 97, 103, 115, 127, 128, 255):
            agreed(whole[:place] + bytes([value]) + whole[place + 1 :])


@pytest.mark.parametrize("whole", [LISTENING, IPV6])
def test_any_byte_missing_or_doubled_is_judged_alike(whole: bytes) -> None:
    for place in range(len(whole)):
        agreed(whole[:place] + whole[place + 1 :])
        agreed(whole[:place] + whole[place : place + 1] * 2 + whole[place + 1 :])


@pytest.mark.parametrize("state", range(256))
def test_only_three_states_are_asked_for(state: int) -> None:
    found, malformed, _ = agreed(line("1.2.3.4", 1, "5.6.7.8", 2, state=state))
    assert len(found) == (state in (1, 2, 10))
    assert malformed == 0


@pytest.mark.parametrize("field", range(10))
def test_a_missing_field_is_malformed_or_judged_alike(field: int) -> None:
    fields = LISTENING.split()
    agreed(b" ".join(fields[:field] + fields[field + 1 :]) + b"\n")
    found, malformed, _ = agreed(b" ".join(fields[:field]) + b"\n")
    assert (found, malformed) == ([], 1)


@pytest.mark.parametrize(
    ("inode", "accepted"),
    [(b"0", True), (b"9" * 19, True), (b"1" + b"0" * 19, False), (b"9" * 500, False), (b"-1", False)],
)
def test_a_huge_inode_is_malformed(inode: bytes, accepted: bool) -> None:
    found, malformed, _ = agreed(LISTENING.replace(b"16843", inode))
    assert (len(found), malformed) == (accepted, not accepted)


def test_a_number_of_another_width_is_malformed() -> None:
    for old, new in [
        (b"0100007F:", b"100007F:"),
        (b"0100007F:", b"00100007F:"),
        (b":1F90", b":1F9"),
        (b"0100007F:", b"0100007F" * 2 + b":"),
        (b"00000000:0000 ", b"00000000" * 4 + b":0000 "),
        (b"0100007F:", b":"),
    ]:
        found, malformed, _ = agreed(LISTENING.replace(old, new, 1))
        assert (found, malformed) == ([], 1), new


def test_twenty_thousand_lines_are_read_in_pieces_of_any_size() -> None:
    chance = random.Random(3)
    lines = [
        line("10.0.0.1", chance.randrange(65536), "10.0.0.2", 80, state=chance.choice([1, 2, 6, 10]), inode=i)
        for i in range(20_000)
    ]
    text = HEADER + b"".join(lines)
    whole, malformed, used = agreed(text)
    assert (malformed, used) == (0, len(text))
    found: list[rows.SocketRow] = []
    rest = b""
    at = 0
    while at < len(text):
        piece = rest + text[at : at + 65_536]
        at += 65_536
        more, _, used = procnet.scan_sockets(piece)
        found += more
        rest = piece[used:]
    assert rest == b""
    assert found == whole


@given(st.binary(max_size=400))
def test_random_bytes_are_judged_alike(text: bytes) -> None:
    agreed(text)


PIECES = st.sampled_from(
    [b" ", b"  ", b":", b"\n", b"0:", b"0A", b"01", b"s", b"00000000", b"0100007F", b"1F90", b"5", b"\0"]
)


@given(st.lists(PIECES, max_size=60).map(b"".join))
def test_random_words_of_the_format_are_judged_alike(text: bytes) -> None:
    agreed(text + b"\n")


@given(st.lists(st.sampled_from([HEADER, LISTENING, OTHERS, CONNECTING, IPV6]), max_size=6), st.data())
def test_damaged_texts_are_judged_alike(lines: list[bytes], data: st.DataObject) -> None:
    text = bytearray(b"".join(lines))
    for _ in range(data.draw(st.integers(0, 4)) if text else 0):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    agreed(bytes(text))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_a_text(kind: type) -> None:
    assert procnet.scan_sockets(kind(TEXT)) == reference.scan_sockets(TEXT)


@pytest.mark.parametrize(("family", "table"), [(socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")])
def test_this_machines_own_socket_is_found(family: socket.AddressFamily, table: str) -> None:
    path = Path("/proc/net", table)
    if not path.exists():
        pytest.skip(f"{path} does not exist here")
    with socket.socket(family) as one:
        one.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        one.listen()
        text = path.read_bytes()
        found, malformed, _ = agreed(text)
        inode = Path(f"/proc/self/fd/{one.fileno()}").stat().st_ino
        address = socket.inet_pton(family, one.getsockname()[0])
        assert [(row[2], row[3]) for row in found if row[7] == inode] == [(address, one.getsockname()[1])]
        assert malformed == 0
