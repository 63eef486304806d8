# SPDX-License-Identifier: MIT
"""Where a Pacto's contract comes from, and what became of getting it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kubectl_pacto.engine.layers import Validated, validate
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.finding import Issue
from kubectl_pacto.model.ociref import parse_oci_ref
from kubectl_pacto.model.pacto import Pacto, Published

# how the message of a contract begins that is on its way
AWAITED: Final = "waiting for "
_DIGEST = re.compile(r"@sha(?:256|512):[0-9a-f]+$")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A contract that was obtained (valid or not), or why it could not be (`unavailable`).

    `digest` is that of the manifest which the ref meant, empty for an inline contract.
    """

    validated: Validated
    unavailable: str = ""
    resolved_ref: str = ""
    digest: str = ""
    files: Mapping[str, bytes] | None = None


def load_inline(pacto: Pacto) -> Loaded | None:
    """The inline contract of a Pacto, which wins over any other; None if it has none."""
    if pacto.inline:
        return Loaded(validate(pacto.inline, overrides=pacto.overrides))
    if not pacto.oci:
        issue = Issue("", "spec.contractRef", "gives no contract: set oci or inline")
        return Loaded(Validated(None, (issue,)))
    return None


def load_offline(pacto: Pacto) -> Loaded:
    """The contract as far as it can be had without a registry."""
    loaded = load_inline(pacto)
    if loaded is not None:
        return loaded
    why = f"{pacto.oci} is not part of the input, and no registry is asked without --pull"
    return Loaded(Validated(None), unavailable=why)


def loaded_bundle(
    pacto: Pacto, text: str, resolved_ref: str, files: Mapping[str, bytes], digest: str = ""
) -> Loaded:
    """The contract of a bundle that was fetched."""
    validated = validate(text, overrides=pacto.overrides, files=files)
    return Loaded(validated, resolved_ref=resolved_ref, digest=digest, files=files)


def load_failed(why: str, *, is_unavailable: bool) -> Loaded:
    """What a fetch that failed leaves: an unknown contract if it may pass, else an invalid one."""
    if is_unavailable:
        return Loaded(Validated(None), unavailable=why)
    return Loaded(Validated(None, (Issue("", "spec.contractRef.oci", why),)))


def load_awaited(pacto: Pacto) -> Loaded:
    """The contract while a registry has not answered yet: unknown, and whom it is waited for."""
    ref = parse_oci_ref(pacto.oci)
    where = ref.registry if ref is not None else "a registry"
    return load_failed(f"{AWAITED}{where}: {pacto.oci} has not been fetched yet", is_unavailable=True)


def resolution_policy(pacto: Pacto) -> str:
    """How the OCI ref of a Pacto picks a version; empty for an inline contract."""
    if pacto.inline or not pacto.oci:
        return ""
    if _DIGEST.search(pacto.oci):
        return "PinnedDigest"
    return "PinnedTag" if ":" in pacto.oci.rpartition("/")[2] else "Latest"


def publish_new(cluster: Cluster) -> Cluster:
    """The cluster as it is once each Pacto without any status has had its first check.

    Dependencies resolve by what statuses publish; manifests that no operator has seen yet would
    otherwise resolve to nothing, which no later check would repeat.
    """
    pactos = tuple(_publish(pacto) for pacto in cluster.pactos)
    return cluster if pactos == cluster.pactos else replace(cluster, pactos=pactos)


def _publish(pacto: Pacto) -> Pacto:
    if pacto.status or not pacto.inline:
        return pacto
    contract = validate(pacto.inline, overrides=pacto.overrides).contract
    if contract is None:
        return pacto
    return replace(pacto, published=Published(contract.service, contract.version))
