# SPDX-License-Identifier: MIT
"""JSON Schema (draft 2020-12) through the jsonschema library: the only place that imports it.

No schema is ever fetched: a reference to anywhere but the schema itself is no schema to us.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any


class SchemaError(ValueError):
    """Text that is no JSON (`is_json` False), or JSON that is no JSON Schema."""

    def __init__(self, problem: str, *, is_json: bool) -> None:
        super().__init__(problem)
        self.is_json = is_json


def validator(schema: Any) -> Any:
    """A validator of a decoded schema that is known to be one."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    return Draft202012Validator(schema, registry=Registry())


@lru_cache(maxsize=256)
def compile_schema(text: bytes) -> Any:
    """A validator of the schema in a file. Raises SchemaError."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError as NoSchema

    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"is not JSON: {error}", is_json=False) from None
    if not isinstance(schema, dict | bool):
        raise SchemaError("is not a JSON Schema: it must be an object", is_json=True)
    try:
        Draft202012Validator.check_schema(schema)
    except NoSchema as error:
        raise SchemaError(f"is not a JSON Schema: {error.message}", is_json=True) from None
    return validator(schema)


def violations(compiled: Any, data: Any) -> list[tuple[str, str]]:
    """Each leaf violation as (dot-joined path, message), sorted. Raises SchemaError.

    The error is for a reference that leads nowhere, which shows only when it is followed.
    """
    from referencing.exceptions import Unresolvable

    try:
        found = [leaf for error in compiled.iter_errors(data) for leaf in leaves(error)]
    except Unresolvable as error:
        raise SchemaError(f"has a reference that leads nowhere: {error.ref}", is_json=True) from None
    except RecursionError:
        raise SchemaError("refers to itself without end", is_json=True) from None
    return sorted({(".".join(map(str, leaf.absolute_path)), str(leaf.message)) for leaf in found})


def leaves(error: Any) -> list[Any]:
    """The innermost violations of one; of exclusive alternatives the whole."""
    if error.validator == "oneOf" or not error.context:
        return [error]
    return [leaf for inner in error.context for leaf in leaves(inner)]
