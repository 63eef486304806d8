# SPDX-License-Identifier: MIT
"""A report as one HTML page: no script, nothing from anywhere else, and its own policy that says so.

Built as a tree, so that no text of a cluster can become markup.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from kubectl_pacto import __version__
from kubectl_pacto.cli.render.columns import age
from kubectl_pacto.cli.render.windows import read_windows
from kubectl_pacto.cli.report.drawing import STATES, class_of, draw, legend
from kubectl_pacto.cli.terminal import printable
from kubectl_pacto.explain import pages

Raw = Mapping[str, Any]
NUMBERS: Final = frozenset(
    {"Errors", "Warnings", "Unknown", "Dropped", "Complete", "Partial", "Failed", "Stale"}
)


def style() -> str:
    """The page's style."""
    return (files("kubectl_pacto.cli.report") / "report.css").read_text(encoding="utf-8")


def page(data: Raw) -> str:
    """The whole page of a report document."""
    html = Element("html", {"lang": "en"})
    _head(html, _title(data))
    body = SubElement(html, "body")
    _text(body, "a", "Skip to the verdicts", {"class": "skip", "href": "#verdicts"})
    _top(body, data)
    main = SubElement(body, "main")
    _verdicts(main, data)
    _graph(main, data)
    _findings(main, data["pactos"])
    _coverage(main, data)
    foot = f"kubectl pacto {__version__}. Silence is no violation: what nobody saw is not reported as wrong."
    _text(SubElement(body, "footer"), "p", foot)
    return f"<!DOCTYPE html>\n{tostring(html, encoding='unicode', method='html')}\n"


def _text(parent: Element, tag: str, text: object, attributes: Mapping[str, str] | None = None) -> Element:
    """An element with a text of which no character steers anything."""
    made = SubElement(parent, tag, dict(attributes or {}))
    made.text = printable(str(text))
    return made


def _title(data: Raw) -> str:
    where = data["namespace"] or "all namespaces"
    return f"Pacto report: {where}" + (f", {data['selector']}" if data["selector"] else "")


def _head(html: Element, title: str) -> None:
    head = SubElement(html, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    look = style()
    digest = b64encode(hashlib.sha256(look.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "meta", {"name": "referrer", "content": "no-referrer"})
    _text(head, "title", title)
    SubElement(head, "link", {"rel": "icon", "href": "data:,"})
    SubElement(head, "style").text = look


def _top(body: Element, data: Raw) -> None:
    head = SubElement(body, "header")
    _text(head, "h1", _title(data))
    source = data["source"]
    came = (
        f"Cluster {source['server']}" + (f" (context {source['context']})" if source["context"] else "")
        if source["kind"] == "Cluster"
        else f"Files: {', '.join(source['files'])}"
    )
    _text(head, "p", f"{came}. As of {data['generatedAt']}.", {"class": "dim"})
    if data["verdicts"]:
        counts = SubElement(head, "ul", {"class": "counts", "aria-label": "Pactos by verdict"})
        for name, count in data["verdicts"].items():
            item = SubElement(counts, "li")
            _text(item, "strong", count)
            _badge(item, name)
    links = SubElement(SubElement(head, "nav", {"aria-label": "On this page"}), "ul", {"class": "contents"})
    for name, text in SECTIONS.items():
        _text(SubElement(links, "li"), "a", text, {"href": f"#{name}"})
    if data["warnings"]:
        listed = SubElement(head, "ul", {"class": "warnings", "aria-label": "What this page does not know"})
        for text in data["warnings"]:
            _text(listed, "li", f"warning: {text}")


SECTIONS: Final = {
    "verdicts": "Verdicts",
    "graph": "Who calls whom",
    "findings": "Findings",
    "coverage": "Kernel coverage",
}


def _section(main: Element, name: str) -> Element:
    made = SubElement(main, "section", {"aria-labelledby": name})
    _text(made, "h2", SECTIONS[name], {"id": name})
    return made


def _badge(parent: Element, word: str, name: str = "") -> Element:
    return _text(parent, "span", word, {"class": f"badge {name or class_of(word)}"})


def _table(parent: Element, caption: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table whose first column heads its rows; a cell that is an Element is put in as it is."""
    frame = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": printable(caption)}
    table = SubElement(SubElement(parent, "div", frame), "table")
    _text(table, "caption", caption)
    line = SubElement(SubElement(table, "thead"), "tr")
    for text in headers:
        _text(line, "th", text, {"scope": "col", "class": "number" if text in NUMBERS else "text"})
    body = SubElement(table, "tbody")
    for row in rows:
        line = SubElement(body, "tr")
        for index, (text, value) in enumerate(zip(headers, row, strict=True)):
            attributes = (
                {"scope": "row"} if index == 0 else {"class": "number" if text in NUMBERS else "wide"}
            )
            cell = SubElement(line, "td" if index else "th", attributes)
            if isinstance(value, Element):
                cell.append(value)
            else:
                cell.text = printable(str(value))


def _ago(seconds: float | None) -> str:
    """How long ago it was; empty if it never was."""
    return "" if seconds is None else f"{age(seconds)} ago"


def _word(word: str, name: str = "") -> Element:
    made = Element("span", {"class": f"badge {name or class_of(word)}"})
    made.text = printable(word)
    return made


def _verdicts(main: Element, data: Raw) -> None:
    section = _section(main, "verdicts")
    if not data["pactos"]:
        _text(section, "p", "No Pacto is in scope.")
        return
    headers = (
        "Pacto",
        "Verdict",
        "Errors",
        "Warnings",
        "Unknown",
        "Verified",
        "Kernel",
        "Version",
        "Target",
        "Checked",
    )
    rows = [
        (
            f"{item['namespace']}/{item['name']}",
            _word(item["contractStatus"]),
            item["errors"],
            item["warnings"],
            item["unknowns"],
            "{evaluated} of {required}".format(**item["verified"]),
            _kernel(item["kernelEvidence"]),
            item["contractVersion"] or "-",
            item["target"] or "-",
            _ago(item["checkedSecondsAgo"]) or "never",
        )
        for item in data["pactos"]
    ]
    _table(section, "Every Pacto, the worst verdict first", headers, rows)


def _kernel(summary: Raw | None) -> str:
    if not summary:
        return "-"
    total = sum(int(summary.get(level) or 0) for level in ("complete", "partial", "failed", "stale"))
    reasons = ", ".join(sorted(summary.get("reasons") or {}))
    return f"{int(summary.get('complete') or 0)} of {total} pods" + (f" ({reasons})" if reasons else "")


def _graph(main: Element, data: Raw) -> None:
    section, graph = _section(main, "graph"), data["graph"]
    text = (
        "An arrow goes to whom a service calls. Contracts declare calls; the kernel's view shows those made."
    )
    _text(section, "p", text if data["kernelEvidence"] else f"{text} No node reports, so none was seen.")
    if not graph["boxes"]:
        _text(section, "p", "Nothing to draw.")
        return
    section.append(legend())
    frame = {"class": "scroll graph", "tabindex": "0", "role": "region", "aria-label": "Picture of all calls"}
    SubElement(section, "div", frame).append(draw(graph))
    if graph["boxesLeftOut"]:
        _text(
            section,
            "p",
            f"{graph['boxesLeftOut']} more services are not drawn; what is wrong is drawn first.",
        )
    if graph["calls"]:
        rows = [
            (
                call["caller"],
                call["callee"],
                call["dependency"],
                _word(call["state"], STATES[call["state"]][0]),
                call["why"] or "-",
            )
            for call in graph["calls"]
        ]
        _table(section, "Every call that is drawn", ("Caller", "Called", "Dependency", "State", "Why"), rows)


def _findings(main: Element, items: Sequence[Raw]) -> None:
    section = _section(main, "findings")
    shown = [item for item in items if item["findings"] or item["problems"] or item["observationWindows"]]
    if not shown:
        _text(section, "p", "No findings.")
    for item in shown:
        name = f"{item['namespace']}/{item['name']}"
        box = SubElement(section, "article", {"class": "pacto", "aria-label": printable(name)})
        title = SubElement(box, "div", {"class": "title"})
        _text(title, "h3", name)
        _badge(title, item["contractStatus"])
        for problem in item["problems"]:
            _heading(box, problem["severity"], problem["reason"], "", problem["message"])
        for finding in item["findings"]:
            _finding(box, finding)
        for subject, since, stands in read_windows(item["observationWindows"], item["findings"]):
            words = "Negative since" if stands else "Not a finding yet: negative since"
            _text(box, "p", f"{words} {since}: {subject}", {"class": "dim"})
    _meanings(section, shown)


def _meanings(section: Element, items: Sequence[Raw]) -> None:
    """What each code on the page means, once."""
    found = {str(one.get("code")) for item in items for one in item["findings"]}
    known = [pages()[code] for code in sorted(found & pages().keys())]
    if not known:
        return
    _text(section, "h3", "What these codes mean")
    listed = SubElement(section, "dl", {"class": "meaning"})
    for one in known:
        _text(listed, "dt", one.code, {"class": "code", "id": f"meaning-{one.code}"})
        _prose(SubElement(listed, "dd"), f"{one.means} {one.do}")


def _prose(parent: Element, text: str) -> None:
    """A text of our own, in which backquotes mark code."""
    first, *rest = text.split("`")
    parent.text = first
    for code, after in zip(rest[::2], rest[1::2], strict=True):
        _text(parent, "code", code).tail = after


def _heading(box: Element, severity: str, code: str, subject: str, message: str) -> Element:
    part = SubElement(box, "div", {"class": "finding"})
    head = SubElement(part, "h4")
    _badge(head, severity)
    link = {"class": "code", "href": f"#meaning-{code}"} if code in pages() else {"class": "code"}
    _text(head, "a" if code in pages() else "span", code, link)
    if subject:
        _text(head, "span", subject)
    _text(part, "p", message, {"class": "message"})
    return part


def _finding(box: Element, finding: Raw) -> None:
    code = str(finding.get("code", ""))
    severity, subject = str(finding.get("severity", "unknown")), str(finding.get("subject", ""))
    part = _heading(box, severity, code, subject, str(finding.get("message", "")))
    if finding.get("contractPath"):
        _text(part, "p", f"In the contract: {finding['contractPath']}", {"class": "dim"})
    refs = finding.get("evidenceRefs") or []
    if refs:
        names = ("source", "collector", "observedAt", "detectedAt")
        rows = [[ref.get(name) or "-" for name in names] for ref in refs]
        _table(
            part,
            f"Evidence of {code} {subject}".rstrip(),
            ("Source", "Collector", "Observed", "Detected"),
            rows,
        )


LEVELS: Final = ("Complete", "Partial", "Failed", "Stale")
NODE_HEADERS: Final = ("Node", "State", "Reason", "Heartbeat", "Dropped", *LEVELS, "Kernel version")


def _coverage(main: Element, data: Raw) -> None:
    section = _section(main, "coverage")
    if not data["kernelEvidence"]:
        _text(section, "p", "No node agent reports: every verdict rests on the Kubernetes API alone.")
        return
    caption = "Every node, the worst first; its pods by how much the kernel's view covers"
    _table(section, caption, NODE_HEADERS, [_node(item) for item in data["nodes"]])
    if data["pods"]:
        _text(section, "h3", "Pods that are not covered completely")
        caption = "Verdicts about these pods are Insufficient, Stale or Failed where the kernel is asked"
        rows = [
            (
                f"{pod['namespace']}/{pod['pod']}",
                pod["node"] or "-",
                _word(pod["level"]),
                ", ".join(pod["reasons"]) or "-",
            )
            for pod in data["pods"]
        ]
        _table(section, caption, ("Pod", "Node", "Coverage", "Reason"), rows)
    if data["podsLeftOut"]:
        _text(section, "p", f"{data['podsLeftOut']} more such pods are not listed.")


def _node(item: Raw) -> Sequence[object]:
    levels = item["podLevels"] or {}
    return (
        item["node"],
        _word(item["state"]),
        item["reason"] or item["message"] or "-",
        _ago(item["heartbeatAgeSeconds"]) or "-",
        item["droppedEvents"],
        *(levels.get(level.lower(), "-") for level in LEVELS),
        item["kernelRelease"] or "-",
    )
