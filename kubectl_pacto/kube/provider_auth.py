# SPDX-License-Identifier: MIT
"""The auth provider `oidc` of a kubeconfig: its identity token, renewed where that is possible.

The renewal is the official client's, which is imported for this alone and need not be installed. It
verifies no issuer whose authority the kubeconfig does not name; it is given the system's.
"""

from __future__ import annotations

import json
import os
import ssl
import tempfile
import time
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kubectl_pacto.kube.connect_errors import CredentialProblem
from kubectl_pacto.kube.kubeconfig import Choice

RENEWED: Final = ("id-token", "refresh-token")
INSTALL: Final = "pip install 'kubectl-pacto[oidc]' lets it be renewed here"
OTHERWISE: Final = "use a credential plugin (exec) instead"


def provider_token(choice: Choice) -> str:
    """A valid identity token of the user's auth provider. Raises CredentialProblem."""
    provider = choice.user.fields.child("auth-provider")
    name, settings = provider.text("name"), provider.child("config")
    token = settings.text("id-token")
    if name != "oidc":
        raise _problem(choice, f"the auth provider {name!r} is none that kubectl still has; {OTHERWISE}")
    if _is_valid(token):
        return token
    if not settings.text("refresh-token") or not settings.text("idp-issuer-url"):
        why = "has no valid token here, and none to renew it with"
        raise _problem(choice, f"the auth provider 'oidc' {why}; {OTHERWISE}")
    renewed = _renew(choice, _settings(choice))
    if not _is_valid(renewed.get("id-token", "")):
        raise _problem(choice, f"the issuer of the auth provider 'oidc' gave no valid token; {OTHERWISE}")
    _keep(choice, renewed)
    return str(renewed["id-token"])


def _settings(choice: Choice) -> Mapping[str, Any]:
    raw = choice.user.fields.raw("auth-provider")
    return raw.get("config") or {} if isinstance(raw, dict) else {}


def _problem(choice: Choice, problem: str) -> CredentialProblem:
    return CredentialProblem(user=choice.user_name, problem=problem)


def _is_valid(token: str) -> bool:
    """Whether it is an identity token that has not expired."""
    parts = token.split(".")
    try:
        claims = json.loads(b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_"))
        expires = claims["exp"]
    except (IndexError, ValueError, KeyError, TypeError):
        return False
    return len(parts) == 3 and isinstance(expires, int | float) and expires > time.time()


def _renew(choice: Choice, settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        from kubernetes.client import Configuration
        from kubernetes.config.kube_config import KubeConfigLoader
    except ImportError:
        why = "its token has expired"
        raise _problem(choice, f"the auth provider 'oidc': {why}; {INSTALL}, or {OTHERWISE}") from None
    given = {"client-secret": "", **settings}
    if not given.get("idp-certificate-authority-data"):
        # without any the official client would not verify whom it sends the refresh token to
        path = given.get("idp-certificate-authority")
        given["idp-certificate-authority"] = str(choice.user.folder / path) if path else _system_authority()
    user = {"auth-provider": {"name": "oidc", "config": given}}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://unused.invalid"}}],
        "users": [{"name": "u", "user": user}],
    }
    try:
        KubeConfigLoader(config).load_and_set(Configuration())
    except Exception as error:
        why = f"cannot be renewed: {type(error).__name__}: {error}"
        raise _problem(choice, f"the token of the auth provider 'oidc' {why}"[:500]) from None
    return {key: given[key] for key in RENEWED}


def _system_authority() -> str:
    found = ssl.get_default_verify_paths().cafile
    if found:
        return found
    import certifi  # the official client has it

    return str(certifi.where())


def _keep(choice: Choice, renewed: Mapping[str, str]) -> None:
    """Write the tokens back, as kubectl does: an issuer may take a refresh token once."""
    path = Path(choice.user.file)
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        for item in config["users"]:
            if item["name"] == choice.user_name:
                item["user"]["auth-provider"]["config"].update(renewed)
        mode = path.stat().st_mode & 0o777
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as made:
            os.fchmod(made.fileno(), mode)
            yaml.safe_dump(config, made, sort_keys=False)
        Path(made.name).replace(path)
    except (OSError, KeyError, TypeError, yaml.YAMLError) as error:
        raise _problem(choice, f"its renewed token cannot be written to {path}: {error}") from None
