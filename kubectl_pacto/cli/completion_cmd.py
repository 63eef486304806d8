# SPDX-License-Identifier: MIT
"""Shell completion through kubectl's own: `completion` prints or installs the script that kubectl runs.

kubectl runs `kubectl_complete-pacto WORDS... LAST` and reads candidates, one a line with a description
after a tab, and a last line `:DIRECTIVE` (the bits of cobra's protocol).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from kubectl_pacto.cli.errors import NoFolder
from kubectl_pacto.cli.terminal import tell, write

NO_FILES: Final = 4
FILES: Final = 0
TIMEOUT_SECONDS: Final = 1.5
SCRIPT: Final = """\
#!/bin/sh
# completes `kubectl pacto ...` in kubectl's own completion
exec kubectl pacto __complete "$@"
"""
NAME: Final = "kubectl_complete-pacto"


@click.command(short_help="Set shell completion up.")
@click.option(
    "--install",
    "folder",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[FOLDER]",
    help="Write the script to FOLDER, or to the first folder of PATH that can be written.",
)
def completion(*, folder: str | None) -> None:
    """Print, or with --install save, the script through which kubectl completes this plugin.

    Needs kubectl's own completion: `source <(kubectl completion bash)`, or zsh, fish, powershell.
    """
    if folder is None:
        write(SCRIPT)
        return
    target = Path(folder or _writable()) / NAME
    target.write_text(SCRIPT, encoding="utf-8")
    target.chmod(0o755)
    tell(f"wrote {target}")


def _writable() -> str:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and os.access(folder, os.W_OK) and Path(folder).is_dir():
            return folder
    raise NoFolder(name=NAME)


def complete(words: Sequence[str], group: click.Group, helps: Mapping[str, str]) -> None:
    """Print the candidates for the last of `words`, as kubectl wants them; `helps` is a line per command."""
    before, last = list(words[:-1]), words[-1] if words else ""
    try:
        found, directive = candidates(group, helps, before, last)
    except Exception:  # a completion that breaks offers nothing, and never an error in a prompt
        found, directive = [], NO_FILES
    lines = [f"{name}\t{text}" if text else name for name, text in found if name.startswith(last)]
    write("".join(f"{line}\n" for line in [*lines, f":{directive}"]))


def candidates(
    group: click.Group, helps: Mapping[str, str], before: Sequence[str], last: str
) -> tuple[list[tuple[str, str]], int]:
    """What may stand in place of `last`, with descriptions, and the directive."""
    if not before:
        return sorted(helps.items()), NO_FILES
    command = group.get_command(click.Context(group), before[0])
    if command is None:
        return [], NO_FILES
    option = _open_option(command, before[1:])
    if option is not None:
        return _values(option, before)
    if last.startswith("-"):
        return list(_flags(command)), NO_FILES
    if any(isinstance(part, click.Argument) for part in command.params):
        return _arguments(command, before)
    return [], NO_FILES


def _open_option(command: click.Command, words: Sequence[str]) -> click.Option | None:
    """The option that waits for its value."""
    for part in command.params:
        if isinstance(part, click.Option) and not part.is_flag and words and words[-1] in part.opts:
            return part
    return None


def _flags(command: click.Command) -> Iterator[tuple[str, str]]:
    for part in command.params:
        if isinstance(part, click.Option) and not part.hidden:
            longest = max((*part.opts, *part.secondary_opts), key=len)
            yield longest, (part.help or "").partition(".")[0]


def _values(option: click.Option, before: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    if isinstance(option.type, click.Choice):
        return [(str(choice), "") for choice in option.type.choices], NO_FILES
    name = option.name or ""
    if name in ("kubeconfig", "files", "keep", "probe_results") or name.startswith(
        ("client_", "certificate_")
    ):
        return [], FILES
    if name == "codes":
        from kubectl_pacto.model.finding import REGISTRY

        return [(code, "") for code in sorted(REGISTRY)], NO_FILES
    return [(found, "") for found in _names(name, before)], NO_FILES


def _arguments(command: click.Command, before: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    if command.name == "explain":
        from kubectl_pacto.explain.words import names, words
        from kubectl_pacto.model.finding import REGISTRY

        known = [*sorted(REGISTRY), *names(words())]
        return [(word, "") for word in known], NO_FILES
    if command.name == "evaluate":
        return [], FILES
    return [(found, "") for found in _names("pacto", before)], NO_FILES


def _names(what: str, before: Sequence[str]) -> list[str]:
    """Names from the kubeconfig or, briefly asked, from the cluster."""
    from kubectl_pacto.kube.kubeconfig import Flags, load
    from kubectl_pacto.kube.paths import PACTO_API

    given = _given(before)
    flags = Flags(**given, request_timeout=TIMEOUT_SECONDS)
    if what in ("context", "cluster", "user"):
        return sorted(getattr(load(flags), f"{what}s"))
    paths = {
        "namespace": "/api/v1/namespaces",
        "agent_namespace": "/api/v1/namespaces",
        "node": "/api/v1/nodes",
        "pod": "/api/v1/namespaces/{}/pods",
        "pacto": f"{PACTO_API}/namespaces/{{}}/pactos",
    }
    if what not in paths:
        return []
    from kubectl_pacto.kube.client import METADATA_ONLY
    from kubectl_pacto.kube.connect import connect

    session = connect(flags)
    try:
        accept = METADATA_ONLY.replace("PartialObjectMetadata", "PartialObjectMetadataList")
        found = session.client.get(f"{paths[what].format(session.namespace)}?limit=200", accept=accept)
    finally:
        session.client.close()
    return sorted(item["metadata"]["name"] for item in found.get("items") or ())


def _given(words: Sequence[str]) -> dict[str, Any]:
    """The connection flags on the line so far."""
    known = {
        "-n": "namespace", "--namespace": "namespace", "--context": "context", "--cluster": "cluster",
        "--user": "user", "--kubeconfig": "kubeconfig", "-s": "server", "--server": "server",
    }  # fmt: skip
    found = {}
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in known and equals:
            found[known[name]] = value
        elif word in known and position + 1 < len(words):
            found[known[word]] = words[position + 1]
    return found
