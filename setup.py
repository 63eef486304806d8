# SPDX-License-Identifier: MIT
"""The native build only: Cython extensions, libbpf through cffi, the BPF object.

Everything else is in pyproject.toml. Off Linux, or with PACTO_PURE=1, nothing native is built and
the distribution is the pure plugin.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.errors import ExecError

NATIVE = sys.platform == "linux" and os.environ.get("PACTO_PURE") != "1"
BPF_SOURCES = ["bpf/flow.bpf.c", "bpf/flow.h", "bpf/iter.bpf.c", "bpf/iter.h", "bpf/kernel.h"]
BPF_PROGRAMS = ["flow", "iter"]
BPF_ARCHITECTURES = {"x86_64": "x86", "aarch64": "arm64"}
# One build for this Python and all later ones. The buffer protocol, which the readers take bytes by, is part
# of the stable ABI since 3.11; a Python without the GIL has no stable ABI.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
C_FLAGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-O2", "-fno-strict-aliasing"]
# Python's own flags ask for debugging information: two thirds of a wheel, of which no one reads a byte
LINK_FLAGS = ["-Wl,--strip-debug"]


def extension(name: str, *c_sources: str) -> Extension:
    """One Cython module over its C kernel."""
    return Extension(
        f"pacto_native.{name}",
        [f"ext/pacto_native/{name}.pyx", *(f"ext/src/{source}" for source in c_sources)],
        include_dirs=["bpf", "ext/src"],
        depends=["bpf/flow.h", "ext/pacto_native/flow.pxd", *map(str, sorted(Path("ext/src").glob("*.h")))],
        extra_compile_args=C_FLAGS,
        extra_link_args=LINK_FLAGS,
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
        py_limited_api=STABLE,
    )


def extensions() -> list[Extension]:
    """The Cython modules; their C goes to build/, never beside the sources."""
    from Cython.Build import cythonize

    modules = [
        extension("ring", "flow_passes.c", "flow_reader.c"),
        extension("procnet", "proc_net.c"),
        extension("procfs", "proc_scan.c"),
    ]
    options = {"build_dir": "build/cython", "include_path": ["ext"], "language_level": 3}
    return list(cythonize(modules, **options))  # type: ignore[no-untyped-call]


class BuildBpf(Command):
    """Compiles the BPF programs and strips them, as package data of pacto_agent."""

    description = "compile the BPF program"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []
    editable_mode: bool = False

    def initialize_options(self) -> None:
        """As setuptools wants it."""
        self.build_lib: str | None = None

    def finalize_options(self) -> None:
        """As setuptools wants it."""
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def outputs(self) -> dict[str, Path]:
        """Where each program's object goes: beside the sources when editable."""
        root = Path("agent") if self.editable_mode else Path(str(self.build_lib))
        return {name: root / "pacto_agent" / f"{name}.bpf.o" for name in BPF_PROGRAMS}

    def run(self) -> None:
        """Compile and strip; says which program is missing."""
        target = BPF_ARCHITECTURES.get(platform.machine())
        if target is None:
            raise ExecError(
                f"no BPF target for {platform.machine()}; PACTO_PURE=1 builds without native parts"
            )
        for program, package in (("clang", "clang"), ("llvm-strip", "llvm")):
            if shutil.which(program) is None:
                raise ExecError(f"{program} is missing: apt-get install {package}, or PACTO_PURE=1")
        flags = ["-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-mcpu=v2"]
        defines = [f"-D__TARGET_ARCH_{target}", "-Ibpf", f"-fdebug-prefix-map={Path.cwd()}=."]
        for name, output in self.outputs().items():
            output.parent.mkdir(parents=True, exist_ok=True)
            command = [
                "clang",
                "-target",
                "bpf",
                *flags,
                *defines,
                "-c",
                f"bpf/{name}.bpf.c",
                "-o",
                str(output),
            ]
            subprocess.run(command, check=True)
            subprocess.run(["llvm-strip", "-g", str(output)], check=True)

    def get_source_files(self) -> list[str]:
        """For the sdist."""
        return BPF_SOURCES

    def get_outputs(self) -> list[str]:
        """For the wheel."""
        return [str(output) for output in self.outputs().values()]

    def get_output_mapping(self) -> dict[str, str]:
        """None of the outputs is a copy of a source."""
        return {}


class Build(build):
    """The usual build, and the BPF object with it."""

    sub_commands: ClassVar = [*build.sub_commands, ("build_bpf", None)]


if NATIVE:
    setup(
        ext_modules=extensions(),
        cffi_modules=["ext/pacto_native/build_libbpf.py:ffibuilder"],
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
        cmdclass={"build": Build, "build_bpf": BuildBpf},
    )
else:
    setup()
