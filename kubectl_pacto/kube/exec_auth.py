# SPDX-License-Identifier: MIT
"""Credentials from a program that the kubeconfig names (client.authentication.k8s.io).

The program runs when a request needs it, again once its credential has expired or was refused. A
program that is missing or fails stops the command: no request goes out as nobody.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.connect_errors import CredentialProblem, PluginFailed, PluginMissing
from kubectl_pacto.kube.kubeconfig import Entry
from kubectl_pacto.model.fields import Fields

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
LEEWAY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Credential:
    """What the program said: a token, a client certificate with its key, or both."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """The `exec` part of a user; `command` as written, made absolute where it holds a folder."""

    user: str
    command: str
    version: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    wants_cluster: bool = False
    interactive_mode: str = "IfAvailable"


def decode_program(user: str, entry: Entry) -> Program:
    """The program of a user whose entry has an `exec` part. Raises CredentialProblem."""
    fields = entry.fields.child("exec")
    try:
        command = fields.required_text("command")
        if os.sep in command:
            command = str(entry.folder / command)
        version = fields.required_text("apiVersion")
        if version not in VERSIONS:
            raise fields.fail("apiVersion", f"must be one of {', '.join(VERSIONS)} (it is {version!r})")
        mode = fields.text("interactiveMode") or ("" if version == VERSIONS[0] else "IfAvailable")
        if mode not in ("Never", "IfAvailable", "Always"):
            raise fields.fail("interactiveMode", "must be Never, IfAvailable or Always")
        return Program(
            user=user,
            command=command,
            version=version,
            arguments=fields.texts("args"),
            variables={item.required_text("name"): item.text("value") for item in fields.children("env")},
            install_hint=fields.text("installHint").strip(),
            wants_cluster=fields.flag("provideClusterInfo"),
            interactive_mode=mode,
        )
    except MalformedObject as error:
        raise CredentialProblem(user=user, problem=str(error)) from None


class ExecTokens:
    """A token source for the client: runs the program when there is no valid credential.

    `on_credential` is told each new one, so that its certificate reaches the connection.
    """

    def __init__(
        self,
        program: Program,
        cluster: Mapping[str, Any],
        on_credential: Callable[[Credential], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._program, self._cluster = program, cluster
        self._tell = on_credential or (lambda _: None)
        self._clock = clock
        self._credential: Credential | None = None

    def token(self) -> str:
        """The token; empty where the program gives a certificate only."""
        held = self._credential
        if held is None or (held.expires is not None and held.expires - LEEWAY_SECONDS <= self._clock()):
            held = self._renew()
        return held.token

    def reread(self) -> bool:
        """Run the program again; whether it gave another credential."""
        before = self._credential
        return self._renew() != before

    def _renew(self) -> Credential:
        self._credential = run(self._program, self._cluster)
        self._tell(self._credential)
        return self._credential


def run(program: Program, cluster: Mapping[str, Any]) -> Credential:
    """Run the program once. Raises PluginMissing, PluginFailed."""
    path = {**os.environ, **program.variables}.get("PATH", os.defpath)
    found = shutil.which(program.command, path=path)
    if found is None:
        advice = f": {program.install_hint}" if program.install_hint else ""
        raise PluginMissing(command=program.command, user=program.user, advice=advice)
    interactive = _interactive(program)
    spec: dict[str, Any] = {"interactive": interactive}
    if program.wants_cluster:
        spec["cluster"] = dict(cluster)
    info = {"kind": "ExecCredential", "apiVersion": program.version, "spec": spec}
    try:
        done = subprocess.run(
            [found, *program.arguments],
            env={**os.environ, **program.variables, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        raise _failed(program, f"cannot be started: {error.strerror}") from None
    if done.returncode != 0:
        raise _failed(program, f"failed with exit status {done.returncode}")
    return _decode(program, done.stdout)


def _interactive(program: Program) -> bool:
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if program.interactive_mode == "Always" and not has_terminal:
        raise _failed(program, "needs a terminal, and standard input is none")
    return program.interactive_mode != "Never" and has_terminal


def _decode(program: Program, output: bytes) -> Credential:
    try:
        top = Fields(json.loads(output))
        if top.text("kind") != "ExecCredential" or top.text("apiVersion") != program.version:
            problem = f"answered {top.text('apiVersion')!r} {top.text('kind')!r}, not {program.version!r}"
            raise _failed(program, f"{problem} 'ExecCredential'")
        status = top.child("status")
        credential = Credential(
            status.text("token"),
            status.text("clientCertificateData"),
            status.text("clientKeyData"),
            status.instant("expirationTimestamp"),
        )
    except (ValueError, MalformedObject) as error:
        raise _failed(program, f"answered what is no ExecCredential: {error}") from None
    if bool(credential.certificate) != bool(credential.key):
        raise _failed(program, "answered a certificate without its key, or a key without its certificate")
    if not credential.token and not credential.certificate:
        raise _failed(program, "answered neither a token nor a certificate")
    return credential


def _failed(program: Program, problem: str) -> PluginFailed:
    return PluginFailed(command=program.command, user=program.user, problem=problem)
