# SPDX-License-Identifier: MIT
"""Many revisions: each is a few hundred bytes, and comes back as it was."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.controller.revision_table import Revision, RevisionTable, decode_revision, pack, unpack
from kubectl_pacto.kube.reflector import Broken
from tests.unit.controller.registry_world import revision_like

MANY = 20_000
# a name, what is packed, and their place in a table
LARGEST = 350


def uid(number: int) -> str:
    return str(UUID(int=number))


def raw(number: int) -> dict[str, Any]:
    """One of a fleet's revisions: twenty of each Pacto."""
    pacto = f"payments-{number // 20}"
    made = revision_like(
        f"{pacto}-1-{number % 20}-0-{number:07x}",
        created=f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        owner=uid(number // 20),
        oci=f"registry.example.com/payments/contracts/{pacto}:1.{number % 20}.0",
        tag=f"sha256:{number:064x}",
    )
    made["metadata"]["uid"] = uid(10**9 + number)
    made["spec"]["pactoRef"] = pacto
    return made


def packed(raw: dict[str, Any]) -> bytes:
    return pack(decode_revision(raw))


def test_each_takes_little_from_the_list_on() -> None:
    table = RevisionTable()
    table.replace({("ns", "warm"): packed(raw(0))})
    gc.collect()
    tracemalloc.start()
    try:
        table.replace({("ns", one["metadata"]["name"]): packed(one) for one in map(raw, range(MANY))})
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table) == MANY
    assert kept / MANY < LARGEST


TEXT = st.text(max_size=20)
REVISIONS = st.builds(
    Revision,
    namespace=TEXT,
    name=TEXT,
    uid=TEXT | st.uuids().map(str) | st.uuids().map(lambda one: str(one).upper()),
    pacto=TEXT,
    owner=TEXT | st.uuids().map(str) | st.uuids().map(lambda one: one.hex),
    oci=TEXT,
    digest=TEXT
    | st.binary(max_size=64).map(lambda one: f"sha256:{one.hex()}")
    | st.binary(max_size=64).map(lambda one: f"sha512:{one.hex()}")
    | st.binary(max_size=64).map(bytes.hex),
    created=TEXT
    | st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "1960-01-01T00:00:00Z"]),
    is_resolved=st.booleans(),
)


@given(REVISIONS)
def test_a_revision_comes_back_as_it_was(one: Revision) -> None:
    assert unpack(one.namespace, one.name, pack(one)) == one


def test_who_owns_what() -> None:
    table = RevisionTable()
    for number in (0, 1, 20):
        table.put(("ns", raw(number)["metadata"]["name"]), packed(raw(number)))
    table.put(("other", "r"), packed(revision_like("r", owner="no-uuid")))
    names = [raw(number)["metadata"]["name"] for number in (0, 1, 20)]
    assert table.owned() == {
        ("ns", uid(0)): names[:2],
        ("ns", uid(1)): names[2:],
        ("other", "no-uuid"): ["r"],
    }


def test_what_is_deleted_is_told_however_it_is_learned() -> None:
    lost: list[str] = []
    table = RevisionTable(lambda one: lost.append(f"{one.namespace}/{one.name} of {one.pacto}"))
    for namespace in ("a", "b"):
        for name in ("r", "s", "t"):
            table.put((namespace, name), packed(revision_like(name)))
    table.drop(("a", "r"))
    table.drop(("a", "r"))
    table.put(("a", "s"), packed(revision_like("s", created="2026-01-01T00:00:00Z")))
    assert lost == ["a/r of shop"]
    table.put(("a", "s"), Broken("no"))
    assert lost[1:] == ["a/s of shop"]
    table.replace({("b", "t"): packed(revision_like("t")), ("b", "s"): Broken("no")})
    assert sorted(lost[2:]) == ["a/t of shop", "b/r of shop", "b/s of shop"]
    assert len(table) == 1


def test_a_list_of_what_is_here_already_takes_nothing() -> None:
    table = RevisionTable()
    for number in range(100):
        table.put(("ns", raw(number)["metadata"]["name"]), table.decode(raw(number)))
    before = {id(one) for names in table._spaces.values() for pair in names.items() for one in pair}
    table.replace(
        {("ns", raw(number)["metadata"]["name"]): table.decode(raw(number)) for number in range(100)}
    )
    assert {id(one) for names in table._spaces.values() for pair in names.items() for one in pair} == before


def test_an_object_without_a_time_is_the_oldest() -> None:
    assert decode_revision(revision_like("r")).created == 0 < decode_revision(raw(0)).created


def test_an_empty_namespace_is_forgotten() -> None:
    table = RevisionTable()
    table.put(("a", "r"), packed(revision_like("r")))
    table.drop(("a", "r"))
    assert table._spaces == {}
    table.drop(("a", "r"))
    assert table._spaces == {}
