# SPDX-License-Identifier: MIT
"""Which cluster, user and namespace: KUBECONFIG and flags read as kubectl reads them.

Follows client-go's loading rules: of several files the first one to set a value wins, the
current-context included, and an entry comes whole from the first file that has it. Opens no
connection and starts no program; `connect` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.connect_errors import ChoiceProblem, ConfigProblem
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.yamltext import YamlError, load_all

DEFAULT_NAMESPACE: Final = "default"
_SECTIONS: Final = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))


@dataclass(frozen=True, slots=True)
class Flags:
    """kubectl's connection flags; empty means not given."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    server: str = ""
    token: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    request_timeout: float | None = None

    @property
    def say_who(self) -> bool:
        """Whether any of them says where to connect or as whom, which no pod's own account may replace."""
        return any((self.context, self.cluster, self.user, self.server, self.token, self.client_certificate))


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster, user or context, and the folder that its relative paths start from."""

    fields: Fields
    folder: Path
    file: str = ""

    def path(self, name: str) -> str:
        """A file that a field names, absolute; empty without one."""
        text = self.fields.text(name)
        return str(self.folder / text) if text else ""


@dataclass(frozen=True, slots=True)
class Config:
    """The merged files."""

    clusters: Mapping[str, Entry] = field(default_factory=dict)
    users: Mapping[str, Entry] = field(default_factory=dict)
    contexts: Mapping[str, Entry] = field(default_factory=dict)
    current: str = ""
    files: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def sources(self) -> str:
        """The files that were looked at, for a message."""
        if self.files:
            return f"read: {', '.join(self.files)}"
        return f"not there: {', '.join(self.absent)}" if self.absent else "no kubeconfig file is named"


@dataclass(frozen=True, slots=True)
class Choice:
    """What kubectl would use: names (empty where nothing is configured) and their entries."""

    context: str
    cluster_name: str
    user_name: str
    namespace: str
    cluster: Entry
    user: Entry
    namespace_given: bool = False

    @property
    def server(self) -> str:
        """The URL of the cluster as configured; a flag or the environment may replace it."""
        return self.cluster.fields.text("server")


def load(flags: Flags, environment: Mapping[str, str] = os.environ) -> Config:
    """Read and merge the files that kubectl would read. Raises ConfigProblem."""
    names = list(_file_names(flags, environment))
    merged: dict[str, dict[str, Entry]] = {section: {} for section, _ in _SECTIONS}
    current, found = "", []
    for name in names:
        top = _read(name, required=bool(flags.kubeconfig))
        if top is None:
            continue
        found.append(name)
        try:
            for section, kind in _SECTIONS:
                for key, entry in _entries(top, section, kind, name).items():
                    merged[section].setdefault(key, entry)
            current = current or top.text("current-context")
        except MalformedObject as error:
            raise ConfigProblem(file=name, problem=str(error)) from None
    absent = tuple(name for name in names if name not in found)
    return Config(merged["clusters"], merged["users"], merged["contexts"], current, tuple(found), absent)


def _file_names(flags: Flags, environment: Mapping[str, str]) -> Iterator[str]:
    if flags.kubeconfig:
        yield flags.kubeconfig
        return
    listed = environment.get("KUBECONFIG", "")
    if listed:
        yield from dict.fromkeys(name for name in listed.split(os.pathsep) if name)
        return
    home = environment.get("HOME") or environment.get("USERPROFILE")
    if home:
        yield str(Path(home, ".kube", "config"))


def _read(name: str, *, required: bool) -> Fields | None:
    """The one document of a file; None for a file that is not there."""
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if required:
            raise ConfigProblem(file=name, problem="does not exist") from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigProblem(file=name, problem=f"cannot be read: {problem}") from None
    try:
        document = next(load_all(text), None)
        return Fields({} if document is None else document)
    except (YamlError, MalformedObject) as error:
        raise ConfigProblem(file=name, problem=f"is no kubeconfig: {error}") from None


def _entries(top: Fields, section: str, kind: str, name: str) -> dict[str, Entry]:
    folder = Path(name).absolute().parent
    found: dict[str, Entry] = {}
    for item in top.children(section):
        key = item.text("name")
        if key in found:
            raise item.fail("name", f"is there twice: {key!r}")
        found[key] = Entry(item.child(kind), folder, name)
    return found


def choose(config: Config, flags: Flags) -> Choice:
    """The cluster, user and namespace that flags and files name. Raises ChoiceProblem."""
    context_name = flags.context or config.current
    context = _pick(config, config.contexts, "context", context_name)
    try:
        cluster_name = flags.cluster or context.fields.text("cluster")
        user_name = flags.user or context.fields.text("user")
        stated = flags.namespace or context.fields.text("namespace")
    except MalformedObject as error:
        raise ConfigProblem(file=context.file, problem=str(error)) from None
    return Choice(
        context_name,
        cluster_name,
        user_name,
        stated or DEFAULT_NAMESPACE,
        _pick(config, config.clusters, "cluster", cluster_name),
        _pick(config, config.users, "user", user_name),
        namespace_given=bool(stated),
    )


def _pick(config: Config, entries: Mapping[str, Entry], kind: str, name: str) -> Entry:
    """An entry by its name; an empty one for no name."""
    if not name:
        return Entry(Fields({}), Path.cwd())
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        problem = f"{kind} {name!r} does not exist; there is: {known}"
        raise ChoiceProblem(problem=problem, files=config.sources)
    return entries[name]
