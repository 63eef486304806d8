# SPDX-License-Identifier: MIT
"""A contract through all its layers of validation, each of which stops the next when it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_pacto.engine.crossfield import check_contract
from kubectl_pacto.engine.parse import parse_document, parse_text
from kubectl_pacto.engine.policy import enforce_policies
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.finding import Issue, Severity
from kubectl_pacto.yamltext import Document

Files = Mapping[str, bytes]
Overrides = tuple[tuple[str, Mapping[str, str]], ...]


@dataclass(frozen=True, slots=True)
class Validated:
    """A contract, None if it has an error; and what is wrong with it."""

    contract: Contract | None
    issues: tuple[Issue, ...] = ()

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The issues that make the contract invalid."""
        return tuple(item for item in self.issues if item.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The issues that do not."""
        return tuple(item for item in self.issues if item.severity is not Severity.ERROR)


def validate(text: str, *, overrides: Overrides = (), files: Files | None = None) -> Validated:
    """Validate a contract's text; `files` are its bundle's, None for an inline contract.

    Never raises: whatever is wrong is an issue.
    """
    document = parse_text(text)
    if not isinstance(document, Document):
        return Validated(None, (document,))
    issue = override(document, overrides)
    if issue is not None:
        return Validated(None, (issue,))
    parsed = parse_document(document)
    if parsed.contract is None:
        return Validated(None, parsed.issues)
    issues = check_contract(parsed.contract, files)
    if not any(item.severity is Severity.ERROR for item in issues):
        issues += enforce_policies(parsed.contract, document.data, files)
    is_valid = not any(item.severity is Severity.ERROR for item in issues)
    return Validated(parsed.contract if is_valid else None, tuple(issues))


def override(document: Document, overrides: Overrides) -> Issue | None:
    """Put overriding values into the document's configurations, as text; an issue if there is none.

    Every layer then sees the merged document.
    """
    if not overrides:
        return None
    data = document.data if isinstance(document.data, dict) else {}
    listed = data.get("configurations")
    known = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    for name, values in overrides:
        found = next((item for item in known if item.get("name") == name), None)
        if found is None:
            return Issue("", "spec.overrides", f"the contract declares no configuration {name!r} to override")
        before = found.get("values")
        found["values"] = {**(before if isinstance(before, dict) else {}), **values}
    return None
