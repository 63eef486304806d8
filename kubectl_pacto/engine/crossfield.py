# SPDX-License-Identifier: MIT
"""Layer 2: what one field of a contract demands of another, and of its bundle's files.

Without a bundle (an inline contract) nothing is asked of files. Each rule yields issues whose paths
are `section[index].field`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from urllib.parse import unquote, urlsplit

from kubectl_pacto.jsonschemas import SchemaError, compile_schema, violations
from kubectl_pacto.model.contract import Capability, Configuration, Contract, Dependency, Interface, Policy
from kubectl_pacto.model.finding import Issue
from kubectl_pacto.model.ociref import SCHEME, parse_oci_ref
from kubectl_pacto.model.ranges import parse_range, parse_version
from kubectl_pacto.yamltext import YamlError, load_all

Files = Mapping[str, bytes]
INTERFACE_TYPES = ("openapi", "asyncapi", "grpc")
CAPABILITY_TYPES = ("health", "metrics", "extension")


def check_contract(contract: Contract, files: Files | None) -> list[Issue]:
    """Every issue of layer 2, in the order of the contract's sections."""
    found: list[Issue] = []
    if parse_version(contract.version) is None:
        problem = f"{contract.version!r} is not a semantic version such as 1.4.0"
        found.append(Issue("INVALID_SEMVER", "service.version", problem))
    found += _duplicates(
        "interfaces", "DUPLICATE_INTERFACE_NAME", [item.name for item in contract.interfaces]
    )
    for index, item in enumerate(contract.interfaces):
        found += _check_interface(f"interfaces[{index}]", item, files)
    found += _duplicates(
        "configurations", "DUPLICATE_CONFIGURATION_NAME", [item.name for item in contract.configurations]
    )
    for index, configuration in enumerate(contract.configurations):
        found += _check_configuration(f"configurations[{index}]", configuration, files)
    found += _duplicates("policies", "DUPLICATE_POLICY_NAME", [item.name for item in contract.policies])
    for index, policy in enumerate(contract.policies):
        found += _check_policy(f"policies[{index}]", policy, files)
    found += _duplicates(
        "dependencies", "DUPLICATE_DEPENDENCY_NAME", [item.name for item in contract.dependencies]
    )
    for index, dependency in enumerate(contract.dependencies):
        found += _check_dependency(f"dependencies[{index}]", dependency)
    found += _duplicates("capabilities", "DUPLICATE_CAPABILITY", [item.key for item in contract.capabilities])
    names = {item.name for item in contract.interfaces}
    for index, capability in enumerate(contract.capabilities):
        found += _check_capability(f"capabilities[{index}]", capability, names)
    found += _check_state(contract)
    found += _check_readiness(contract)
    return found


def _duplicates(section: str, code: str, names: Iterable[str]) -> Iterator[Issue]:
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in seen:
            problem = f"{name!r} is already {section}[{seen[name]}]"
            yield Issue(
                code,
                f"{section}[{index}].name" if section != "capabilities" else f"{section}[{index}]",
                problem,
            )
        else:
            seen[name] = index


def _check_interface(path: str, item: Interface, files: Files | None) -> Iterator[Issue]:
    if item.type not in INTERFACE_TYPES:
        yield Issue("INVALID_INTERFACE_TYPE", f"{path}.type", f"must be one of {', '.join(INTERFACE_TYPES)}")
    if not item.ref:
        yield Issue("INTERFACE_REF_REQUIRED", f"{path}.ref", "must name a file of the bundle")
    elif files is not None:
        if item.ref not in files:
            yield _no_file(f"{path}.ref", item.ref)
        else:
            problem = _spec_problem(item.ref, files[item.ref])
            if problem:
                yield Issue("INVALID_INTERFACE_SPEC", f"{path}.ref", f"{item.ref} {problem}")


def _no_file(path: str, name: str) -> Issue:
    return Issue("FILE_NOT_FOUND", path, f"the bundle has no file {name}")


def _spec_problem(name: str, data: bytes) -> str:
    """What keeps a file from describing an interface; empty if nothing does.

    Protocol Buffers sources have no parser here and are taken as they are.
    """
    try:
        text = data.decode()
        if name.endswith(".proto"):
            return "" if text.strip() else "is empty"
        if name.endswith((".yaml", ".yml")):
            list(load_all(text))
        else:
            json.loads(text)
    except YamlError as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    return ""


def _check_configuration(path: str, item: Configuration, files: Files | None) -> Iterator[Issue]:
    if item.ref.startswith(SCHEME) and parse_oci_ref(item.ref) is None:
        yield Issue("INVALID_CONFIG_REF", f"{path}.ref", _not_a_ref(item.ref))
    if item.values is not None and not item.schema and not item.ref:
        yield Issue("VALUES_WITHOUT_SCHEMA", f"{path}.values", "values need a schema that describes them")
    if files is None or not item.schema:
        return
    if item.schema not in files:
        yield _no_file(f"{path}.schema", item.schema)
        return
    try:
        problems = violations(compile_schema(files[item.schema]), item.values or {})
    except SchemaError as error:
        code = "INVALID_CONFIG_SCHEMA" if error.is_json else "INVALID_CONFIG_JSON"
        yield Issue(code, f"{path}.schema", f"{item.schema} {error}")
        return
    if item.values is not None:
        for at, message in problems:
            where = f"{path}.values.{at}" if at else f"{path}.values"
            yield Issue("CONFIG_VALUES_VALIDATION_FAILED", where, message)


def _check_policy(path: str, item: Policy, files: Files | None) -> Iterator[Issue]:
    if item.ref.startswith(SCHEME) and parse_oci_ref(item.ref) is None:
        yield Issue("INVALID_POLICY_REF", f"{path}.ref", _not_a_ref(item.ref))
    if item.target != "contract":
        yield Issue("UNSUPPORTED_POLICY_TARGET", f"{path}.target", "must be contract")
    if files is None or not item.schema:
        return
    if item.schema not in files:
        yield _no_file(f"{path}.schema", item.schema)
        return
    try:
        compile_schema(files[item.schema])
    except SchemaError as error:
        code = "INVALID_POLICY_SCHEMA" if error.is_json else "INVALID_POLICY_JSON"
        yield Issue(code, f"{path}.schema", f"{item.schema} {error}")


def _not_a_ref(text: str) -> str:
    return f"{text!r} is not an OCI reference such as oci://registry.example/team/service:1.0.0"


def _check_dependency(path: str, item: Dependency) -> Iterator[Issue]:
    if item.ref.startswith(SCHEME):
        ref = parse_oci_ref(item.ref)
        if ref is None:
            yield Issue("INVALID_OCI_REF", f"{path}.ref", _not_a_ref(item.ref))
            return
        if ref.tag and not ref.digest:
            named = f"dependency {item.name}: the tag of {item.ref}"
            problem = f"{named} can be moved; name the digest too (@sha256:...)"
            yield Issue("TAG_NOT_DIGEST", f"{path}.ref", problem)
    if not item.compatibility.strip():
        yield Issue("EMPTY_COMPATIBILITY", f"{path}.compatibility", "must be a version range such as ^1.0.0")
    elif parse_range(item.compatibility) is None:
        problem = f"{item.compatibility!r} is not a version range such as ^1.0.0"
        yield Issue("INVALID_COMPATIBILITY", f"{path}.compatibility", problem)


def _check_capability(path: str, item: Capability, interfaces: set[str]) -> Iterator[Issue]:
    if item.type not in CAPABILITY_TYPES:
        problem = f"must be one of {', '.join(CAPABILITY_TYPES)}"
        yield Issue("INVALID_CAPABILITY_TYPE", f"{path}.type", problem)
    if item.type == "extension":
        first, slash, _ = item.ref.partition("/")
        if not item.ref:
            yield Issue("CAPABILITY_REF_REQUIRED", f"{path}.ref", "an extension is named by its ref")
        elif not slash or "." not in first:
            problem = f"{item.ref!r} must look like domain.example/name"
            yield Issue("CAPABILITY_REF_INVALID", f"{path}.ref", problem)
    if item.binding is not None:
        if item.binding.interface not in interfaces:
            problem = f"no interface is called {item.binding.interface!r}"
            yield Issue("CAPABILITY_INTERFACE_UNKNOWN", f"{path}.binding.interface", problem)
        if item.binding.path and not is_plain_path(item.binding.path):
            problem = f"{item.binding.path!r} must be a path that begins with one slash, and nothing else"
            yield Issue("CAPABILITY_PATH_INVALID", f"{path}.binding.path", problem)


def is_plain_path(path: str) -> bool:
    """Whether a path can lead nowhere but to the host it is joined to."""
    if not path.startswith("/") or unquote(path).replace("\\", "/").startswith("//"):
        return False
    try:
        parts = urlsplit(path)
    except ValueError:
        return False
    return not (parts.scheme or parts.netloc or parts.fragment) and "#" not in path


def _check_state(contract: Contract) -> Iterator[Issue]:
    state = contract.state
    if state is not None and state.type == "stateless" and state.durability == "persistent":
        problem = "a stateless service keeps nothing: durability must be ephemeral"
        yield Issue("STATELESS_PERSISTENT_CONFLICT", "state.persistence.durability", problem)


def is_canonical_date(text: str) -> bool:
    """Whether a text is a date exactly as YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _check_readiness(contract: Contract) -> Iterator[Issue]:
    readiness = contract.readiness
    if readiness is None:
        return
    if not is_canonical_date(readiness.expires):
        problem = f"{readiness.expires!r} is not a date such as 2026-12-31"
        yield Issue("INVALID_READINESS_EXPIRES", "readiness.expires", problem)
    for index, revision in enumerate(readiness.history):
        words = (revision.version, revision.author, revision.description)
        if not is_canonical_date(revision.date) or not all(word.strip() for word in words):
            problem = (
                "needs a date such as 2026-12-31, and a version, author and description that say something"
            )
            yield Issue("INVALID_READINESS_REVISION", f"readiness.history[{index}]", problem)
    seen: set[str] = set()
    for index, claim in enumerate(readiness.claims):
        path = f"readiness.claims[{index}]"
        if claim.id in seen:
            yield Issue("DUPLICATE_READINESS_ID", f"{path}.id", f"{claim.id!r} is already there")
        seen.add(claim.id)
        if not claim.evidence.strip():
            yield Issue("EMPTY_READINESS_EVIDENCE", f"{path}.evidence", "must say where the evidence is")
        if claim.description and not claim.description.strip():
            yield Issue("EMPTY_READINESS_DESCRIPTION", f"{path}.description", "must say something")
