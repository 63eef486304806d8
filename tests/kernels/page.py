# SPDX-License-Identifier: MIT
"""docs/kernels.md: what the last complete run of the kernel tier said, and which tests it leaves out."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.cluster.layout import REPOSITORY, ClusterError
from tests.kernels.debian import SUITES
from tests.kernels.tier import FOLDER, Outcome

PAGE: Final = REPOSITORY / "docs" / "kernels.md"
MARK: Final = "own_kernel"


def own_kernel() -> Iterator[tuple[str, str, str]]:
    """(file, test, reason) of each test of the tier that only the machine's own kernel or host can run.

    Of a file whose pytestmark says it, "all" is the test.
    """
    for path in sorted((REPOSITORY / FOLDER).glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found = [(node.name, _reason(one)) for one in node.decorator_list]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                found = [("all", _reason(node.value))]
            else:
                continue
            yield from ((path.name, name, reason) for name, reason in found if reason)


def _reason(node: ast.expr) -> str:
    """The mark's reason; empty for any other expression."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != f"pytest.mark.{MARK}":
        return ""
    return str(ast.literal_eval(node.args[0]))


def left_out_table() -> str:
    """One row for each of them."""
    rows = [f"| `{file}` | `{name}` | {reason} |" for file, name, reason in own_kernel()]
    return "\n".join(["| file | test | why |", "| --- | --- | --- |", *rows])


def result_table(outcomes: Sequence[Outcome]) -> str:
    """One row for each kernel; its parts are summed up."""
    rows = []
    for suite, version in SUITES.items():
        parts = [one for one in outcomes if one.suite == suite]
        if not parts:
            continue
        skipped: Counter[str] = sum((one.skipped for one in parts), Counter())
        reasons = "; ".join(f"{count}: {reason}" for reason, count in sorted(skipped.items())) or "none"
        passed, failed = sum(one.passed for one in parts), sum(one.failed for one in parts)
        left_out, seconds = sum(one.left_out for one in parts), sum(one.seconds for one in parts)
        rows.append(
            f"| {version} | {parts[0].release} | {passed} passed, {failed} failed | {seconds:.0f} s "
            f"| {left_out} | {reasons} |"
        )
    head = "| kernel | release | result | time | left out | skipped, and why |"
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", *rows])


def written(text: str, name: str, content: str) -> str:
    """The page with this part of it replaced; raises ClusterError where it has none of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    part = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not part.search(text):
        raise ClusterError(f"no part {name!r} in the page")
    return part.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def write(outcomes: Sequence[Outcome], path: Path = PAGE) -> None:
    """Put a complete run's outcomes into the page."""
    text = written(path.read_text(), "result", result_table(outcomes))
    path.write_text(written(text, "left out", left_out_table()))
