# SPDX-License-Identifier: MIT
"""What the API server answers a holder of some token: for tests of who may do what."""

from __future__ import annotations

import json
from typing import Final

from tests.cluster.api import Api, ApiError, Object

OK: Final = 200
FORBIDDEN: Final = 403
CONFLICT: Final = 409
TRIES: Final = 20


def answer(api: Api, method: str, path: str, body: Object | None = None) -> tuple[int, str]:
    """The status of a request and what the API server said of a refusal."""
    try:
        api.raw(method, path, None if body is None else json.dumps(body))
    except ApiError as error:
        return error.status, str(error)
    return OK, ""


def answer_to_replace(
    api: Api, admin: Api, version: str, kind: str, namespace: str, name: str
) -> tuple[int, str]:
    """What a holder of `api` is answered who puts an object back as `admin` reads it.

    Where its owner was faster, that is a conflict, decided before any policy: it says nothing, and is
    tried again.
    """
    path, said = admin.path(version, kind, namespace, name), ""
    for _ in range(TRIES):
        current = admin.get(version, kind, name, namespace)
        assert current is not None
        status, said = answer(api, "PUT", path, current)
        if status != CONFLICT:
            return status, said
    raise AssertionError(f"{kind} {name}: a conflict each time: {said}")
