# SPDX-License-Identifier: MIT
"""The CRD is what the codec writes, field by field, and what an API server accepts as structural."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from kubectl_pacto.controller.generate import generated
from kubectl_pacto.controller.node_schema import DESCRIPTIONS, node_crd
from kubectl_pacto.model import bounds, node
from kubectl_pacto.model.node_codec import encode_node

FULL = node.NodeRuntimeObservation(
    name="node-a",
    node_name="node-a",
    last_published=1.5,
    collection=node.Collection(
        reason=node.CollectionReason.EVENTS_DROPPED,
        message="words",
        started_at=1.0,
        last_resync=2.0,
        connections_since=3.0,
        dropped_events=1,
        unattributed_events=2,
        foreign_events=3,
        api_requests_per_minute=4,
        state=node.CollectionState.DEGRADED,
    ),
    node=node.NodeInfo("6.18.0", "v2", "boot", "0.1.0", "iter"),
    pods=(
        node.PodView(
            uid="pod",
            baseline_at=4.0,
            complete=False,
            reasons=(node.PodReason.EVENTS_DROPPED,),
            listeners=(node.Listener("::", 8080, v6only=True),),
            peers=(
                node.Peer(
                    "10.0.0.1", 1, 1, 2, 3, 5.0, 6.0, node.FailureReason.TIMEOUT, open=1, open_since=7.0
                ),
            ),
        ),
    ),
)


def schema() -> dict[str, Any]:
    (version,) = node_crd()["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def keys(value: object, path: str = "") -> Iterator[str]:
    """The path of every field in an object, lists by their items."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from keys(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, path)


def properties(part: dict[str, Any], path: str = "") -> Iterator[str]:
    """The path of every property in a schema."""
    for key, inner in part.get("properties", {}).items():
        yield f"{path}.{key}"
        yield from properties(inner.get("items", inner), f"{path}.{key}")


def test_the_codec_writes_every_field_of_the_schema_and_no_other() -> None:
    written = {key for key in keys(encode_node(FULL)) if not key.startswith(".metadata.")}
    assert written == set(properties(schema()))


def test_a_full_object_is_valid() -> None:
    jsonschema.validate(encode_node(FULL), schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("collection", "state"), "Sleeping"),
        (("pods", 0, "listeners", 0, "port"), 0),
        (("pods", 0, "listeners", 0, "port"), 65536),
        (("pods", 0, "peers", 0, "succeeded"), -1),
        (("pods", 0, "complete"), "yes"),
        (("nodeName",), None),
    ],
)
def test_a_wrong_value_is_not(path: tuple[str | int, ...], value: object) -> None:
    raw: Any = encode_node(FULL)
    part = raw
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, schema())


def test_lists_are_atomic_and_bounded() -> None:
    pods = schema()["properties"]["pods"]
    inner = pods["items"]["properties"]
    assert pods["maxItems"] == bounds.PODS_PER_NODE
    assert inner["listeners"]["maxItems"] == bounds.LISTENERS_PER_POD
    assert inner["peers"]["maxItems"] == bounds.PEERS_PER_POD
    for one in (pods, inner["listeners"], inner["peers"], inner["reasons"]):
        assert one["x-kubernetes-list-type"] == "atomic"


def test_every_description_belongs_to_a_field() -> None:
    names = {f"{part}" for part in DESCRIPTIONS}
    used = {
        f"{model.__name__}.{name}"
        for model in (
            node.NodeRuntimeObservation,
            node.Collection,
            node.NodeInfo,
            node.PodView,
            node.Listener,
            node.Peer,
        )
        for name in model.__dataclass_fields__
    }
    assert names <= used


def test_the_files_in_the_package_are_the_generated_ones() -> None:
    for path, text in generated().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run make gen"
        assert yaml.safe_load(text)["kind"] == "CustomResourceDefinition"
