# SPDX-License-Identifier: MIT
"""The Pacto and PactoRevision CRDs; `make gen` writes them to manifests/crds.

What a user writes (spec) is validated as far as a schema can; what the operator writes (status) is in
status_schema. The workload's kind has no default on purpose: that an author named it is evidence.
"""

from __future__ import annotations

from kubectl_pacto.controller.schema_words import (
    Schema,
    column,
    crd,
    flag,
    listing,
    mapping,
    moment,
    name,
    number,
    one_of,
    port,
    record,
    text,
    whole,
)
from kubectl_pacto.controller.status_schema import CONDITIONS, status_schema
from kubectl_pacto.model.bounds import CHECK_INTERVAL_SECONDS
from kubectl_pacto.model.pacto import WORKLOAD_KINDS

SHORTEST_INTERVAL = 30


def pacto_crd() -> Schema:
    """The Pacto CustomResourceDefinition."""
    schema = whole(
        "A contract, and what runs in this cluster to hold against it.",
        {"spec": _spec(), "status": status_schema()},
        ["spec"],
    )
    columns = [
        column("Status", ".status.contractStatus"),
        column("Service", ".spec.target.serviceName"),
        column("Version", ".status.contractVersion"),
        column("Errors", ".status.summary.errorCount", type_="integer"),
        column("Warnings", ".status.summary.warningCount", type_="integer"),
        column("Unknown", ".status.summary.unknownCount", type_="integer", priority=1),
        column("Last Reconciled", ".status.lastReconciledAt", type_="date"),
        column("Age", ".metadata.creationTimestamp", type_="date"),
    ]
    names = {
        "kind": "Pacto",
        "listKind": "PactoList",
        "plural": "pactos",
        "singular": "pacto",
        "categories": ["pacto"],
    }
    return crd(names, schema, columns)


def _spec() -> Schema:
    return record(
        "What to check.",
        {
            "contractRef": record(
                "Where the contract is; inline wins when both are given.",
                {
                    "oci": text(
                        "OCI ref: without a tag it follows the highest semantic version, else it is pinned."
                    ),
                    "inline": text("The contract itself, as YAML."),
                    "pullSecretRef": text(
                        "Secret of this namespace to pull with: Opaque with `token`, or `username` and "
                        "`password`, and optionally `registry`; or kubernetes.io/dockerconfigjson."
                    ),
                },
            ),
            "target": _target(),
            "overrides": _overrides(),
            "checkIntervalSeconds": number(
                "Seconds between two checks.", least=SHORTEST_INTERVAL, default=CHECK_INTERVAL_SECONDS
            ),
        },
        ["contractRef"],
    )


def _overrides() -> Schema:
    values = record(
        "The values of one configuration.",
        {
            "name": name("The configuration, as the contract names it."),
            "values": mapping("Its values.", {"type": "string"}, minProperties=1),
        },
        ["name", "values"],
    )
    return record(
        "Values that replace the contract's.",
        {"configurations": listing("By configuration.", values, keys=("name",))},
    )


def _target() -> Schema:
    workload = record(
        "The workload that runs the service; omitted: the Deployment of the Service's name.",
        {
            "name": name("Its name."),
            "kind": one_of("Its kind; Deployment unless given.", WORKLOAD_KINDS),
        },
        ["name"],
    )
    return record(
        "What runs the contract's service, in this namespace; omitted: the contract is for reference only.",
        {
            "serviceName": text("The Service.", maxLength=63),
            "workloadRef": workload,
            "interfaceBindings": listing(
                "Which port serves which interface.", _interface_binding(), keys=("interface",)
            ),
            "configBindings": listing(
                "Which object holds which configuration.", _config_binding(), keys=("configuration",)
            ),
        },
    )


def _interface_binding() -> Schema:
    return record(
        "One interface of the contract and its Service port.",
        {
            "interface": name("The interface, as the contract names it."),
            "servicePort": port("Number or name of the Service's port."),
        },
        ["interface", "servicePort"],
    )


def _config_binding() -> Schema:
    return record(
        "One configuration of the contract and the object that holds it.",
        {
            "configuration": name("The configuration, as the contract names it."),
            "kind": one_of("ConfigMap, or Secret, of which only the existence is looked at.", _HOLDERS),
            "name": name("The object's name."),
            "key": text("The key of its data."),
            "format": one_of("How the value is written.", ("yaml", "json")),
        },
        ["configuration", "kind", "name"],
    )


_HOLDERS = ("ConfigMap", "Secret")


def _revision_spec() -> Schema:
    return record(
        "Which contract of which Pacto.",
        {
            "pactoRef": name("The Pacto."),
            "version": text("The contract's version."),
            "serviceName": text("The contract's service."),
            "source": record(
                "Where it came from.",
                {
                    "oci": text("The OCI ref it was pulled by."),
                    "digest": text("The digest that the ref had."),
                    "inline": flag("Whether the Pacto held it inline."),
                },
            ),
        },
        ["pactoRef", "version", "source"],
    )


def revision_crd() -> Schema:
    """The PactoRevision CustomResourceDefinition."""
    status = record(
        "What became of getting it.",
        {
            "resolved": flag("Whether the contract was obtained and is valid."),
            "contractHash": text("SHA-256 of the contract as it was written, in hexadecimal."),
            "createdAt": moment("When this contract was first seen."),
            "conditions": CONDITIONS,
        },
        ["resolved"],
    )
    schema = whole(
        "One version of a Pacto's contract.", {"spec": _revision_spec(), "status": status}, ["spec"]
    )
    columns = [
        column("Version", ".spec.version"),
        column("Pacto", ".spec.pactoRef"),
        column("Resolved", ".status.resolved", type_="boolean"),
        column("Age", ".metadata.creationTimestamp", type_="date"),
    ]
    names = {
        "kind": "PactoRevision",
        "listKind": "PactoRevisionList",
        "plural": "pactorevisions",
        "singular": "pactorevision",
        "categories": ["pacto"],
    }
    return crd(names, schema, columns)
