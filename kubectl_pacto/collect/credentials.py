# SPDX-License-Identifier: MIT
"""Credentials for a registry, from a pull secret of one of its three kinds.

A credential belongs to one registry; it is never handed out for another.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.collect.registry_errors import BadPullSecret

DOCKER_CONFIG: Final = "kubernetes.io/dockerconfigjson"
DOCKER_HUB: Final = "index.docker.io"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user with a password, or a token; never shown when printed."""

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def basic(self) -> str:
        """The value of a Basic authorization header."""
        pair = f"{self.username}:{self.password}".encode()
        return "Basic " + base64.b64encode(pair).decode()


def normal_host(host: str) -> str:
    """One spelling for a registry: no scheme, no path, Docker Hub under its index."""
    bare = host.removeprefix("https://").removeprefix("http://").partition("/")[0].lower()
    return DOCKER_HUB if bare in ("docker.io", "registry-1.docker.io", DOCKER_HUB) else bare


def from_secret(secret: Mapping[str, Any], host: str) -> Credentials | None:
    """The credentials that a Secret (decoded JSON) holds for a registry; None if for others only.

    Raises BadPullSecret naming what it lacks, never a value.
    """
    name = _name(secret)
    data = {key: _decode(name, key, value) for key, value in (secret.get("data") or {}).items()}
    if secret.get("type") == DOCKER_CONFIG:
        return _from_docker_config(name, data, host)
    bound = data.get("registry", "")
    if bound and normal_host(bound) != normal_host(host):
        raise BadPullSecret(ref=name, problem=f"is for the registry {bound}, not for {host}")
    if data.get("token"):
        return _with_token(name, data["token"])
    if data.get("username") and "password" in data:
        return Credentials(data["username"], data["password"])
    raise BadPullSecret(ref=name, problem="holds neither token, nor username and password")


def _name(secret: Mapping[str, Any]) -> str:
    metadata = secret.get("metadata") or {}
    return f"Secret {metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _decode(name: str, key: str, value: object) -> str:
    try:
        return base64.b64decode(str(value), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        raise BadPullSecret(ref=name, problem=f"has a key {key} that is not base64 text") from None


def _with_token(name: str, token: str) -> Credentials:
    """What cannot be sent would be shown by the error of whoever tries."""
    if not (token.isascii() and token.isprintable()):
        raise BadPullSecret(ref=name, problem="holds a token with characters that no header can hold")
    return Credentials(token=token)


def _from_docker_config(name: str, data: Mapping[str, str], host: str) -> Credentials | None:
    try:
        auths = json.loads(data.get(".dockerconfigjson", "")).get("auths") or {}
        entries = {normal_host(key): entry for key, entry in auths.items()}
    except (ValueError, AttributeError):
        raise BadPullSecret(ref=name, problem="holds no .dockerconfigjson with auths") from None
    entry = entries.get(normal_host(host))
    if not isinstance(entry, dict):
        return None
    if entry.get("registrytoken"):
        return _with_token(name, str(entry["registrytoken"]))
    if entry.get("username"):
        return Credentials(str(entry["username"]), str(entry.get("password", "")))
    username, colon, password = _decode(name, ".dockerconfigjson auth", entry.get("auth", "")).partition(":")
    if not colon:
        raise BadPullSecret(ref=name, problem=f"has no username and password for {host}")
    return Credentials(username, password)
