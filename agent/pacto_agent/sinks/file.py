# SPDX-License-Identifier: MIT
"""One file that always holds the whole view: a Kubernetes List of the node's object and its Lease.

`kubectl pacto evaluate -f` reads it as it is. The file is replaced in one step, so that a reader
never sees half of it.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from kubectl_pacto.errors import SinkFailed


class FileSink:
    """Replaces `path` at each renewal, and at each change of the object."""

    def __init__(self, path: str) -> None:
        self._path = path
        # as text: the tree of 4,096 peers takes several times as much memory
        self._observation = ""
        self._lease = ""

    def load(self) -> dict[str, Any] | None:
        """The object in the file, None when there is none or the file is not ours to understand."""
        try:
            with open(self._path, encoding="utf-8") as file:
                items = json.load(file)["items"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        found = items[0] if isinstance(items, list) and items else None
        return found if isinstance(found, dict) else None

    def put(self, observation: dict[str, Any]) -> None:
        """Hold this object."""
        self._observation = _text(observation)
        self._write()

    def renew(self, lease: dict[str, Any]) -> None:
        """Renew the Lease beside the object."""
        self._lease = _text(lease)
        self._write()

    def _write(self) -> None:
        items = ",".join(item for item in (self._observation, self._lease) if item)
        text = f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'
        beside = f"{self._path}.{os.getpid()}"
        try:
            with open(beside, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(beside, self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise SinkFailed(sink=self._path, problem=error.strerror or str(error)) from error


def _text(raw: dict[str, Any]) -> str:
    return json.dumps(raw, separators=(",", ":"))
