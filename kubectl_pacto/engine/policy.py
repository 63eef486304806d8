# SPDX-License-Identifier: MIT
"""Layer 3: the contract's own document against the policies it names; all of them must hold.

The operator enforces local policies only. Given a resolver, references are enforced too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubectl_pacto.jsonschemas import SchemaError, compile_schema, violations
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.finding import Issue
from kubectl_pacto.yamltext import YamlError, load_contract

Files = Mapping[str, bytes]
# the files of the bundle behind a reference, None if it cannot be had
Resolver = Callable[[str], Files | None]
POLICY_FILE: Final = "policy/schema.json"
CONTRACT_FILE: Final = "pacto.yaml"


def enforce_policies(
    contract: Contract, document: Any, files: Files | None, resolver: Resolver | None = None
) -> list[Issue]:
    """Every violation, sorted; without a bundle there is no local policy to read."""
    found: list[Issue] = []
    for index, policy in enumerate(contract.policies):
        path = f"policies[{index}]"
        if policy.schema and files is not None and policy.schema in files:
            found += _apply(files[policy.schema], document, path)
        elif policy.ref and resolver is not None:
            found += _apply_ref(policy.ref, document, path, resolver, ())
        elif policy.ref and files is not None:
            problem = f"policy {policy.name} is a reference, which is not resolved here: {policy.ref}"
            found.append(Issue("POLICY_REF_NOT_ENFORCED", f"{path}.ref", problem))
    return sorted(set(found), key=lambda issue: (issue.code, issue.path, issue.message))


def _apply(schema: bytes, document: Any, path: str) -> Iterator[Issue]:
    try:
        problems = violations(compile_schema(schema), document)
    except SchemaError as error:
        yield Issue("POLICY_ENFORCEMENT_ERROR", path, f"the policy {error}")
        return
    for at, message in problems:
        yield Issue("POLICY_VIOLATION", "", f"{at}: {message}" if at else message)


def _apply_ref(
    ref: str, document: Any, path: str, resolver: Resolver, chain: tuple[str, ...]
) -> Iterator[Issue]:
    if ref in chain:
        yield Issue("POLICY_REF_CYCLE", path, " -> ".join([*chain, ref]))
        return
    files = resolver(ref)
    if files is None:
        yield Issue("POLICY_REF_UNRESOLVED", path, f"{ref} cannot be had")
        return
    refs = _onward(files)
    if POLICY_FILE in files:
        yield from _apply(files[POLICY_FILE], document, path)
    elif not refs:
        yield Issue("POLICY_REF_UNRESOLVED", path, f"{ref} holds no {POLICY_FILE}")
    for onward in refs:
        yield from _apply_ref(onward, document, path, resolver, (*chain, ref))


def _onward(files: Files) -> list[str]:
    """The policies that a policy's own bundle refers to."""
    try:
        data = load_contract(files.get(CONTRACT_FILE, b"").decode()).data
    except (YamlError, UnicodeDecodeError):
        return []
    listed = data.get("policies") if isinstance(data, dict) else None
    items = listed if isinstance(listed, list) else []
    return [str(item["ref"]) for item in items if isinstance(item, dict) and item.get("ref")]
