# SPDX-License-Identifier: MIT
"""kubectl's connection flags on a command, and the session they lead to.

A decorated command gets `flags`; kubectl refuses flags before a plugin's name, so each command has them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_pacto.cli.options import Duration
from kubectl_pacto.kube.kubeconfig import Flags

if TYPE_CHECKING:
    from kubectl_pacto.kube.connect import Session

_TEXTS: Final = (
    (("--kubeconfig",), "kubeconfig", "PATH", "The kubeconfig file to use, instead of KUBECONFIG."),
    (("--context",), "context", "NAME", "The context of the kubeconfig to use."),
    (("--cluster",), "cluster", "NAME", "The cluster of the kubeconfig to use."),
    (("--user",), "user", "NAME", "The user of the kubeconfig to use."),
    (("-s", "--server"), "server", "URL", "The address of the API server."),
    (("--token",), "token", "TOKEN", "The bearer token to ask with."),
    (("--as", "as_user"), "as_user", "USER", "Act as this user."),
    (("--as-uid",), "as_uid", "UID", "Act as this UID."),
    (("--certificate-authority",), "certificate_authority", "PATH", "Whom to trust as the API server."),
    (("--client-certificate",), "client_certificate", "PATH", "The client certificate to ask with."),
    (("--client-key",), "client_key", "PATH", "Its key."),
    (("--tls-server-name",), "tls_server_name", "NAME", "The name that the server's certificate must have."),
)


def _options(namespace_help: str) -> list[Callable[[Any], Any]]:
    made = [
        click.option("-n", "--namespace", "namespace", metavar="NAME", default="", help=namespace_help),
    ]
    for declared, name, metavar, text in _TEXTS:
        words = declared if declared[-1] == name else (*declared, name)
        made.append(click.option(*words, metavar=metavar, default="", help=text))
    return [
        *made,
        click.option(
            "--as-group", "as_groups", metavar="GROUP", multiple=True, help="Act as of this group, too."
        ),
        click.option(
            "--insecure-skip-tls-verify", "insecure", is_flag=True, help="Trust any server certificate."
        ),
        click.option(
            "--request-timeout",
            "request_timeout",
            type=Duration(),
            help="How long one answer may take, as in 10s; 0 for no end. [default: 30s]",
        ),
    ]


def with_connection(
    namespace_help: str = "The namespace to look in. [default: the context's]",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the command takes kubectl's connection flags and gets them as `flags`."""
    names = [field.name for field in fields(Flags)]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(**given: Any) -> Any:
            flags = Flags(**{name: given.pop(name) for name in names})
            return function(flags=flags, **given)

        wrapped: Callable[..., Any] = call
        for option in reversed(_options(namespace_help)):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def open_session(flags: Flags) -> Session:
    """The session that the flags lead to, closed when the command ends. Raises PactoError."""
    from kubectl_pacto.kube.connect import connect

    session = connect(flags)
    click.get_current_context().call_on_close(session.client.close)
    return session
