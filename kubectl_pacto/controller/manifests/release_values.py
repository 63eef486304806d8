# SPDX-License-Identifier: MIT
"""A user's values over the defaults, as Helm lays them, and what of them is no value.

Maps are merged, also those that Kubernetes defines; anything else replaces; null takes a key out of a
map of Kubernetes' own (`resources.limits.cpu: null`) and brings the default back elsewhere.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kubectl_pacto import __version__
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.controller.manifests.chart_values import VALUES
from kubectl_pacto.controller.manifests.values_schema import WORDS, Section, Value
from kubectl_pacto.errors import UsageError

if TYPE_CHECKING:
    from jsonschema import ValidationError

AGENT: Final = NodeAgentValues()
DEFAULTS: Final[dict[str, Any]] = VALUES.defaults()
# the plugin's objects are those of a Helm release of this name
RELEASE: Final = "pacto-operator"
# leaves room for the longest suffix of a Service
LONGEST_NAME: Final = 50
TYPES: Final = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
}


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """A user's values over the defaults. Raises UsageError naming a key that is none, or a wrong value."""
    found = _over(VALUES, values)
    for error in _errors(found):
        raise UsageError(_text(error))
    return found


def _over(section: Section, given: Mapping[str, Any]) -> dict[str, Any]:
    found = section.defaults()
    for key, value in given.items():
        one = section.entries.get(key)
        if value is None and one is not None:
            continue
        if isinstance(one, Section) and isinstance(value, dict):
            found[key] = _over(one, value)
        elif isinstance(one, Value) and isinstance(one.default, dict) and isinstance(value, dict):
            found[key] = _merged(one.default, value)
        else:
            found[key] = copy.deepcopy(value)
    return found


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(dict(below))
    for key, value in above.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = _merged(made[key], value)
        else:
            made[key] = copy.deepcopy(value)
    return made


def _errors(values: Mapping[str, Any]) -> Iterator[ValidationError]:
    from jsonschema import Draft7Validator

    yield from Draft7Validator(VALUES.schema()).iter_errors(values)


def _text(error: ValidationError) -> str:
    """One sentence that names the value, and what it may be."""
    path = ".".join(str(part) for part in error.absolute_path)
    rule: Any = error.validator_value
    given: Any = error.instance
    if error.validator == "additionalProperties":
        schema: Any = error.schema
        known = sorted(schema["properties"])
        unknown = next(key for key in given if key not in known)
        return f"{path}.{unknown}".lstrip(".") + f" is no value; there are: {', '.join(known)}"
    if error.validator == "type":
        kinds = [rule] if isinstance(rule, str) else list(rule)
        # a tag of digits is what people meet this with, and --set reads it as a number, as Helm's does
        remedy = (
            f": --set-string {path}={given} gives it as text"
            if kinds == ["string"] and _is_number(given)
            else ""
        )
        return f"{path} must be {' or '.join(TYPES[kind] for kind in kinds)}, not {given!r}{remedy}"
    if error.validator == "enum":
        return f"{path} must be one of {', '.join(map(str, rule))}, not {given!r}"
    if error.validator == "pattern":
        return f"{path} must be {WORDS[str(rule)]}, not {given!r}"
    bounds = {"minimum": "at least", "maximum": "at most", "minLength": "at least", "maxLength": "at most"}
    if error.validator in bounds:
        unit = " characters long" if "Length" in str(error.validator) else ""
        return f"{path} must be {bounds[str(error.validator)]} {rule}{unit}, not {given!r}"
    return f"{path}: {error.message}"


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def agent_values(values: Mapping[str, Any]) -> NodeAgentValues:
    """`nodeAgent` as the agent's objects take it."""
    given = values["nodeAgent"]
    return NodeAgentValues(
        namespace=given["namespace"],
        image=given["image"] or AGENT.image,
        image_pull_policy=given["imagePullPolicy"],
        image_pull_secrets=given["imagePullSecrets"],
        publish_interval=given["publishInterval"],
        resync_interval=given["resyncInterval"],
        mapper=given["mapper"],
        sys_resource=given["sysResource"],
        seccomp_profile=given["seccompProfile"],
        max_unavailable=str(given["maxUnavailable"]),
        priority_class_name=given["priorityClassName"],
        resources=given["resources"],
        node_selector=given["nodeSelector"],
        tolerations=given["tolerations"],
    )


def image(values: Mapping[str, Any]) -> str:
    """The operator's image."""
    given = values["image"]
    return f"{given['repository']}:{given['tag'] or __version__}"


def full_name(values: Mapping[str, Any]) -> str:
    """What the objects are called, by the rule that charts share."""
    if given := str(values["fullnameOverride"]):
        return given
    name = str(values["nameOverride"] or RELEASE)
    return RELEASE if name in RELEASE else f"{RELEASE}-{name}"[:LONGEST_NAME].strip("-")


def require_consistent(values: Mapping[str, Any], namespace: str) -> None:
    """Raises UsageError for values that contradict each other; the chart says the same sentences."""
    agent, evidence = values["nodeAgent"], values["controller"]["kernelEvidence"]
    if values["replicaCount"] > 1 and not values["leaderElection"]["enabled"]:
        raise UsageError("replicaCount above 1 needs leaderElection.enabled: all pods would check at once")
    metrics = values["metrics"]
    if metrics["secure"] and not (metrics["enabled"] and metrics["certificate"]["secretName"]):
        raise UsageError(
            "metrics.secure needs metrics.enabled and metrics.certificate.secretName: a Secret with"
            " a certificate and its key"
        )
    if not agent["enabled"]:
        return
    if agent["namespace"] == namespace:
        raise UsageError(
            "nodeAgent.namespace must not be the operator's namespace: the agent needs one of its own,"
            " whose Pod Security level is privileged"
        )
    if evidence["namespace"] not in ("", agent["namespace"]):
        raise UsageError(
            "controller.kernelEvidence.namespace is for node agents that you run yourself: leave it empty"
            " with nodeAgent.enabled"
        )
