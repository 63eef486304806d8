# SPDX-License-Identifier: MIT
"""What the chart's values are made of: a value with its default, its words and its JSON schema.

Draft 7, because every Helm since 3.0 reads it. Helm checks a user's values against the schema after it
has laid them over the defaults, so each key can be required: a null takes a key out and is refused.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.model.bounds import LONGEST_INTERVAL_SECONDS, SHORTEST_INTERVAL_SECONDS

Schema = dict[str, Any]
DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_NUMBERS: Final = r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+"
# patterns hold for both dialects that read them, Go's and ECMA 262's; and what each asks for
DURATION_PATTERN: Final = rf"^(0|{_NUMBERS})?$"
POSITIVE_PATTERN: Final = "^$|[1-9]"
# of an interval of the node agent, from SHORTEST_INTERVAL_SECONDS to LONGEST_INTERVAL_SECONDS: one unit, or
# hours, minutes and seconds as on a clock
_PART = r"(\.[0-9]+)?"
_SIXTY = "[0-5]?[0-9]"
_DAY = "([1-9]|1[0-9]|2[0-3])"
_DAY_MINUTES = "([1-9][0-9]{0,2}|1[0-3][0-9]{2}|14[0-3][0-9])"
_DAY_SECONDS = "([1-9][0-9]{0,3}|[1-7][0-9]{4}|8[0-5][0-9]{3}|86[0-3][0-9]{2})"
INTERVAL_PATTERN: Final = "^({})$".format(
    "|".join(
        (
            "[1-9][0-9]{3,6}ms",
            f"{_DAY_SECONDS}{_PART}s|86400s",
            f"{_DAY_MINUTES}({_PART}m|m{_SIXTY}{_PART}s)|1440m(0s)?",
            f"{_DAY}({_PART}h|h{_SIXTY}m|h({_SIXTY}m)?{_SIXTY}{_PART}s)|24h(0m)?(0s)?",
            r"0\.[1-9][0-9]*[mh]",
        )
    )
)
INTERVAL_WORDS: Final = f"{SHORTEST_INTERVAL_SECONDS:g}s to {LONGEST_INTERVAL_SECONDS / 3600:g}h"
NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
OPTIONAL_NAME_PATTERN: Final = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"
# a Service is named after it
OBJECT_PATTERN: Final = r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$"
SHARE_PATTERN: Final = r"^[1-9][0-9]*%?$"
# as Kubernetes reads one, without a sign that makes it negative
QUANTITY_PATTERN: Final = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$"
WORDS: Final = {
    DURATION_PATTERN: "a duration such as 30s, 2m or 1h30m",
    POSITIVE_PATTERN: "a duration above zero",
    INTERVAL_PATTERN: f"a duration of {INTERVAL_WORDS} such as 30s, 2m or 1h30m",
    NAME_PATTERN: "a Kubernetes name: lower case letters, digits and dashes",
    OPTIONAL_NAME_PATTERN: "a Kubernetes name: lower case letters, digits and dashes",
    OBJECT_PATTERN: "the name of a Service: lower case letters, digits and dashes, a letter first",
    QUANTITY_PATTERN: "a quantity such as 500m, 2 or 256Mi",
    SHARE_PATTERN: "a number of nodes such as 1, or a share such as 10%",
}

TEXT: Final[Schema] = {"type": "string"}
GIVEN_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
SWITCH: Final[Schema] = {"type": "boolean"}
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string", "minLength": 1}}
TEXT_MAP: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
NAME: Final[Schema] = {"type": "string", "pattern": NAME_PATTERN, "maxLength": 63}
OPTIONAL_NAME: Final[Schema] = {"type": "string", "pattern": OPTIONAL_NAME_PATTERN, "maxLength": 63}
OBJECT_NAME: Final[Schema] = {"type": "string", "pattern": OBJECT_PATTERN, "maxLength": 40}
# empty: the program's own default
DURATION: Final[Schema] = {"type": "string", "pattern": DURATION_PATTERN}
POSITIVE: Final[Schema] = {**DURATION, "allOf": [{"pattern": POSITIVE_PATTERN}]}
INTERVAL: Final[Schema] = {"type": "string", "pattern": INTERVAL_PATTERN}


def choice(*names: str) -> Schema:
    """One of these."""
    return {"type": "string", "enum": list(names)}


def number(least: int, most: int | None = None) -> Schema:
    """A whole number of a range."""
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def closed(**properties: Schema) -> Schema:
    """An object of these keys and no others, none of them required."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


SHARE: Final[Schema] = {"type": ["string", "integer"], "pattern": SHARE_PATTERN, "minimum": 1}
PULL_SECRETS: Final[Schema] = {
    "type": "array",
    "items": {**closed(name={"type": "string", "minLength": 1}), "required": ["name"]},
}
QUANTITY: Final[Schema] = {"type": ["string", "number"], "pattern": QUANTITY_PATTERN, "minimum": 0}
_QUANTITIES: Final[Schema] = {"type": "object", "additionalProperties": QUANTITY}
RESOURCES: Final[Schema] = closed(requests=_QUANTITIES, limits=_QUANTITIES, claims={"type": "array"})
TOLERATIONS: Final[Schema] = {
    "type": "array",
    "items": closed(
        key=TEXT,
        operator=choice("Exists", "Equal", "Lt", "Gt"),
        value=TEXT,
        effect=choice("NoSchedule", "PreferNoSchedule", "NoExecute"),
        tolerationSeconds={"type": "integer"},
    ),
}
_ANY: Final[Schema] = {"type": "object"}
AFFINITY: Final[Schema] = closed(nodeAffinity=_ANY, podAffinity=_ANY, podAntiAffinity=_ANY)
PEERS: Final[Schema] = {
    "type": "array",
    "items": closed(ipBlock=_ANY, namespaceSelector=_ANY, podSelector=_ANY),
}
FREE: Final[Schema] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a user: what it is while nobody says, what it does, what it may be."""

    default: Any
    words: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Section:
    """Values that belong together under one key."""

    words: str
    entries: Mapping[str, Value | Section]

    def defaults(self) -> dict[str, Any]:
        """Every value as it is while nobody says; a copy that may be changed."""
        return {
            key: one.defaults() if isinstance(one, Section) else copy.deepcopy(one.default)
            for key, one in self.entries.items()
        }

    def schema(self) -> Schema:
        """The schema of the whole: no other key, and none may be missing."""
        properties: dict[str, Schema] = {}
        for key, one in self.entries.items():
            inner = one.schema() if isinstance(one, Section) else one.schema
            properties[key] = {"description": one.words, **inner}
            if isinstance(one, Value):
                properties[key]["default"] = copy.deepcopy(one.default)
        return {
            "type": "object",
            "additionalProperties": False,
            "required": list(self.entries),
            "properties": properties,
        }
