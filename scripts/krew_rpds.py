# SPDX-License-Identifier: MIT
"""`rpds` for the archive of platforms that we do not build on: what jsonschema and referencing use of it.

The real one is compiled for each platform. Collections that never change, a copy for each change:
slower where thousands of schemas are registered, and a contract has a handful.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class HashTrieMap(Mapping[K, V]):
    """A mapping; what changes it returns another."""

    __slots__ = ("_held",)

    def __init__(self, *pairs: Any, **named: Any) -> None:
        self._held: dict[K, V] = dict(*pairs, **named)

    @classmethod
    def convert(cls, value: Any) -> HashTrieMap[Any, Any]:
        """The value itself if it is one already."""
        return value if isinstance(value, cls) else cls(value)

    def __getitem__(self, key: K) -> V:
        return self._held[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __hash__(self) -> int:
        return hash(frozenset(self._held.items()))

    def __repr__(self) -> str:
        return f"HashTrieMap({self._held!r})"

    def insert(self, key: K, value: V) -> HashTrieMap[K, V]:
        """With this key."""
        return HashTrieMap({**self._held, key: value})

    def update(self, *pairs: Any, **named: Any) -> HashTrieMap[K, V]:
        """With these keys."""
        return HashTrieMap({**self._held, **dict(*pairs, **named)})

    def remove(self, key: K) -> HashTrieMap[K, V]:
        """Without this key. Raises KeyError."""
        rest = dict(self._held)
        del rest[key]
        return HashTrieMap(rest)

    def discard(self, key: K) -> HashTrieMap[K, V]:
        """Without this key, if it is there."""
        return self.remove(key) if key in self._held else self


class HashTrieSet(Set[K]):
    """A set; what changes it returns another."""

    __slots__ = ("_held",)

    def __init__(self, members: Iterable[K] = ()) -> None:
        self._held = frozenset(members)

    def __contains__(self, member: object) -> bool:
        return member in self._held

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __hash__(self) -> int:
        return hash(self._held)

    def __repr__(self) -> str:
        return f"HashTrieSet({set(self._held)!r})"

    def insert(self, member: K) -> HashTrieSet[K]:
        """With this member."""
        return HashTrieSet(self._held | {member})

    def update(self, *others: Iterable[K]) -> HashTrieSet[K]:
        """With all of these."""
        return HashTrieSet(self._held.union(*others))

    def discard(self, member: K) -> HashTrieSet[K]:
        """Without this member, if it is there."""
        return HashTrieSet(self._held - {member})

    def remove(self, member: K) -> HashTrieSet[K]:
        """Without this member. Raises KeyError."""
        if member not in self._held:
            raise KeyError(member)
        return self.discard(member)


class List(Generic[V]):
    """A list that grows at its front."""

    __slots__ = ("_held",)

    def __init__(self, *members: Any) -> None:
        self._held: tuple[V, ...] = tuple(members[0]) if len(members) == 1 else members

    def __iter__(self) -> Iterator[V]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, List) and self._held == other._held

    def __hash__(self) -> int:
        return hash(self._held)

    def __repr__(self) -> str:
        return f"List({list(self._held)!r})"

    def push_front(self, member: V) -> List[V]:
        """With this before all others."""
        return List((member, *self._held))
