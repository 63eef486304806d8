# SPDX-License-Identifier: MIT
"""Is a declared configuration there, and does it satisfy its schema? The Kubernetes API alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_pacto.jsonschemas import SchemaError, compile_schema, violations
from kubectl_pacto.model.contract import Configuration
from kubectl_pacto.model.kube import ConfigMap, Unreadable
from kubectl_pacto.model.pacto import ConfigBinding
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.reading import Answer, Reading
from kubectl_pacto.yamltext import load_contract


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """A reading, whether the configuration satisfies its schema, and whether a window survives it."""

    reading: Reading
    conformant: bool = False
    keeps_window: bool = False


def _insufficient(why: str) -> ConfigReading:
    return ConfigReading(Reading(Answer.INSUFFICIENT, why))


def _failed(why: str) -> ConfigReading:
    return ConfigReading(Reading(Answer.FAILED, why), keeps_window=True)


def read_configuration(snapshot: Snapshot, item: Configuration) -> ConfigReading | None:
    """What is known of a configuration; None when there is nothing to observe."""
    bindings = {binding.configuration: binding for binding in snapshot.pacto.configurations}
    binding = bindings.get(item.name)
    if binding is None:
        if not item.required:
            return None
        why = "no configBinding says where it is"
        return ConfigReading(Reading(Answer.UNSUPPORTED, why), keeps_window=True)
    if binding.kind == "Secret":
        return _read_secret(snapshot, binding)
    found = snapshot.cluster.config_map(snapshot.pacto.namespace, binding.name)
    if found is None:
        return ConfigReading(Reading(Answer.NO, f"ConfigMap {binding.name} does not exist"))
    if isinstance(found, Unreadable):
        return _failed(f"cannot read ConfigMap {binding.name}: {found.why}")
    return _judge(snapshot.files, item, binding, found)


def _read_secret(snapshot: Snapshot, binding: ConfigBinding) -> ConfigReading:
    found = snapshot.cluster.secret(snapshot.pacto.namespace, binding.name)
    if found is None:
        return ConfigReading(Reading(Answer.NO, f"Secret {binding.name} does not exist"))
    if isinstance(found, Unreadable):
        return _failed(f"cannot read Secret {binding.name}: {found.why}")
    return _insufficient(f"Secret {binding.name} exists; its values are never read")


def _judge(
    files: Mapping[str, bytes] | None, item: Configuration, binding: ConfigBinding, found: ConfigMap
) -> ConfigReading:
    where = f"key {binding.key} of ConfigMap {binding.name}"
    if not binding.key or not binding.format:
        return _insufficient(f"the binding of ConfigMap {binding.name} gives no key and format")
    if binding.key not in found.data:
        return _insufficient(f"ConfigMap {binding.name} has no key {binding.key}")
    try:
        data = _decode(found.data[binding.key], binding.format)
    except ValueError as error:
        return _insufficient(f"{where} {error}")
    if not item.schema:
        return _insufficient("its schema is elsewhere (ref), which is not resolved")
    if files is None:
        return _insufficient("an inline contract has no bundle to hold its schema")
    if item.schema not in files:
        return _insufficient(f"the bundle has no file {item.schema}")
    try:
        problems = violations(compile_schema(files[item.schema]), data)
    except SchemaError as error:
        return _insufficient(f"{item.schema} {error}")
    if problems:
        path, message = problems[0]
        why = f"{where}: {path + ': ' if path else ''}{message}"
        return ConfigReading(Reading(Answer.YES, why))
    return ConfigReading(Reading(Answer.YES, f"{where} satisfies {item.schema}"), conformant=True)


def _decode(text: str, form: str) -> Any:
    """The data in a key. Raises ValueError saying what it is not."""
    if form == "json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is not JSON: {error}") from None
    if form == "yaml":
        return load_contract(text).data
    raise ValueError(f"has the format {form}, which is neither yaml nor json")
