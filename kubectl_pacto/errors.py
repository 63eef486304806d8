# SPDX-License-Identifier: MIT
"""The one exception tree. A leaf's docstring is its message template; fields say the rest.

`exit_code` follows the plugin's exit statuses (1 failed, 2 wrong usage, 3 a gate tripped), `hint`
names the remedy where the message does not say it (`REMEDIES` of the plugin's front door). No decision is
made on message text.
"""

from __future__ import annotations

from typing import ClassVar


class PactoError(Exception):
    """{message}"""

    exit_code: ClassVar[int] = 1
    hint: ClassVar[str] = ""

    def __init__(self, message: str = "", **facts: object) -> None:
        self.facts = {"message": message, **facts}
        super().__init__(template_of(type(self)).format_map(self.facts))


class UsageError(PactoError):
    """{message}"""

    exit_code = 2


class InputError(PactoError):
    """{file}: {where}: {problem}"""


class UnreadableInput(InputError):
    """{file}: {problem}"""


class MissingNativeParts(PactoError):
    """This installation has no native parts ({missing}): install the Linux wheel or build from
    source with clang and libbpf-dev."""


class AgentError(PactoError):
    """{message}"""


class LoadFailed(AgentError):
    """{problem}"""

    hint = "load-failed"


class KernelWithoutBTF(LoadFailed):
    """No type information (BTF) at {path}: the node agent cannot load on this kernel. Use a kernel
    built with CONFIG_DEBUG_INFO_BTF=y, as current distributions ship it."""

    hint = ""


class ObjectRejected(LoadFailed):
    """{path}: not the BPF object this agent was built with: {problem}"""

    hint = "bpf-object"


class AttachFailed(AgentError):
    """Cannot attach to the tracepoint inet_sock_set_state: {problem}"""

    hint = "load-failed"


class RingBufferFailed(AgentError):
    """Cannot read the ring buffer: {problem}"""

    hint = "load-failed"


class ResyncFailed(AgentError):
    """The baseline could not be read: {problem}"""

    hint = "load-failed"


class SinkFailed(AgentError):
    """{sink}: {problem}"""


class MalformedObject(PactoError):
    """{where}: {problem}"""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where=where, problem=problem)
        self.where = where
        self.problem = problem


class DemoImpossible(PactoError):
    """The demo cannot run here:
    {problems}"""


class DemoFailed(PactoError):
    """The demo could not go on: {problem}"""


def template_of(kind: type[PactoError]) -> str:
    """The message template: its docstring without indentation; inspect.cleandoc would load 1 MiB for it."""
    return "\n".join(line.strip() for line in (kind.__doc__ or "{message}").strip().splitlines())
