# SPDX-License-Identifier: MIT
"""What a contract declares, as a Pacto's status repeats it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from kubectl_pacto.engine.readiness import score_readiness
from kubectl_pacto.model.contract import Claim, Configuration, Contact, Contract, Owner, Policy, Readiness
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.pacto import Pacto

Files = Mapping[str, bytes]
SECRET_PREFIX = "secret://"  # noqa: S105 -- how a value says that it is one, not one


def declared_fields(
    pacto: Pacto, contract: Contract, resolved_ref: str, at: float, files: Files | None = None
) -> dict[str, Any]:
    """The status fields that follow from the contract and its bundle; `at` is the readiness' clock."""
    overridden = {name: sorted(values) for name, values in pacto.overrides}
    body: dict[str, Any] = {
        "contractVersion": contract.version,
        "contract": _contract(contract, resolved_ref),
        "interfaces": [
            _present(
                name=item.name,
                type=item.type.value,
                ref=item.ref,
                visibility=item.visibility.value if item.visibility else "",
            )
            for item in contract.interfaces
        ],
        "capabilities": [_present(type=item.type, ref=item.ref) for item in contract.capabilities],
        "dependencies": [
            {
                "name": item.name,
                "ref": item.ref,
                "required": item.required,
                "compatibility": item.compatibility,
            }
            for item in contract.dependencies
        ],
        "configurations": [
            _configuration(item, overridden.get(item.name, []), _schema(files, item.schema))
            for item in contract.configurations
        ],
        "policies": [_policy(item, _schema(files, item.schema)) for item in contract.policies],
    }
    if contract.readiness is not None:
        body["readiness"] = readiness_fields(contract.readiness, at)
    if contract.metadata:
        body["metadata"] = {str(key): _as_text(value) for key, value in contract.metadata.items()}
    return body


def day_of(at: float) -> date:
    """The day, in UTC, of a moment in POSIX seconds."""
    return date.fromisoformat(format_instant(at)[:10])


def readiness_fields(readiness: Readiness, at: float) -> dict[str, Any]:
    """The field `readiness`: the score of the day and what it is made of."""
    score = score_readiness(readiness, day_of(at))
    states = [claim.status for claim in readiness.claims]
    return {
        "score": score.score,
        "minScore": readiness.min_score,
        "passing": score.passing,
        "totalWeight": score.total,
        "earnedWeight": score.earned,
        "expires": readiness.expires,
        "expired": score.expired,
        "daysRemaining": score.days_remaining,
        "doneCount": states.count("done"),
        "partialCount": states.count("partial"),
        "notDoneCount": states.count("not-done"),
        "deferredCount": states.count("deferred"),
        "revisions": [
            {
                "date": item.date,
                "version": item.version,
                "author": item.author,
                "description": item.description,
            }
            for item in readiness.history
        ],
        "claims": [_claim(claim) for claim in readiness.claims],
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        **_present(
            id=claim.id,
            type=claim.type,
            status=claim.status,
            evidence=claim.evidence,
            category=claim.category,
            description=claim.description,
        ),
        "weight": claim.weight,
    }


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", None, [])}


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value)


def _contract(contract: Contract, resolved_ref: str) -> dict[str, Any]:
    return _present(
        serviceName=contract.service,
        version=contract.version,
        owner=_owner(contract.owner) or None,
        ownerDisplay=contract.owner.display,
        resolvedRef=resolved_ref,
    )


def _owner(owner: Owner) -> dict[str, Any]:
    return _present(team=owner.team, dri=owner.dri, contacts=[_contact(item) for item in owner.contacts])


def _contact(contact: Contact) -> dict[str, Any]:
    return _present(type=contact.type, value=contact.value, purpose=contact.purpose)


def _schema(files: Files | None, name: str) -> Mapping[str, Any]:
    """The schema in a file of the bundle, which validation found to be one; empty without it."""
    if files is None or name not in files:
        return {}
    schema = json.loads(files[name])
    return schema if isinstance(schema, dict) else {}


def _properties(schema: Mapping[str, Any], values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The top-level properties of a schema and the values given for them, by name."""
    declared = schema.get("properties")
    known: Mapping[str, Any] = declared if isinstance(declared, dict) else {}
    found = []
    for key in sorted({*map(str, known), *map(str, values)}):
        inner = known.get(key)
        kind = inner.get("type", "") if isinstance(inner, dict) else ""
        value = _as_text(values[key]) if key in values else ""
        found.append(_present(key=key, value=value, type=kind if isinstance(kind, str) else "|".join(kind)))
    return found


def _policy(item: Policy, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_present(
            name=item.name,
            schema=item.schema,
            ref=item.ref,
            title=_text_of(schema, "title"),
            description=_text_of(schema, "description"),
            properties=_properties(schema, {}),
        ),
        "hasSchema": bool(item.schema),
    }


def _text_of(schema: Mapping[str, Any], name: str) -> str:
    value = schema.get(name)
    return value if isinstance(value, str) else ""


def _configuration(item: Configuration, overridden: list[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    values: Mapping[str, Any] = item.values or {}
    return {
        **_present(
            name=item.name,
            ref=item.ref,
            valueKeys=sorted(map(str, values)),
            secretKeys=sorted(
                str(key)
                for key, value in values.items()
                if isinstance(value, str) and value.startswith(SECRET_PREFIX)
            ),
            overriddenKeys=overridden,
            properties=_properties(schema, values),
        ),
        "hasSchema": bool(item.schema),
    }
