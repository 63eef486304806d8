# SPDX-License-Identifier: MIT
"""KUBECONFIG cases, each with what kubectl chooses: read by the unit tests, and against a real kubectl.

`{a}` and the like in a server stand for one address each; files are written into one folder, the
process stands in it, and HOME is it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kubectl_pacto.kube.kubeconfig import Flags
from tests.support.fake_api import FakeApi, serve
from tests.support.tls_api import serve_tls


def config(
    current: str = "",
    clusters: dict[str, dict[str, Any]] | None = None,
    users: dict[str, dict[str, Any]] | None = None,
    contexts: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The content of one file."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    for section, kind, entries in (
        ("clusters", "cluster", clusters),
        ("users", "user", users),
        ("contexts", "context", contexts),
    ):
        body[section] = [{"name": name, kind: value} for name, value in (entries or {}).items()]
    return {**body, "current-context": current} if current else body


def one(letter: str, namespace: str = "", current: bool = True) -> dict[str, Any]:
    """A file with one cluster, user and context, all named by a letter."""
    context = {"cluster": f"cluster-{letter}", "user": f"user-{letter}"}
    return config(
        f"ctx-{letter}" if current else "",
        {f"cluster-{letter}": {"server": f"{{{letter}}}", "insecure-skip-tls-verify": True}},
        {f"user-{letter}": {"token": f"token-{letter}"}},
        {f"ctx-{letter}": {**context, "namespace": namespace} if namespace else context},
    )


@dataclass(frozen=True)
class Case:
    """Files by name, the environment, flags; and what is chosen (`fails` for a refusal)."""

    name: str
    files: dict[str, dict[str, Any] | str]
    kubeconfig: str | None = None
    flags: Flags = field(default_factory=Flags)
    cluster: str = ""
    user: str = ""
    namespace: str = "default"
    server: str = ""
    token: str = ""
    fails: bool = False
    asks_for_a_password: bool = (
        False  # kubectl does, where there is no credential at all; the plugin does not
    )

    def write(self, folder: Path, servers: dict[str, str]) -> dict[str, str]:
        """Write the files; the environment variables that go with them."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else yaml.safe_dump(content)
            for letter, url in servers.items():
                text = text.replace(f"'{{{letter}}}'", url).replace(f"{{{letter}}}", url)
            path.write_text(text)
        variables = {"HOME": str(folder)}
        return variables if self.kubeconfig is None else {**variables, "KUBECONFIG": self.kubeconfig}


Clusters = tuple[dict[str, FakeApi], dict[str, str]]
PATH = "/api/v1/namespaces/default"


@contextmanager
def run_clusters() -> Iterator[Clusters]:
    """Clusters a and b over TLS and one without: their state and their URLs, by the names in the table."""
    apis = {name: FakeApi() for name in ("a", "b", "plain")}
    for api in apis.values():
        api.put(PATH, {"kind": "Namespace"})
    with serve_tls(apis["a"]) as a, serve_tls(apis["b"]) as b, serve(apis["plain"]) as plain:
        yield apis, {"a": a, "b": b, "plain": f"http://127.0.0.1:{plain.port}"}


A: dict[str, Any] = {"cluster": "cluster-a", "user": "user-a", "server": "a", "token": "token-a"}
B: dict[str, Any] = {"cluster": "cluster-b", "user": "user-b", "server": "b", "token": "token-b"}
SAME_NAMES = config(
    "",
    {"cluster-a": {"server": "{b}", "insecure-skip-tls-verify": True}},
    {"user-a": {"token": "token-b"}},
    {"ctx-a": {"cluster": "cluster-a", "user": "user-a", "namespace": "second"}},
)
TOKEN_FILE = config(
    "c",
    {"k": {"server": "{a}", "insecure-skip-tls-verify": True}},
    {"u": {"tokenFile": "the-token"}},
    {"c": {"cluster": "k", "user": "u"}},
)
NO_USER = config("c", {"k": {"server": "{a}", "insecure-skip-tls-verify": True}}, {}, {"c": {"cluster": "k"}})
SPLIT_CONTEXT = config("ctx-x", {}, {}, {"ctx-x": {"cluster": "cluster-a", "user": "user-b"}})

CASES = [
    Case("home file without KUBECONFIG", {".kube/config": one("a")}, **A),
    Case("empty KUBECONFIG is the home file", {".kube/config": one("a")}, "", **A),
    Case("one file", {"a": one("a", "shop")}, "a", namespace="shop", **A),
    Case("first current-context wins", {"a": one("a", "first"), "b": one("b", "second")}, "a:b",
         namespace="first", **A),
    Case("first file without a current-context", {"a": one("a", current=False), "b": one("b", "second")},
         "a:b", namespace="second", **B),
    Case("first file missing", {"b": one("b")}, "missing:b", **B),
    Case("empty parts of the list", {"b": one("b")}, ":b:", **B),
    Case("a file named twice", {"a": one("a"), "b": one("b")}, "a:b:a", **A),
    Case("empty file first", {"a": "", "b": one("b")}, "a:b", **B),
    Case("an entry comes whole from the first file", {"a": one("a"), "b": SAME_NAMES}, "a:b", **A),
    Case("later file first", {"a": one("a"), "b": SAME_NAMES}, "b:a", namespace="second",
         cluster="cluster-a", user="user-a", server="b", token="token-b"),
    Case("a context of one file over entries of two",
         {"x": SPLIT_CONTEXT, "a": one("a"), "b": one("b")}, "x:a:b",
         cluster="cluster-a", user="user-b", server="a", token="token-b"),
    Case("--context", {"a": one("a"), "b": one("b", "second")}, "a:b", Flags(context="ctx-b"),
         namespace="second", **B),
    Case("--kubeconfig switches merging off", {"a": one("a"), "b": one("b")}, "a", Flags(kubeconfig="b"),
         **B),
    Case("--cluster", {"a": one("a"), "b": one("b")}, "a:b", Flags(cluster="cluster-b"),
         cluster="cluster-b", user="user-a", server="b", token="token-a"),
    Case("--user", {"a": one("a"), "b": one("b")}, "a:b", Flags(user="user-b"),
         cluster="cluster-a", user="user-b", server="a", token="token-b"),
    Case("--server", {"a": one("a")}, "a", Flags(server="{b}"), **{**A, "server": "b"}),
    Case("--token", {"a": one("a")}, "a", Flags(token="mine"), **{**A, "token": "mine"}),
    Case("--server without any file", {}, "missing",
         Flags(server="{b}", token="mine", insecure=True), server="b",
         token="mine"),
    Case("a context without a user", {"a": NO_USER}, "a", cluster="k", server="a",
         asks_for_a_password=True),
    Case("a token file beside its config", {"sub/a": TOKEN_FILE, "sub/the-token": "from-file\n"}, "sub/a",
         cluster="k", user="u", server="a", token="from-file"),
    Case("a token file over --token", {"a": TOKEN_FILE, "the-token": "from-file"}, "a", Flags(token="mine"),
         cluster="k", user="u", server="a", token="from-file"),
    Case("a folder of the file is not the working folder", {"sub/deep/b": one("b")}, "sub/deep/b", **B),
    Case("no credential goes over plain HTTP",
         {"a": config("c", {"k": {"server": "{plain}"}}, {"u": {"token": "secret"}},
                      {"c": {"cluster": "k", "user": "u"}})},
         "a", cluster="k", user="u", server="plain", token=""),
    Case("unknown --context", {"a": one("a")}, "a", Flags(context="nope"), fails=True),
    Case("unknown --cluster", {"a": one("a")}, "a", Flags(cluster="nope"), fails=True),
    Case("unknown --user", {"a": one("a")}, "a", Flags(user="nope"), fails=True),
    Case("current-context that does not exist", {"a": config("nope")}, "a", fails=True),
    Case("a context whose cluster does not exist", {"a": config("c", {}, {}, {"c": {"cluster": "k"}})}, "a",
         fails=True),
    Case("--kubeconfig that does not exist", {"a": one("a")}, "a", Flags(kubeconfig="nope"), fails=True),
    Case("a file that is no kubeconfig", {"a": "- 1\n- 2\n"}, "a", fails=True),
    Case("a file that is no YAML", {"a": "a: [\n"}, "a", fails=True),
    Case("nothing at all", {}, "missing", fails=True),
]  # fmt: skip
