# SPDX-License-Identifier: MIT
"""The one binary with every Kubernetes program, compiled from Go modules and cached by its inputs."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.cluster.layout import DEFAULT_VERSION, ClusterError, cache

MODULE: Final = Path(__file__).parent / "module"
STAMP: Final = "k8s.io/component-base/version"
MODULE_PATH: Final = "github.com/trianalab/kubectl-pacto/tests/cluster/module"


def mod_file(version: str) -> Path:
    """The default version has go.mod; the others a file beside it that `go -modfile` takes."""
    if version == DEFAULT_VERSION:
        return MODULE / "go.mod"
    return MODULE / f"go-{version.rpartition('.')[0]}.mod"


def flags(version: str) -> list[str]:
    """What `go build` is given, beside where the result goes."""
    minor = version.split(".")[1]
    stamps = {"gitVersion": f"v{version}", "gitMajor": "1", "gitMinor": minor}
    linker = " ".join(["-s", "-w", *(f"-X {STAMP}.{key}={value}" for key, value in stamps.items())])
    return [
        f"-tags=kubernetes_1_{minor}",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags",
        linker,
        "-modfile",
        str(mod_file(version)),
    ]


def go(*arguments: str) -> str:
    """Run the Go command in the module."""
    # a lazy collector makes the compiler a tenth faster and costs memory that is free then
    environment = os.environ | {"CGO_ENABLED": "0", "GOGC": os.environ.get("GOGC", "400"), "GOWORK": "off"}
    try:
        done = subprocess.run(
            ["go", *arguments], cwd=MODULE, env=environment, check=True, text=True, stdout=subprocess.PIPE
        )
    except FileNotFoundError as error:
        raise ClusterError(
            "go is not on PATH: the Kubernetes programs are compiled from Go modules"
        ) from error
    except subprocess.CalledProcessError as error:
        raise ClusterError(f"go {arguments[0]} failed with status {error.returncode}") from error
    return done.stdout.strip()


def key(version: str) -> str:
    """The hash of everything that decides what the binary is."""
    digest = hashlib.sha256()
    names = [*flags(version)[:-1], go("env", "GOVERSION"), go("env", "GOARCH")]
    digest.update("\0".join(names).encode())
    path = mod_file(version)
    for source in (*sorted(MODULE.glob("*.go")), path, path.with_suffix(".sum")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def binary(version: str) -> Path:
    """Where the binary of this version is, or will be."""
    return cache() / "kubernetes" / f"{version}-{key(version)}"


def build(version: str) -> Path:
    """The binary, compiled unless it is cached. Two builds at once wait for each other."""
    path = binary(version)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            print(f"compiling Kubernetes {version}: some minutes, once", flush=True)
            begin = time.monotonic()
            unfinished = path.with_name(f"{path.name}.part")
            go("build", *flags(version), "-o", str(unfinished), ".")
            unfinished.rename(path)
            print(f"compiled Kubernetes {version} in {time.monotonic() - begin:.0f} s", flush=True)
    return path


def write_module(version: str) -> Path:
    """Make the module file of a version anew: a developer's step when a version is added or raised.

    k8s.io/kubernetes points its staging modules into its own tree, which a module that depends on
    it must undo: Kubernetes publishes each of them as v0.MINOR.PATCH.
    """
    found = json.loads(go("mod", "download", "-json", f"k8s.io/kubernetes@v{version}"))
    upstream = Path(found["GoMod"]).read_text()
    staging = sorted(set(re.findall(r"(k8s\.io/[a-z0-9-]+) => \./staging", upstream)))
    language = re.search(r"^go (\S+)", upstream, re.MULTILINE)
    if language is None or not staging:
        raise ClusterError(f"k8s.io/kubernetes {version}: its go.mod has another form than expected")
    replaced = "".join(f"\t{name} => {name} v0.{version.removeprefix('1.')}\n" for name in staging)
    path = mod_file(version)
    path.write_text(
        f"module {MODULE_PATH}\n\ngo {language[1]}\n\nrequire k8s.io/kubernetes v{version}\n\n"
        "// Kubernetes publishes its staging modules as v0.MINOR.PATCH; its go.mod points into its tree.\n"
        f"replace (\n{replaced})\n"
    )
    path.with_suffix(".sum").unlink(missing_ok=True)
    go("mod", "tidy", "-modfile", str(path))
    return path
