# SPDX-License-Identifier: MIT
"""One file that always holds the whole view: a Kubernetes List of the node's object and its Lease.

`kubectl pacto evaluate -f` reads it as it is. The file is replaced in one step, so that a reader
never sees half of it.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Final

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.model.bounds import OBJECT_BYTES
from pacto_agent.budget import text_of

# twice what an object may have: whatever is longer is not ours
LARGEST_BYTES: Final = 2 * OBJECT_BYTES


class FileSink:
    """Replaces `path` at each renewal, and at each change of the object."""

    requests: int | None = None  # no API is asked

    def __init__(self, path: str) -> None:
        """Raises SinkFailed for what may not be replaced: a device, a pipe, a directory."""
        self._path = os.path.realpath(path)  # what a link points to is replaced, never the link
        if os.path.exists(self._path) and not os.path.isfile(self._path):
            raise SinkFailed(
                sink=path, problem="is no regular file (a directory, device or pipe): choose another --output"
            )
        # as text: the tree of 4,096 peers takes several times as much memory
        self._observation = ""
        self._lease = ""

    def load(self) -> dict[str, Any] | None:
        """The object in the file, None when there is none or the file is not ours to understand."""
        try:
            with open(self._path, encoding="utf-8") as file:
                items = json.loads(file.read(LARGEST_BYTES))["items"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        found = items[0] if isinstance(items, list) and items else None
        return found if isinstance(found, dict) else None

    def put(self, observation: dict[str, Any]) -> None:
        """Hold this object."""
        self._observation = text_of(observation)
        self._write()

    def renew(self, lease: dict[str, Any]) -> bool:
        """Renew the Lease beside the object."""
        self._lease = text_of(lease)
        self._write()
        return True

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
