# SPDX-License-Identifier: MIT
"""What the Kubernetes API, or the way to it, can answer other than yes.

Raised by client alone; the status code decides, never the message. No message holds a credential.
"""

from __future__ import annotations

from typing import Any

from kubectl_pacto.errors import PactoError


class ApiError(PactoError):
    """{method} {path}: {problem}"""

    hint = "api"


class ApiUnreachable(ApiError):
    """{method} {path}: the API server cannot be reached: {problem}"""

    hint = "api-unreachable"


class ApiSilent(ApiError):
    """{method} {path}: the watch said nothing for {seconds:.0f} s and is opened again"""


class ApiUnauthorized(ApiError):
    """{method} {path}: the API server does not accept the credentials: {problem}"""

    hint = "api-unauthorized"


class ApiForbidden(ApiError):
    """{method} {path}: not allowed: {problem}"""

    hint = "api-forbidden"


class ApiNotFound(ApiError):
    """{method} {path}: not found: {problem}"""


class ApiConflict(ApiError):
    """{method} {path}: somebody else was first: {problem}"""


class ApiGone(ApiError):
    """{method} {path}: the resource version is too old: {problem}"""


class ApiTooLarge(ApiError):
    """{method} {path}: the object is too large: {problem}"""


class ApiInvalid(ApiError):
    """{method} {path}: refused as invalid: {problem}"""


class ApiBusy(ApiError):
    """{method} {path}: the API server is busy or broken ({status}): {problem}"""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: ApiInvalid,
    401: ApiUnauthorized,
    403: ApiForbidden,
    404: ApiNotFound,
    409: ApiConflict,
    410: ApiGone,
    413: ApiTooLarge,
    422: ApiInvalid,
    429: ApiBusy,
}


def error_of(method: str, path: str, status: int, answer: Any) -> ApiError:
    """The error for an answer that is no success; `answer` is the decoded Status, or its text."""
    message = answer.get("message") if isinstance(answer, dict) else answer
    problem = str(message or f"status {status}")[:500]
    kind = _BY_STATUS.get(status, ApiBusy if status >= 500 else ApiError)
    return kind(method=method, path=path, status=status, problem=problem)
