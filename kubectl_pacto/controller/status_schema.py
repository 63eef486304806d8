# SPDX-License-Identifier: MIT
"""The schema of a Pacto's status, field by field; a test holds to it what checks produce."""

from __future__ import annotations

from typing import Final

from kubectl_pacto.controller.schema_words import (
    Schema,
    flag,
    listing,
    mapping,
    moment,
    number,
    one_of,
    record,
    text,
)
from kubectl_pacto.engine.ladder import ContractStatus
from kubectl_pacto.model.finding import Severity
from kubectl_pacto.model.pacto import WINDOW_KINDS

# the last is for statuses that other tools write
CONTRACT_STATUSES: Final = tuple(dict.fromkeys([*(item.value for item in ContractStatus), "NotEvaluated"]))
REQUIRED_COUNTS: Final = ("errorCount", "warningCount", "infoCount", "unknownCount")

CONDITIONS: Final = listing(
    "Conditions, by type.",
    record(
        "One condition.",
        {
            "type": text("What it is about.", maxLength=316),
            "status": one_of("Whether it holds.", ("True", "False", "Unknown")),
            "reason": text("Why, as one word.", minLength=1, maxLength=1024),
            "message": text("Why, for a person.", maxLength=32768),
            "lastTransitionTime": moment("Since when its status is this."),
            "observedGeneration": number("The generation it was set for.", format="int64"),
        },
        ["type", "status", "reason", "message", "lastTransitionTime"],
    ),
    keys=("type",),
)


def status_schema() -> Schema:
    """`status` of a Pacto."""
    return record(
        "What the last check found.",
        {
            "contractStatus": one_of("The verdict.", CONTRACT_STATUSES),
            "evaluationCoverage": _coverage(),
            "observationWindows": _windows(),
            "resolutionPolicy": one_of(
                "How the OCI ref picks a version.", ("Latest", "PinnedTag", "PinnedDigest")
            ),
            "summary": record(
                "How many findings of each severity.",
                {
                    count: number(f"Findings of severity {count.removesuffix('Count')}.")
                    for count in REQUIRED_COUNTS
                },
                REQUIRED_COUNTS,
            ),
            "contractVersion": text("The version of the contract."),
            "contract": _contract(),
            "validation": _validation(),
            "findings": listing("What contradicts the contract or could not be told.", _finding()),
            "resources": _resources(),
            **_declared(),
            "observedRuntime": _runtime(),
            "kernelEvidence": _kernel(),
            "readiness": _readiness(),
            "metadata": mapping("The contract's metadata, values as text.", {"type": "string"}),
            "conditions": CONDITIONS,
            "currentRevision": text("The PactoRevision of the contract that was checked."),
            "lastReconciledAt": moment("When the last check was."),
            "observedGeneration": number("The generation that was checked.", format="int64"),
        },
    )


def _coverage() -> Schema:
    unverified = record(
        "A check without a usable fact; it never changes the verdict.",
        {"contractPath": text("The field of the contract."), "reason": text("Why it was not verified.")},
        ["contractPath", "reason"],
    )
    return record(
        "How much of the contract could be evaluated.",
        {
            "evaluated": number("Required assertions that were evaluated."),
            "required": number("Required assertions."),
            "unverified": listing("Checks that had no usable fact.", unverified),
        },
        ["evaluated", "required"],
    )


def _windows() -> Schema:
    window = record(
        "An absence that has not stood for long enough to be a finding.",
        {
            "kind": one_of("What is absent.", WINDOW_KINDS),
            "subject": text("Its name."),
            "firstObservedNegativeAt": moment("Since when."),
        },
        ["kind", "subject", "firstObservedNegativeAt"],
    )
    return listing("Open stabilization windows.", window)


def _contract() -> Schema:
    contact = record(
        "A way to reach the owner.",
        {
            "type": text("Its kind."),
            "value": text("The address."),
            "purpose": text("What it is for."),
        },
    )
    owner = record(
        "Who answers for the service.",
        {
            "team": text("The team."),
            "dri": text("The person."),
            "contacts": listing("Ways to reach them.", contact),
        },
    )
    return record(
        "The contract that was checked; dependencies of other Pactos resolve by it.",
        {
            "serviceName": text("Its service."),
            "version": text("Its version."),
            "owner": owner,
            "ownerDisplay": text("The team, else the person."),
            "resolvedRef": text("The OCI ref it was loaded from; empty for an inline contract."),
        },
        ["serviceName", "version"],
    )


def _validation() -> Schema:
    issue = record(
        "Something wrong with the contract.",
        {
            "code": text("Its code."),
            "path": text("Where in the contract."),
            "message": text("What, for a person."),
        },
        ["message"],
    )
    return record(
        "Whether the contract is valid.",
        {
            "valid": flag("Whether it is."),
            "errors": listing("Why not.", issue),
            "warnings": listing("What should be changed.", issue),
        },
        ["valid"],
    )


def _finding() -> Schema:
    ref = record(
        "The evidence of a finding.",
        {
            "source": text("Who observed: k8s."),
            "collector": text("What decided: k8s-observer, k8s-observer+ebpf or ebpf."),
            "observedAt": moment("When the evidence was gathered."),
            "detectedAt": moment("When this fact was detected."),
        },
        ["source", "observedAt"],
    )
    return record(
        "One finding.",
        {
            "code": text("Its code."),
            "severity": one_of("How bad.", (item.value for item in Severity)),
            "category": text("What kind of problem."),
            "subject": text("About what: kind/name."),
            "contractPath": text("The field of the contract."),
            "message": text("What, for a person."),
            "evidenceRefs": listing("What it rests on.", ref),
        },
        ["code", "severity", "message"],
    )


def _resources() -> Schema:
    resource = {
        "name": text("Its name."),
        "kind": text("Its kind."),
        "exists": flag("Whether it was found."),
    }
    return record(
        "The target's objects.",
        {
            "service": record("The Service.", resource, ["name", "exists"]),
            "workload": record("The workload.", resource, ["name", "exists"]),
        },
    )


def _declared() -> dict[str, Schema]:
    """What the contract declares, for people and dashboards."""
    named = text("Its name.")
    interface = {
        "name": named,
        "type": text("openapi, grpc or asyncapi."),
        "ref": text("Its description in the bundle."),
        "visibility": text("public or internal, where the contract says."),
    }
    dependency = {
        "name": named,
        "ref": text("The provider's contract."),
        "required": flag("Whether the service cannot do without."),
        "compatibility": text("The range of versions."),
    }
    capability = {"type": text("health, metrics or extension."), "ref": text("The extension.")}
    return {
        "interfaces": listing("Declared interfaces.", record("One.", interface, ["name", "type"])),
        "capabilities": listing("Declared capabilities.", record("One.", capability, ["type"])),
        "dependencies": listing(
            "Declared dependencies.", record("One.", dependency, ["name", "ref", "required"])
        ),
        "configurations": _configurations(),
        "policies": _policies(),
    }


def _properties() -> Schema:
    item = record(
        "A property.",
        {"key": text("Its name."), "value": text("Its value."), "type": text("Its type.")},
        ["key"],
    )
    return listing("Its properties.", item)


def _configurations() -> Schema:
    keys = {"type": "string"}
    fields = {
        "name": text("Its name."),
        "hasSchema": flag("Whether it has a schema."),
        "ref": text("Where its schema is, if elsewhere."),
        "valueKeys": listing("The keys of its values.", keys),
        "secretKeys": listing("The keys whose values are secrets.", keys),
        "overriddenKeys": listing("The keys that the Pacto overrides.", keys),
        "properties": _properties(),
    }
    return listing("Declared configurations.", record("One.", fields, ["name", "hasSchema"]))


def _policies() -> Schema:
    fields = {
        "name": text("Its name."),
        "hasSchema": flag("Whether it has a schema."),
        "schema": text("The schema's file."),
        "ref": text("Where it is, if elsewhere."),
        "title": text("Its title."),
        "description": text("What it asks for."),
        "properties": _properties(),
    }
    return listing("Declared policies.", record("One.", fields, ["name", "hasSchema"]))


def _runtime() -> Schema:
    return record(
        "What the workload looks like; only while it exists.",
        {
            "workloadKind": text("Its kind."),
            "deploymentStrategy": text("Of a Deployment."),
            "podManagementPolicy": text("Of a StatefulSet."),
            "terminationGracePeriodSeconds": number("Of its pods.", format="int64"),
            "containerImages": listing("Its images.", {"type": "string"}),
            "hasPVC": flag("Whether it has a persistent volume claim."),
            "hasEmptyDir": flag("Whether it has an empty directory."),
            "healthProbeInitialDelaySeconds": number("Of its first container's probe."),
        },
        ["hasPVC", "hasEmptyDir"],
    )


def _kernel() -> Schema:
    return record(
        "How well the kernel covers the target's pods; absent while kernel evidence is off.",
        {
            "complete": number("Pods that are covered completely."),
            "partial": number("Pods whose view is not complete."),
            "failed": number("Pods on nodes whose collection failed."),
            "stale": number("Pods on nodes without a fresh heartbeat."),
            "reasons": mapping(
                "Why not complete, and how many pods.", {"type": "integer", "format": "int32"}
            ),
        },
        ["complete", "partial", "failed", "stale"],
    )


def _readiness() -> Schema:
    counts = ("score", "minScore", "totalWeight", "earnedWeight", "doneCount", "partialCount")
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return record(
        "The contract's readiness; never changes the verdict.",
        {
            **{name: number(f"{name} of its claims.") for name in (*counts, "notDoneCount", "deferredCount")},
            "passing": flag("Whether the score reaches the least one."),
            "expires": text("Until when it holds."),
            "expired": flag("Whether that has passed."),
            "daysRemaining": number("Days until then.", least=None),
            "revisions": listing("Its revisions, as declared.", free),
            "claims": listing("Its claims, as declared.", free),
        },
    )
