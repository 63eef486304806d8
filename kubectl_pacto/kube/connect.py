# SPDX-License-Identifier: MIT
"""A client of the cluster that kubectl would use, with the same identity. Called by the plugin alone.

The pod's own account is used only where nothing at all is configured, as kubectl does.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import JSON, Client, Tokens
from kubectl_pacto.kube.connect_errors import ConfigProblem, CredentialProblem, NoClusterConfigured
from kubectl_pacto.kube.connect_transport import Identity, PluginTransport, Target
from kubectl_pacto.kube.credentials import ACCOUNT, TokenFile
from kubectl_pacto.kube.kubeconfig import Choice, Config, Flags, choose, load
from kubectl_pacto.kube.retry import RetryPolicy

TIMEOUT_SECONDS: Final = 30.0
# A person waits: two more attempts, and no long pauses.
RETRIES: Final = RetryPolicy(attempts=3, first_delay=0.2, longest_delay=2.0)


@dataclass(frozen=True, slots=True)
class Session:
    """A connection and what was chosen for it."""

    client: Client
    transport: PluginTransport
    namespace: str
    server: str
    context: str = ""
    cluster: str = ""
    user: str = ""

    def now(self) -> float:
        """POSIX seconds by the server's clock."""
        return self.transport.now()

    def await_event(self, path: str, seconds: float) -> bool | None:
        """Wait so long for the first event of a watch: whether one came; None: no watch is given."""
        headers = {"Accept": JSON, **self.client.identity()}
        return self.transport.await_event(path, headers, seconds)


class Presents(Protocol):
    """Who presents a client certificate."""

    def use(self, certificate: str, key: str) -> None:
        """Present this one from the next connection on."""


class StaticToken:
    """A token that is what it is."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        """The token."""
        return self._token

    def reread(self) -> bool:
        """It never changes."""
        return False


def connect(flags: Flags, environment: Mapping[str, str] = os.environ, account: str = ACCOUNT) -> Session:
    """A session of the cluster, user and namespace that kubectl would choose. Raises PactoError."""
    config = load(flags, environment)
    choice = choose(config, flags)
    try:
        server = flags.server or choice.server or environment.get("KUBERNETES_MASTER", "")
        if not server:
            return _in_pod(config, choice, flags, environment, account)
        target = target_of(server, choice, flags, environment)
        # as client-go has it: no credential goes over a connection that anybody can read
        identity = identity_of(choice, flags) if target.tls else Identity()
        transport = PluginTransport(target, identity, _timeout(flags))
        tokens = tokens_of(choice, flags, transport, target) if target.tls else None
    except MalformedObject as error:
        file = choice.cluster.file or choice.user.file or "kubeconfig"
        raise ConfigProblem(file=file, problem=str(error)) from None
    client = Client(transport, tokens, agent=_agent(), retries=RETRIES)
    return Session(
        client, transport, choice.namespace, target.url, choice.context, choice.cluster_name, choice.user_name
    )


def _agent() -> str:
    from kubectl_pacto import __version__

    return f"kubectl-pacto/{__version__}"


def _timeout(flags: Flags) -> float | None:
    return TIMEOUT_SECONDS if flags.request_timeout is None else flags.request_timeout or None


def _in_pod(
    config: Config, choice: Choice, flags: Flags, environment: Mapping[str, str], account: str
) -> Session:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = f"{account}/token"
    if not host or not port or flags.say_who or not Path(token).is_file():
        raise NoClusterConfigured(files=config.sources)
    shown = f"[{host}]" if ":" in host else host
    target = Target(f"https://{shown}:{port}", authority_file=f"{account}/ca.crt", headers=_as(flags, choice))
    transport = PluginTransport(target, Identity(), _timeout(flags))
    namespace = choice.namespace
    if not choice.namespace_given:
        namespace = environment.get("POD_NAMESPACE") or _text(f"{account}/namespace") or namespace
    client = Client(transport, TokenFile(token), agent=_agent(), retries=RETRIES)
    return Session(client, transport, namespace, target.url)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def target_of(server: str, choice: Choice, flags: Flags, environment: Mapping[str, str]) -> Target:
    """Where and how to connect. Raises MalformedObject, CredentialProblem."""
    cluster = choice.cluster
    authority = "" if flags.certificate_authority else _data(choice, "certificate-authority-data")
    authority_file = flags.certificate_authority or cluster.path("certificate-authority")
    verify = not (flags.insecure or cluster.fields.flag("insecure-skip-tls-verify"))
    if "://" not in server:
        # client-go's default for a bare host: TLS where anything about TLS is configured
        has_tls = bool(authority or authority_file or not verify or identity_of(choice, flags) != Identity())
        server = f"{'https' if has_tls else 'http'}://{server}"
    headers = _as(flags, choice)
    if server.startswith("https:") and not flags.token and choice.user.fields.text("username"):
        pair = f"{choice.user.fields.text('username')}:{choice.user.fields.text('password')}"
        headers = (("Authorization", f"Basic {b64encode(pair.encode()).decode()}"), *headers)
    return Target(
        url=server,
        server_name=flags.tls_server_name or cluster.fields.text("tls-server-name"),
        verify=verify,
        authority=authority,
        authority_file=authority_file,
        proxy=_proxy(server, cluster.fields.text("proxy-url"), environment),
        headers=headers,
        user=choice.user_name,
    )


def _proxy(server: str, configured: str, environment: Mapping[str, str]) -> str:
    """The proxy to go through; empty for none."""
    kind = "HTTPS_PROXY" if server.startswith("https:") else "HTTP_PROXY"
    proxy = configured or environment.get(kind) or environment.get(kind.lower()) or ""
    if not proxy:
        return ""
    if not configured:
        host = urlsplit(server).hostname or ""
        listed = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
        if host in ("localhost", "::1") or host.startswith("127.") or _is_listed(host, listed):
            return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith("http://"):
        problem = f"the proxy {proxy.partition('://')[0]}:// is not supported, only http://"
        raise CredentialProblem(user="(any)", problem=problem)
    return proxy


def _is_listed(host: str, listed: str) -> bool:
    """Whether NO_PROXY holds this host: by name, by the end of its name, or by its network."""
    for item in (part.strip().lower() for part in listed.split(",")):
        if item == "*" or (item and (host == item or host.endswith(f".{item.lstrip('*.')}"))):
            return True
        if "/" in item:
            from ipaddress import ip_address, ip_network

            try:
                if ip_address(host) in ip_network(item, strict=False):
                    return True
            except ValueError:
                continue
    return False


def _data(choice: Choice, name: str) -> str:
    """Decoded PEM of a `...-data` field of the cluster or user."""
    entry = choice.cluster if name.startswith("certificate-authority") else choice.user
    text = entry.fields.text(name)
    try:
        return b64decode("".join(text.split()), validate=True).decode("ascii")
    except ValueError:
        raise entry.fields.fail(name, "is not base64 of PEM text") from None


def identity_of(choice: Choice, flags: Flags) -> Identity:
    """The client certificate of the user, if it has one. Raises MalformedObject."""
    return Identity(
        flags.client_certificate or choice.user.path("client-certificate"),
        flags.client_key or choice.user.path("client-key"),
        "" if flags.client_certificate else _data(choice, "client-certificate-data"),
        "" if flags.client_key else _data(choice, "client-key-data"),
    )


def _as(flags: Flags, choice: Choice) -> tuple[tuple[str, str], ...]:
    """The impersonation headers; a flag replaces what the file says."""
    fields = choice.user.fields
    user = flags.as_user or fields.text("as")
    groups = flags.as_groups or fields.texts("as-groups")
    uid = flags.as_uid or fields.text("as-uid")
    extra = fields.child("as-user-extra")
    if not user and (groups or uid):
        problem = "--as-group and --as-uid need --as: a user to act as"
        raise CredentialProblem(user=choice.user_name or "(none)", problem=problem)
    headers = [("Impersonate-User", user)] if user else []
    headers += [("Impersonate-Group", group) for group in groups]
    headers += [("Impersonate-Uid", uid)] if uid else []
    headers += [(f"Impersonate-Extra-{key}", item) for key in extra.names() for item in extra.texts(key)]
    return tuple(headers)


def tokens_of(choice: Choice, flags: Flags, presents: Presents, target: Target) -> Tokens | None:
    """Where the bearer token comes from: as in kubectl a file wins (even over --token), a program is last."""
    user = choice.user
    if path := user.path("tokenFile"):
        return TokenFile(path)
    if token := flags.token or user.fields.text("token"):
        return StaticToken(token)
    if "exec" in user.fields and not user.fields.text("username"):
        from kubectl_pacto.kube.exec_auth import Credential, ExecTokens, decode_program

        def adopt(credential: Credential) -> None:
            if credential.certificate:
                presents.use(credential.certificate, credential.key)

        return ExecTokens(decode_program(choice.user_name, user), _cluster_info(choice, target), adopt)
    if "auth-provider" in user.fields:
        from kubectl_pacto.kube.provider_auth import provider_token

        return StaticToken(provider_token(choice))
    return None


def _cluster_info(choice: Choice, target: Target) -> Mapping[str, Any]:
    """What a credential program is told of the cluster."""
    info: dict[str, Any] = {"server": target.url}
    if target.server_name:
        info["tls-server-name"] = target.server_name
    if not target.verify:
        info["insecure-skip-tls-verify"] = True
    authority = target.authority or (_text(target.authority_file) if target.authority_file else "")
    if authority:
        info["certificate-authority-data"] = b64encode(authority.encode()).decode()
    for item in choice.cluster.fields.children("extensions"):
        if item.text("name") == "client.authentication.k8s.io/exec":
            info["config"] = item.raw("extension")
    return info
