# SPDX-License-Identifier: MIT
"""What a new version of the API would change is spelled in one place."""

from __future__ import annotations

from pathlib import Path

from kubectl_pacto.model.group import API_VERSION, VERSION

ROOT = Path(__file__).parents[2]
SOURCES = ("kubectl_pacto", "agent", "scripts")


def test_the_api_version_is_spelled_once() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*.py")
        if API_VERSION in (text := path.read_text()) or f'"{VERSION}"' in text
    }
    assert found == {"kubectl_pacto/model/group.py"}
