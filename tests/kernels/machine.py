# SPDX-License-Identifier: MIT
"""One command under one kernel in an emulator: output and exit status come back.

The root is a disk that is thrown away after the run; the kernel's own messages go to a console of
their own, so that the command's output is what the command wrote.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster.deps import missing_text
from tests.cluster.layout import ClusterError, cache
from tests.images.base import locked
from tests.kernels.debian import Kernel, kernel

# the kernel's messages, and the command's output; an emulated arm64 board has one serial line of its own
CONSOLES: Final = {"amd64": ("ttyS0", "ttyS1"), "arm64": ("ttyAMA0", "ttyS0")}
EMULATORS: Final = {"amd64": ("qemu-system-x86_64",), "arm64": ("qemu-system-aarch64", "-machine", "virt")}
CPUS: Final = {"amd64": "max", "arm64": "cortex-a72"}
OUTPUTS: Final = {
    "amd64": ("-serial", "stdio"),
    "arm64": ("-chardev", "stdio,id=output", "-device", "pci-serial,chardev=output"),
}
STATUS: Final = re.compile(r"^kernels: exit (\d+)\s*$", re.MULTILINE)
NO_BTF: Final = "initcall_blacklist=btf_vmlinux_init"
SPARE_MIB: Final = 512
TAIL: Final = 2000
# First in memory, with the modules that reach the disk; then with the disk as root.
FIRST: Final = """\
#!/busybox sh
/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do /busybox insmod "$module" || echo "kernels: insmod $module failed"; done
/busybox mount -t ext4 /dev/vda /root || echo "kernels: no root"
/busybox mount -t tmpfs run /root/run
/busybox cp -a /busybox /second /added /root/run/
exec /busybox switch_root /root /run/second
"""
SECOND: Final = """\
#!/run/busybox sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
b=/run/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev; $b mkdir -p /dev/shm /dev/pts
$b mount -t tmpfs shm /dev/shm; $b mount -t devpts pts /dev/pts; $b mount -t tmpfs tmp /tmp
$b mount -t cgroup2 cgroup2 /sys/fs/cgroup
$b mount -t securityfs securityfs /sys/kernel/security
$b ip link set lo up
$b cp -a /run/added/. /
$b stty -F /dev/{output} raw
cd {cwd}
{environment}{command} </dev/null >/dev/{output} 2>&1
echo "kernels: exit $?"
$b sleep 0.2
echo o > /proc/sysrq-trigger
$b sleep 60
"""


@dataclass(frozen=True)
class Machine:
    """What to boot: a suite's kernel over a root directory, with switches."""

    suite: str
    root: Path
    btf: bool = True
    lockdown: str = ""
    memory_mib: int = 2048
    timeout: int = 600
    add: Mapping[str, Path] = field(default_factory=dict)
    cwd: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"

    def kernel_arguments(self) -> str:
        """The kernel's command line."""
        words = [f"console={CONSOLES[self.architecture][0]}", "quiet", "panic=1"]
        if not self.btf:
            words.append(NO_BTF)
        if self.lockdown:
            words += [f"lockdown={self.lockdown}", "lsm=lockdown"]
        return " ".join(words)


@dataclass(frozen=True)
class Result:
    """How a run ended; the console is for a person who asks why."""

    status: int
    output: str
    console: str
    seconds: float


def missing(architecture: str = "amd64") -> str:
    """Why no kernel of this architecture can run here; empty when it can."""
    more = () if architecture == "amd64" else (f"kernels-{architecture}",)
    return missing_text("kernels", "images", *more)


def run(machine: Machine, command: Sequence[str], *, echo: bool = False) -> Result:
    """Boot, run the command, power off. With echo the output also goes to stdout as it comes."""
    if absent := missing(machine.architecture):
        raise ClusterError(absent)
    booted, begin = kernel(machine.suite, machine.architecture), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        disk = root_disk(machine.root, work)
        initramfs = write_initramfs(machine, booted, command, work)
        console = work / "console"
        emulator = qemu(machine, booted, disk, initramfs, console)
        output = watch(emulator, machine.timeout, echo)
        said = console.read_text(errors="replace") if console.exists() else ""
    found, seconds = STATUS.search(said), time.monotonic() - begin
    if found is None:
        raise ClusterError(
            f"{machine.suite}: no status after {seconds:.0f} s (limit {machine.timeout} s)\n"
            f"{output[-TAIL:]}\nconsole:\n{said[-TAIL:]}"
        )
    return Result(int(found[1]), output, said, seconds)


def watch(command: Sequence[str], timeout: int, echo: bool) -> str:
    """The emulator's second console until it powers off or its time is over.

    It never outlives this program: the kernel kills it when its parent ends, however that ends.
    """
    output = []
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as emulator:
        assert emulator.stdout is not None
        timer = threading.Timer(timeout, emulator.kill)
        timer.start()
        try:
            for line in emulator.stdout:
                output.append(line)
                if echo:
                    sys.stdout.write(line)
                    sys.stdout.flush()
        finally:
            timer.cancel()
            emulator.kill()
    return "".join(output)


def root_disk(root: Path, work: Path) -> Path:
    """An ext4 image of the root directory; one of our own cached roots never changes, so its image stays."""
    if not root.is_dir():
        raise ClusterError(f"no directory {root}")
    if not root.resolve().is_relative_to(cache().resolve()):
        return write_disk(root, work / "disk")
    path = root.with_name(f"{root.name}.ext4")
    with locked(path):
        if not path.exists():
            write_disk(root, path.with_name(f"{path.name}.part")).rename(path)
    return path


def write_disk(root: Path, path: Path) -> Path:
    """Make the image; sparse, so the spare room costs nothing."""
    used = subprocess.run(
        ["du", "-sxm", str(root)], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    size = int(used) * 5 // 4 + SPARE_MIB
    path.unlink(missing_ok=True)
    command = [
        "mke2fs",
        "-q",
        "-t",
        "ext4",
        "-O",
        "^has_journal",
        "-m",
        "0",
        "-d",
        str(root),
        str(path),
        f"{size}M",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"mke2fs: {done.stderr.strip()}")
    return path


def write_initramfs(machine: Machine, booted: Kernel, command: Sequence[str], work: Path) -> Path:
    """Busybox, the modules, the two init scripts, and what the caller adds to the root."""
    tree = work / "tree"
    for name in ("modules", "dev", "root", "added"):
        (tree / name).mkdir(parents=True)
    shutil.copy(booted.busybox, tree / "busybox")
    for module in booted.modules():
        shutil.copy(module, tree / "modules")
    for target, source in machine.add.items():
        place = tree / "added" / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", str(source), str(place)], check=True)
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in machine.environment.items())
    second = SECOND.format(
        cwd=shlex.quote(machine.cwd),
        environment=exports,
        command=shlex.join(command),
        output=CONSOLES[machine.architecture][1],
    )
    for name, text in (("init", FIRST), ("second", second)):
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
    path = work / "initramfs"
    with path.open("wb") as target_file:
        names = "\n".join(str(path.relative_to(tree)) for path in tree.rglob("*"))
        archive = ["cpio", "--quiet", "-o", "-H", "newc"]
        subprocess.run(archive, cwd=tree, input=names.encode(), stdout=target_file, check=True)
    return path


def qemu(machine: Machine, booted: Kernel, disk: Path, initramfs: Path, console: Path) -> list[str]:
    """The emulator's command line.

    Software emulation unless asked: a machine that is itself virtual may offer /dev/kvm and then
    stop a guest at an instruction it cannot emulate (seen with cmpxchg16b in 5.10 on 6.18).
    """
    accelerator = ["-accel", "kvm", "-cpu", "host"] if os.environ.get("PACTO_KVM") == "1" else []
    return [
        *EMULATORS[machine.architecture],
        *(accelerator or ["-accel", "tcg,thread=multi", "-cpu", CPUS[machine.architecture]]),
        *("-smp", "2", "-m", str(machine.memory_mib)),
        *("-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot"),
        *("-serial", f"file:{console}", *OUTPUTS[machine.architecture]),
        *("-drive", f"file={disk},format=raw,if=virtio,snapshot=on"),
        *("-kernel", str(booted.image), "-initrd", str(initramfs), "-append", machine.kernel_arguments()),
    ]
