# SPDX-License-Identifier: MIT
"""Pages say what the code does: links lead somewhere, every page is in the index, privileges are complete."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.controller.manifests import agent_objects
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.controller.manifests.operator_rights import EVERYWHERE, EVIDENCE, MANAGED, WATCHED
from kubectl_pacto.model.evidence import SHAPES, Collector, Outcome
from kubectl_pacto.model.finding import REGISTRY
from kubectl_pacto.model.node import CollectionReason, PodReason
from tests.support.sources import ROOT, files

PAGES = files(".md")
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
CODE = re.compile(r"```.*?```", re.DOTALL)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    words = (re.sub(r"[^\w\- ]", "", one.lower()).strip() for one in HEADING.findall(path.read_text()))
    return {one.replace(" ", "-") for one in words}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    # fragments of the changelog are gathered at the top
    source = ROOT / ("CHANGELOG.md" if name.startswith("changes/") else name)
    text = (ROOT / name).read_text(encoding="utf-8")
    for found in LINK.finditer(CODE.sub("", text)):
        target = found[1] or found[2]
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        leads_to = (source.parent / path).resolve() if path else source
        assert leads_to.exists(), f"{name}: {target}"
        if anchor and leads_to.suffix == ".md":
            assert anchor in anchors(leads_to), f"{name}: {target}"


def test_every_page_is_in_the_index() -> None:
    index = page("README.md")
    pages = {path.name for path in DOCS.glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()


def test_the_security_page_names_every_privilege_of_the_daemonset() -> None:
    text = page("security.md")
    values = replace(NodeAgentValues(), sys_resource=True)
    for capability in values.capabilities:
        assert f"capability `{capability}`" in text
    spec: dict[str, Any] = agent_objects.daemon_set(values)["spec"]["template"]["spec"]
    assert {name for name in ("hostPID", "hostNetwork", "hostIPC") if spec.get(name)} == {"hostPID"}
    assert "| `hostPID` |" in text
    for volume in spec["volumes"]:
        assert f"`{volume['hostPath']['path']}` of the node" in text
    security = spec["containers"][0]["securityContext"]
    told = {"runAsUser", "runAsNonRoot", "privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem"}
    assert security.keys() == told | {"capabilities", "seccompProfile", "appArmorProfile"}
    assert f"AppArmor `{security['appArmorProfile']['type']}`" in text
    assert f"`{security['seccompProfile']['type']}`" in text
    verbs = {verb for rule in agent_objects.role(values)["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "create", "update"}
    assert "`get`, `create` and `update`" in text


def test_what_the_security_page_says_of_the_operators_rights_holds() -> None:
    rights = [*WATCHED, *EVERYWHERE, *EVIDENCE, *MANAGED]
    groups = {right.group for right in rights}
    assert "rbac.authorization.k8s.io" not in groups
    assert "admissionregistration.k8s.io" not in groups
    (secrets,) = (right for right in rights if "secrets" in right.resources)
    assert secrets.verbs == ("get",)


def test_the_page_of_observations_names_every_kind_outcome_collector_and_reason() -> None:
    text = page("observations.md")
    words = [*SHAPES, *Outcome, *Collector, *PodReason, *(reason for reason in CollectionReason if reason)]
    assert [word for word in words if f"`{word}`" not in text] == []
    for kind, (subject, fields) in SHAPES.items():
        (line,) = (one for one in text.splitlines() if one.startswith(f"| `{kind}` |"))
        assert line.split("|")[2].strip() == subject
        assert [name for name in fields if f"`{name}`" not in line] == []


def test_troubleshooting_knows_every_way_of_not_knowing() -> None:
    text = page("troubleshooting.md")
    codes = [code for code in REGISTRY if code.startswith(("EVIDENCE_", "COLLECTION_", "OBSERVATION_"))]
    assert codes
    assert [code for code in codes if code not in text] == []


def test_messages_that_troubleshooting_explains_are_said_by_the_agent() -> None:
    sources = "".join((ROOT / name).read_text() for name in files(".py") if name.startswith("agent/"))
    section = page("troubleshooting.md").partition("## A node\n")[2].partition("\n## ")[0]
    told = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][1:]
    phrases = [part.strip() for one in told for part in re.split(r"\.\.\.| N ", one) if part.strip()]
    known = [one for one in phrases if "clock" not in one and set(one) != {"-"}]
    assert len(known) >= 9
    assert [one for one in known if one not in sources] == []
