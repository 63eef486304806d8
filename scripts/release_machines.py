# SPDX-License-Identifier: MIT
"""Where the steps of a release run: on this machine, or in a Debian root of another architecture.

Each step is the same list of programs; a machine starts them. The emulated one has a root of its own, made
once and never written: every program gets it with a throw-away layer above, in a mount namespace that ends
with the program. What is global, the kernel's table of emulators, is put back by `emulation`.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parent.parent
# the kernel's name of a machine -> Debian's, and an image's
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
BINFMT: Final = Path("/proc/sys/fs/binfmt_misc")
EMULATOR: Final = "qemu-aarch64-static"
PROGRAMS: Final = {EMULATOR: "qemu-user-static"}
# under this name mmdebstrap looks for it; under another it would copy the emulator into the root
ENTRY: Final = "qemu-aarch64"
# the head of an ELF file for aarch64, program or shared object, as Debian's qemu-aarch64.conf tells them
MAGIC_HEX: Final = "7f454c460201010000000000000000000200b700"
MASK_HEX: Final = "ffffffffffffff00fffffffffffffffffeffffff"
# what scripts/bootstrap asks of a machine that compiles, and venv
PACKAGES: Final = (
    *("python3", "python3-venv", "python3-dev", "gcc", "libc6-dev", "binutils", "pkg-config"),
    *("clang", "llvm", "libbpf-dev", "libelf-dev", "zlib1g-dev"),
)
UNREAD: Final = ("usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*", "var/cache/*", "var/log/*")
# how pip reaches its index is this machine's business
NETWORK: Final = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf"),
    "/etc/ssl/certs/ca-certificates.crt",
)
# $1: the root, $2: paths that are shared, one a line; the rest is the command
INSIDE: Final = """\
set -e
root=$1 shared=$2; shift 2
mount -t tmpfs layer /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
echo "$shared" | while read -r path; do
    target=/mnt/root$path
    if [ -d "$path" ]; then mkdir -p "$target"; else mkdir -p "${target%/*}"; : >"$target"; fi
    mount --bind "$path" "$target"
done
mount -t proc proc /mnt/root/proc
mount --rbind /sys /mnt/root/sys
mount --rbind /dev /mnt/root/dev
exec chroot /mnt/root "$@"
"""


class ReleaseError(Exception):
    """A part cannot be built here; the message says which and why."""


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """One program; its output. Raises ReleaseError with the end of what a failing one said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise ReleaseError(f"{Path(str(command[0])).name} ended with status {done.returncode}:\n{said}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Here:
    """This machine."""

    kernel_name: str = platform.machine()
    python: str = sys.executable
    # Debian's name of another architecture, for who makes images of it
    foreign: str = ""

    @property
    def architecture(self) -> str:
        """Debian's name of it, in the names of files."""
        return ARCHITECTURES.get(self.kernel_name, self.kernel_name)

    def run(self, *command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
        """One program; its output. Raises ReleaseError."""
        return run(*command, cwd=cwd, **environment)


@dataclass(frozen=True, slots=True)
class Emulated:
    """A root of another architecture, its programs run by an emulator.

    `shared` paths are the same inside; the first has room for what programs leave until the end.
    """

    root: Path
    shared: tuple[Path, ...]
    kernel_name: str = "aarch64"
    python: str = "/usr/bin/python3"

    @property
    def architecture(self) -> str:
        """Debian's name of it, in the names of files."""
        return ARCHITECTURES[self.kernel_name]

    @property
    def foreign(self) -> str:
        """The same: it is not this machine's."""
        return self.architecture

    def run(self, *command: str | Path, cwd: Path = Path("/"), **environment: str) -> str:
        """One program of the root; its output. Raises ReleaseError."""
        inside = ("env", f"--chdir={cwd}", *(f"{key}={value}" for key, value in environment.items()))
        shared = "\n".join(map(str, (*self.shared, *filter(os.path.exists, NETWORK))))
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        words = (*apart, "sh", "-c", INSIDE, "sh", self.root, shared, *inside, *command)
        try:
            return run(*words, TMPDIR=str(self.shared[0]), PIP_CACHE_DIR=str(self.shared[0] / "pip-cache"))
        except ReleaseError as error:
            text = str(error).replace("unshare ended", f"{self.architecture}: {command[0]} ended", 1)
            raise ReleaseError(text) from error


Machine: TypeAlias = Here | Emulated


def lacking() -> str:
    """What keeps this machine from running programs of arm64, with the remedy; nothing where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "is emulated on amd64 machines with Linux alone"
    if os.geteuid() != 0:
        return "is built in a root of its own, which needs root (sudo)"
    # mmdebstrap asks arch-test, which Debian only recommends with it
    for program in (EMULATOR, "mmdebstrap", "arch-test"):
        if shutil.which(program) is None:
            return f"needs {program} (apt-get install {PROGRAMS.get(program, program)})"
    if "binfmt_misc" not in Path("/proc/filesystems").read_text(encoding="ascii") and not BINFMT.is_dir():
        return "needs a kernel that starts programs by an emulator (modprobe binfmt_misc)"
    return ""


def is_registered(binfmt: Path) -> bool:
    """Whether programs of arm64 are handed to an emulator, also in roots that have none (flag F)."""
    wanted = (f"magic {MAGIC_HEX}", f"mask {MASK_HEX}")
    for entry in binfmt.glob("*"):
        if entry.name not in ("register", "status"):
            lines = entry.read_text(encoding="ascii", errors="replace").splitlines()
            flags = "".join(line.partition(":")[2] for line in lines if line.startswith("flags:"))
            if lines[:1] == ["enabled"] and "F" in flags and all(one in lines for one in wanted):
                return True
    return False


def registration(interpreter: str) -> str:
    """What the kernel reads from `register`: magic and mask, and F to open the emulator now."""
    magic, mask = (re.sub("(..)", r"\\x\1", text) for text in (MAGIC_HEX, MASK_HEX))
    return f":{ENTRY}:M::{magic}:{mask}:{interpreter}:F"


@contextmanager
def emulation(lock: Path) -> Iterator[None]:
    """Programs of arm64 run on this machine; what this registered and mounted, it takes back."""
    with lock.open("w") as one_at_a_time, ExitStack() as undo:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not (BINFMT / "register").exists():
            run("mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT)
            undo.callback(run, "umount", BINFMT)
        if not is_registered(BINFMT):
            if (BINFMT / ENTRY).exists():
                raise ReleaseError(
                    f"arm64: {BINFMT / ENTRY} is off, or opens no emulator for roots (flag F): remove it "
                    f"(echo -1 > {BINFMT / ENTRY}) and run this again"
                )
            (BINFMT / "register").write_text(registration(str(shutil.which(EMULATOR))), encoding="ascii")
            undo.callback((BINFMT / ENTRY).write_text, "-1")
        yield
