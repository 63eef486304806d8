# SPDX-License-Identifier: MIT
"""The report in a real browser: it shows what it says, complains of nothing, asks nobody for anything."""

from __future__ import annotations

import http.server
import json
import os
import re
import struct
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_pacto.cli.main import main
from kubectl_pacto.cli.report.page import page
from tests.support.require import require
from tests.support.service_graph import AT, Shop, large, small
from tests.unit.cli.test_report import EVIL, Page, poison

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
QUIET: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what it asks for itself goes nowhere
)  # fmt: skip
OWN: Final = ("", "not an origin")  # whose wish a request is, where it is the browser's


@dataclass(frozen=True)
class Shown:
    """What the browser made of a page."""

    dom: Page
    console: list[str]
    requested: list[str]


@pytest.fixture(scope="module")
def browser() -> str:
    """The browser."""
    import shutil

    found = next((path for name in PROGRAMS if (path := shutil.which(name))), "")
    require("browser", "" if found else "not on PATH: chromium (python -m tests.cluster deps browser)")
    return found


def start(browser: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the browser once, with a profile of its own."""
    command = [browser, *QUIET, f"--user-data-dir={folder / 'profile'}", *words]
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def show(browser: str, folder: Path, address: str, *words: str) -> Shown:
    """Load an address; its document after the browser has read it, its console, whom it asked."""
    log = folder / "net.json"
    done = start(
        browser, folder, "--enable-logging=stderr", f"--log-net-log={log}", "--dump-dom", *words, address
    )
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    recorded: Any = json.loads(log.read_text())
    kinds = {number: name for name, number in recorded["constants"]["logSourceType"].items()}
    started = [
        event["params"]
        for event in recorded["events"]
        if kinds.get(event["source"]["type"]) == "URL_REQUEST" and "url" in (event.get("params") or {})
    ]
    requested = {
        str(one["url"])
        for one in started
        if str(one.get("initiator") or "") not in OWN or "://127.0.0.1" in one["url"]
    }
    return Shown(Page(done.stdout), console, sorted(requested))


def write(folder: Path, shop: Shop) -> Path:
    """The report of a shop."""
    (folder / "objects.yaml").write_text(shop.text())
    target = folder / "report.html"
    assert main(["report", "-f", str(folder / "objects.yaml"), "--at", AT, "--to", str(target)]) == 0
    return target


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address on loopback of a server of the test's folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    handler = partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("shop", [small(), large()], ids=["three services", "sixty services"])
def test_a_page_from_a_file_shows_everything_and_asks_for_nothing(
    browser: str, tmp_path: Path, shop: Shop
) -> None:
    target = write(tmp_path, shop)
    shown = show(browser, tmp_path, f"file://{target}")
    assert shown.console == []
    assert shown.requested == []
    assert [text for level, text in shown.dom.headings if level == 2] == [
        "Verdicts", "Who calls whom", "Findings", "Kernel coverage",
    ]  # fmt: skip
    for name in shop.declared:
        assert f"{shop.namespace}/{name}" in shown.dom.tables[0]["th"]
    boxes = [one for one in shown.dom.all("g") if (one.get("class") or "").startswith("box ")]
    assert len(boxes) == max(4, len(shop.declared))
    assert "NonCompliant" in shown.dom.tables[0]["td"]
    assert "node-c" in shown.dom.text


def test_a_page_from_a_server_asks_for_itself_alone(browser: str, tmp_path: Path, served: str) -> None:
    write(tmp_path, small())
    shown = show(browser, tmp_path, f"{served}/report.html")
    assert shown.console == []
    assert shown.requested == [f"{served}/report.html"]


def test_a_page_of_hostile_names_runs_nothing(browser: str, tmp_path: Path, served: str) -> None:
    target = write(tmp_path, small())
    path = str(tmp_path / "objects.yaml")
    data_file = tmp_path / "report.json"
    assert main(["report", "-f", path, "--at", AT, "-o", "json", "--to", str(data_file)]) == 0
    target.write_text(page(poison(json.loads(data_file.read_text()))))
    shown = show(browser, tmp_path, f"{served}/report.html")
    assert shown.console == []
    assert shown.requested == [f"{served}/report.html"]
    assert not {"script", "img"} & {tag for tag, _ in shown.dom.elements}
    assert EVIL.partition("&")[0] in shown.dom.text


def test_the_pages_own_policy_stops_what_somebody_puts_into_it(
    browser: str, tmp_path: Path, served: str
) -> None:
    """The other tests would pass without a policy: this one fails then, and proves that they see requests."""
    target = write(tmp_path, small())
    planted = '<img src="/planted.png"><img src="http://planted.invalid/x.png">'
    planted += '<script>document.title = "planted"</script></main>'
    target.write_text(target.read_text().replace("</main>", planted, 1))
    shown = show(browser, tmp_path, f"{served}/report.html")
    assert shown.requested == [f"{served}/report.html"]
    assert any("Content Security Policy" in line for line in shown.console)
    target.write_text(re.sub("<meta http-equiv[^>]*>", "", target.read_text()))
    bare = show(browser, tmp_path, f"{served}/report.html")
    assert {f"{served}/planted.png", "http://planted.invalid/x.png"} <= set(bare.requested)


def pixels(path: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    head = path.read_bytes()[:24]
    width, height = struct.unpack(">II", head[16:24])
    return width, height


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_drawn_in_the_scheme_of_the_reader(browser: str, tmp_path: Path, scheme: str) -> None:
    target = write(tmp_path, small())
    picture = tmp_path / "page.png"
    words = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    start(browser, tmp_path, *words, f"--screenshot={picture}", "--window-size=800,600", f"file://{target}")
    assert pixels(picture) == (800, 600)
    ground = first_pixel(picture)
    assert ground == ((13, 17, 23) if scheme == "dark" else (255, 255, 255))


def first_pixel(path: Path) -> tuple[int, int, int]:
    """The colour of the left upper corner: no filter changes a PNG's first pixel."""
    import zlib

    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    red, green, blue = zlib.decompress(packed)[1:4]
    return red, green, blue
