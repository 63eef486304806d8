# SPDX-License-Identifier: MIT
"""Events of a Pacto, on transitions alone: what happened is decided purely, then posted."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.conformance.source import AWAITED
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiError
from kubectl_pacto.kube.paths import PACTO_API, namespaced
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.instant import format_instant

COMPONENT: Final = "pacto-controller"
LOG: Final = logging.getLogger(__name__)
WELL: Final = frozenset({"", "Compliant", "Reference"})
LONGEST_MESSAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class News:
    """One event to be told."""

    reason: str
    message: str
    is_warning: bool = True


def news_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[News]:
    """What became different in a status that people should hear of."""
    found = []
    old, new = _status(before), _status(after)
    if new != old:
        if new not in WELL:
            found.append(_degraded(new, after))
        elif old not in WELL:
            found.append(News("ContractRecovered", f"the contract is {new} again", is_warning=False))
    gate = [_condition(status, "ReadinessSatisfied") for status in (before, after)]
    if gate[1].get("status") == "False" and gate[0].get("status") != "False":
        found.append(News("ReadinessGateUnmet", str(gate[1].get("message") or gate[1].get("reason"))))
    if gate[1].get("status") == "True" and gate[0].get("status") == "False":
        found.append(News("ReadinessRecovered", "the readiness gate is met again", is_warning=False))
    return found


def _status(status: Mapping[str, Any]) -> str:
    """The contract status; none yet while a contract is on its way for the first time."""
    message = str(_condition(status, "ContractValid").get("message") or "")
    return "" if message.startswith(AWAITED) else str(status.get("contractStatus") or "")


def _degraded(status: str, after: Mapping[str, Any]) -> News:
    valid = _condition(after, "ContractValid")
    message = str(valid.get("message") or "")
    if status == "Invalid":
        return News("ContractInvalid", message or "the contract is invalid")
    if valid.get("status") == "Unknown":
        return News("ContractUnavailable", message or "the contract cannot be had")
    summary = after.get("summary") or {}
    errors, warnings = summary.get("errorCount", 0), summary.get("warningCount", 0)
    first = next((item.get("message", "") for item in after.get("findings") or ()), "")
    text = f"{status}: {errors} errors, {warnings} warnings" + (f"; {first}" if first else "")
    return News("ValidationFailed", text)


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    for item in status.get("conditions") or ():
        if item.get("type") == kind:
            return dict(item)
    return {}


def post(client: Client, known: Known, news: News, at: float) -> None:
    """Tell it; an event that cannot be posted is logged, and is no reason to check again."""
    pacto, when = known.pacto, format_instant(at)
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{pacto.name[:230]}.{secrets.token_hex(8)}",
            "namespace": pacto.namespace,
        },
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": "Pacto",
            "namespace": pacto.namespace,
            "name": pacto.name,
            "uid": known.uid,
        },
        "reason": news.reason,
        "message": news.message[:LONGEST_MESSAGE],
        "type": "Warning" if news.is_warning else "Normal",
        "source": {"component": COMPONENT},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
    try:
        client.post(namespaced("/api/v1", pacto.namespace, "events"), body)
    except ApiError as error:
        LOG.warning("event %s: %s", news.reason, error)


def pacto_path(namespace: str, name: str) -> str:
    """Where one Pacto is served."""
    return namespaced(PACTO_API, namespace, "pactos", name)
