# SPDX-License-Identifier: MIT
"""The report: its data, its page, and that no name of a cluster becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.cli.report import graph as graphs
from kubectl_pacto.cli.report.page import page, style
from kubectl_pacto.jsonschemas import validator, violations
from tests.support.fleet_api import FleetApi
from tests.support.service_graph import AT, LINUX, large, small
from tests.unit.cli.conftest import Plugin
from tests.unit.cli.test_listing import SCHEMAS

Golden = Callable[[str, str], None]
VOID = {"meta", "link", "br", "hr", "img"}
EVIL = "</title></style><script>alert(1)</script><img src=//evil.example/x>\"'&\x1b[2J\u202e"


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, headings in order, all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.tables: list[dict[str, list[str]]] = []
        self.text = ""
        self.style = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag == "table":
            self.tables.append({"caption": [], "th": [], "td": []})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            self.style += data
            return
        self.text += data
        if self.headings and any(re.fullmatch("h[1-6]", tag) for tag in self.open):
            level, before = self.headings[-1]
            self.headings[-1] = (level, before + data)
        for tag in ("caption", "th", "td"):
            if tag in self.open:
                self.tables[-1][tag].append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def write(tmp_path: Path, text: str) -> str:
    """A file with the objects."""
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    return str(path)


def made(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the report of these objects prints."""
    capsys.readouterr()
    assert main(["report", "-f", write(tmp_path, text), "--at", AT, *words]) == 0
    return capsys.readouterr().out


def data_of(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The same as data."""
    return json.loads(made(tmp_path, text, capsys, "-o", "json", *words))


@pytest.mark.parametrize("form", ["html", "json"])
def test_the_report_of_three_services_is_a_golden_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden, form: str
) -> None:
    said = made(tmp_path, small().text(), capsys, "-o", form)
    # elements on lines of their own, for whoever reads the difference
    said = said.replace(str(tmp_path), "FOLDER")
    golden(f"report.{form}", said.replace("><", ">\n<") if form == "html" else said)


@pytest.mark.parametrize("shop", [small(), large()], ids=["small", "large"])
def test_the_data_keeps_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str], shop: Any) -> None:
    data = data_of(tmp_path, shop.text(), capsys)
    schema = json.loads((SCHEMAS / "Report.json").read_text())
    assert violations(validator(schema), data) == []
    assert len(data["graph"]["boxes"]) == (60 if len(shop.declared) == 60 else 4)


def test_each_call_has_the_state_that_objects_prove(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_of(tmp_path, small().text(), capsys)
    states = {(call["caller"], call["callee"]): call["state"] for call in data["graph"]["calls"]}
    assert states == {
        ("shop/orders", "shop/stock"): "declared, fails",
        ("shop/orders", "shop/web"): "declared, not seen",
        ("shop/web", "shop/orders"): "declared, seen",
        ("shop/web", "billing"): "declared, to no Pacto here",
    }
    shop = small()
    shop.declared["web"] = ["orders"]
    shop.calls["web"] = ["orders", "stock"]
    data = data_of(tmp_path, shop.text(), capsys)
    states = {(call["caller"], call["callee"]): call["state"] for call in data["graph"]["calls"]}
    assert states["shop/web", "shop/stock"] == "not declared, seen"


def test_the_verdicts_are_those_of_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(tmp_path, large().text(), capsys)
    path = str(tmp_path / "objects.yaml")
    assert main(["evaluate", "-f", path, "--at", AT, "-o", "json", "--fail-on", "never"]) == 0
    wanted = {one["name"]: one["status"] for one in json.loads(capsys.readouterr().out)}
    assert {one["name"]: one["contractStatus"] for one in data["pactos"]} == {
        name: status["contractStatus"] for name, status in wanted.items()
    }
    for item in data["pactos"]:
        assert len(item["findings"]) == len(wanted[item["name"]]["findings"])


def test_without_kernel_evidence_nothing_counts_as_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raws = [raw for raw in small().objects() if raw["kind"] not in ("NodeRuntimeObservation", "Lease")]
    data = data_of(tmp_path, yaml.safe_dump_all(raws), capsys)
    assert {call["state"] for call in data["graph"]["calls"]} == {
        "declared, not seen",
        "declared, to no Pacto here",
    }
    said = Page(page(data)).text
    assert "No node agent reports: every verdict rests on the Kubernetes API alone." in said
    assert "No node reports, so none was seen." in said


def test_a_page_of_a_cluster_has_its_operators_verdicts(
    empty: tuple[FleetApi, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    api, url = empty
    raws = small().objects()
    for raw in raws:
        if raw["kind"] == "Pacto":
            raw["status"] |= {"contractStatus": "Warning", "summary": {"warningCount": 1}}
    api.add(*raws)
    plugin = Plugin(api, url, capsys)
    target = tmp_path / "report.html"
    done = plugin("report", "-n", "shop", "--to", str(target))
    assert (done.status, done.out, done.err) == (0, "", f"wrote {target}\n")
    seen = Page(target.read_text())
    assert f"Cluster {url}" in seen.text
    assert "Warning" in seen.tables[0]["td"]
    assert "NonCompliant" not in seen.tables[0]["td"]
    assert "node-c" in seen.text
    assert plugin("report", "-n", "shop", "--fail-on", "warning", "-o", "json").status == 3
    assert "no Pacto is in scope (-A" in plugin("report", "-n", "none", "-o", "json").err


def test_what_a_cluster_did_not_show_is_on_the_page(
    empty: tuple[FleetApi, str], capsys: pytest.CaptureFixture[str]
) -> None:
    api, url = empty
    api.add(*small().objects())
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "namespace": "shop"}}
    api.add({**broken, "spec": {"ports": 7}})
    api.forbidden = {"ingresses", "nodes"}
    data = json.loads(Plugin(api, url, capsys)("report", "-A", "-o", "json").out)
    said = "\n".join(data["warnings"])
    assert "cannot be read: ingresses" in said
    assert "cannot be read: nodes" in said
    assert "left out, malformed: Service shop/x: spec.ports: must be a list" in said
    assert [one["node"] for one in data["nodes"]] == ["node-a", "node-b"]


def test_contracts_of_registries_are_named_as_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raws = small().objects()
    raws[0]["spec"]["contractRef"] = {"oci": "oci://example.com/web:1.0.0"}
    data = data_of(tmp_path, yaml.safe_dump_all(raws), capsys)
    assert data["warnings"] == [
        "contracts not read, so that the calls they declare are not shown: shop/web (--pull fetches them)"
    ]


def test_scope_is_by_namespace_and_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raws = small().objects()
    raws[0]["metadata"]["labels"] = {"team": "web"}
    text = yaml.safe_dump_all(raws)
    data = data_of(tmp_path, text, capsys, "-l", "team=web")
    assert [one["name"] for one in data["pactos"]] == ["web"]
    assert {box["id"] for box in data["graph"]["boxes"]} == {"shop/web", "shop/orders", "billing"}
    assert data_of(tmp_path, text, capsys, "-n", "other")["pactos"] == []


def test_more_boxes_than_a_picture_holds_are_counted_and_the_worst_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "MOST_BOXES", 12)
    graph = data_of(tmp_path, large().text(), capsys)["graph"]
    assert len(graph["boxes"]) == 12
    assert graph["boxesLeftOut"] == 48
    assert graph["calls"][0]["state"] == "declared, fails"
    assert "declared, seen" not in {call["state"] for call in graph["calls"][:3]}


def test_a_page_needs_nothing_and_allows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = made(tmp_path, large().text(), capsys)
    seen = Page(text)
    assert {tag for tag, _ in seen.elements} & {"script", "img", "iframe", "object", "embed", "form"} == set()
    links = [value for _, attributes in seen.elements for name, value in attributes.items()
             if name in ("href", "src", "action", "data", "xlink:href")]  # fmt: skip
    assert all((value or "").startswith("#") or value == "data:," for value in links)
    assert "@import" not in seen.style
    assert "url(" not in seen.style
    assert not any(name.startswith("on") or name == "style" for _, some in seen.elements for name in some)
    (policy,) = [one["content"] for one in seen.all("meta") if one.get("http-equiv")]
    digest = base64.b64encode(hashlib.sha256(seen.style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_links_of_the_page_lead_somewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = Page(made(tmp_path, small().text(), capsys))
    ids = [str(attributes["id"]) for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in seen.all("a"):
        assert str(link["href"]).removeprefix("#") in ids
    for _, attributes in seen.elements:
        for name in ("aria-labelledby",):
            assert set((attributes.get(name) or "").split()) <= set(ids)


def test_a_page_is_read_by_ear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = Page(made(tmp_path, small().text(), capsys))
    assert seen.all("html") == [{"lang": "en"}]
    levels = [level for level, _ in seen.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("".join(table["caption"]).strip() for table in seen.tables)
    assert all(one.get("scope") in ("col", "row") for one in seen.all("th"))
    assert len(seen.all("main")) == len(seen.all("header")) == len(seen.all("footer")) == 1
    pictures = [one for one in seen.all("svg") if one.get("role") == "img"]
    assert pictures
    assert all(one.get("aria-labelledby") for one in pictures)
    # each state of the picture is a word in the table below it
    assert "declared, fails" in "".join(seen.tables[1]["td"])


def luminance(colour: str) -> float:
    """Relative luminance by WCAG."""
    whole = colour.lstrip("#")
    whole = "".join(one * 2 for one in whole) if len(whole) == 3 else whole
    parts = [int(whole[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(scheme: str) -> None:
    roots = re.findall(r":root\{([^}]*)\}", style())
    assert len(roots) == 2
    colours = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", roots[0 if scheme == "light" else 1]))
    pairs = [("ink", "ground"), ("ink", "raised"), ("dim", "ground"), ("dim", "raised"), ("link", "ground")]
    for name in ("bad", "doubt", "good", "plain"):
        pairs += [(name, f"{name}-soft"), (name, "ground"), ("ink", f"{name}-soft"), ("dim", f"{name}-soft")]
    for text, ground in pairs:
        light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (scheme, text, ground)


def poison(value: Any) -> Any:
    """A report whose texts all end in markup, those apart that are words of ours."""
    if isinstance(value, dict):
        kept = (
            "kind",
            "state",
            "severity",
            "contractStatus",
            "level",
            "generatedAt",
            "firstObservedNegativeAt",
        )
        return {
            name: item if name in kept else poison(item) for name, item in value.items()
        }  # fmt: skip
    if isinstance(value, list):
        return [poison(item) for item in value]
    return value + EVIL if isinstance(value, str) else value


def test_no_name_becomes_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(tmp_path, small().text(), capsys)
    plain, hostile = Page(page(data)), Page(page(poison(data)))
    assert not {"script", "img"} & {tag for tag, _ in hostile.elements}
    assert "<script>alert(1)</script>" in hostile.text
    assert "<script>" in "".join(text for _, text in hostile.headings)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page(poison(data)))
    # nothing of the structure changed but links to pages of codes that nobody knows
    counted = {tag for tag, _ in plain.elements} - {"a", "span", "dl", "dt", "dd", "h3", "code"}
    for tag in counted:
        assert len(plain.all(tag)) == len(hostile.all(tag)), tag


def test_the_same_objects_in_another_order_give_the_same_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raws = large(30).objects()
    first = made(tmp_path, yaml.safe_dump_all(raws), capsys)
    assert made(tmp_path, yaml.safe_dump_all(raws[::-1]), capsys) == first


def test_an_empty_input_has_a_page_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": LINUX}})
    seen = Page(made(tmp_path, text, capsys))
    assert "No Pacto is in scope." in seen.text
    assert "No findings." in seen.text


def test_only_a_negative_that_waits_is_said_to_be_no_finding_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    standing = made(tmp_path, small().text(), capsys)
    assert '<p class="dim">Negative since 2026-10-18T09:10:00Z: interface/api</p>' in standing
    assert "Not a finding yet" not in standing
    waiting = made(tmp_path, small().text(), capsys, "--at", "2026-10-18T09:11:00Z")
    assert "Not a finding yet: negative since 2026-10-18T09:10:00Z: interface/api" in waiting


def test_a_page_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, small().text())
    assert main(["report", "-f", path, "--at", AT, "--to", "/nonexistent/x"]) == 1
    assert capsys.readouterr().err == "error: /nonexistent/x: cannot be written: No such file or directory\n"
