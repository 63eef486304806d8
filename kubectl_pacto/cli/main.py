# SPDX-License-Identifier: MIT
"""The plugin's front door: finds a command, runs it, turns what goes wrong into one line and a status.

Commands are imported when they are called, so that help and one command cost no other's imports.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kubectl_pacto import __version__
from kubectl_pacto.cli.terminal import tell
from kubectl_pacto.errors import PactoError
from kubectl_pacto.streams import READER_GONE, leave_quiet

if TYPE_CHECKING:
    import click

PROGRAM: Final = "kubectl pacto"
INTERRUPTED: Final = 130

# name -> (module, function, one line of help)
COMMANDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "evaluate": (
        "kubectl_pacto.cli.evaluate_cmd",
        "evaluate",
        "Evaluate Pactos in files: the status each would get in a cluster.",
    ),
    "explain": (
        "kubectl_pacto.cli.explain_cmd",
        "explain",
        "What a finding's code or a printed word means.",
    ),
    "install": (
        "kubectl_pacto.cli.install_cmd",
        "install",
        "Install the operator and, if wanted, the node agents.",
    ),
    "upgrade": (
        "kubectl_pacto.cli.upgrade_cmd",
        "upgrade",
        "Bring an installation to this version.",
    ),
    "uninstall": (
        "kubectl_pacto.cli.uninstall_cmd",
        "uninstall",
        "Remove what install made.",
    ),
    "check": (
        "kubectl_pacto.cli.check_cmd",
        "check",
        "Is everything as it must be, and if not, what to do.",
    ),
    "status": (
        "kubectl_pacto.cli.status_cmd",
        "status",
        "How it stands: operator, node agents, Pactos by verdict, findings.",
    ),
    "findings": (
        "kubectl_pacto.cli.findings_cmd",
        "findings",
        "Every finding, with its evidence.",
    ),
    "coverage": (
        "kubectl_pacto.cli.coverage_cmd",
        "coverage",
        "How much of each node and pod the kernel's view covers.",
    ),
    "report": (
        "kubectl_pacto.cli.report_cmd",
        "report",
        "Verdicts, findings, coverage and calls on one HTML page.",
    ),
    "suggest": (
        "kubectl_pacto.cli.suggest_cmd",
        "suggest",
        "Dependencies seen and not declared, as a contract patch.",
    ),
    "bundle": (
        "kubectl_pacto.cli.bundle_cmd",
        "bundle",
        "Collect what a verdict rests on into one file.",
    ),
    "version": (
        "kubectl_pacto.cli.version_cmd",
        "version",
        "Versions of plugin, cluster, operator and agents.",
    ),
    "completion": (
        "kubectl_pacto.cli.completion_cmd",
        "completion",
        "Set shell completion up.",
    ),
    "demo": (
        "kubectl_pacto.cli.demo_cmd",
        "demo",
        "Watch the kernel decide a finding on this machine (root, Linux 5.8 or later).",
    ),
}

# hint of an error -> what to do, where its message does not say it
REMEDIES: Final[Mapping[str, str]] = {
    "api": "`kubectl pacto check` tests the way to the cluster",
    "api-unreachable": "is this the right context, and its cluster up? --context chooses another",
    "api-unauthorized": "log in again, or choose another --context or --user",
    "api-forbidden": "ask for this right, or choose another --user or --as",
    "kubeconfig": "`kubectl config view` shows what is configured",
    "load-failed": "`pacto agent inspect` says what this node lacks",
    "bpf-object": "install it again: its parts are of different versions",
    "credentials": "`kubectl get namespaces` shows whether kubectl can log in",
}


def build_group() -> click.Group:
    """The command group, its commands not yet imported."""
    import click

    class LazyGroup(click.Group):
        """Imports a command when it is called, and only then."""

        def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
            return sorted(COMMANDS)

        def get_command(
            self,
            ctx: click.Context,  # noqa: ARG002 -- click's signature
            cmd_name: str,
        ) -> click.Command | None:
            if cmd_name not in COMMANDS:
                return None
            module, function, _ = COMMANDS[cmd_name]
            command = getattr(import_module(module), function)
            assert isinstance(command, click.Command)
            return command

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            near = _near(args[0])
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near}?")
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])

    @click.group(
        cls=LazyGroup,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    @click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
    @click.pass_context
    def group(ctx: click.Context) -> None:
        """Runtime conformance: what a service does on the network, against its contract."""
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())

    return group


def _near(name: str) -> str:
    """The command that a mistyped one was meant to be; empty if there is none, or if it is one."""
    if name in COMMANDS or name.startswith("-"):
        return ""
    from difflib import get_close_matches

    return "".join(get_close_matches(name, COMMANDS, n=1))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plugin; returns its exit status: 0 done, 1 failed, 2 wrong usage, 3 a gate tripped.

    Interrupted: 130. Whoever read the output has gone: 141, as kubectl ends then.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(arguments)
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()
    except PactoError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        leave_quiet()
        return READER_GONE
    except OSError as error:  # every other is an error of ours by now: this is the output's
        leave_quiet()
        tell(f"error: cannot write the output: {error.strerror or error}")
        return 1
    return status


def _run(arguments: list[str]) -> int:
    """Find the command and run it."""
    if arguments == ["--version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    if arguments[:1] == ["__complete"]:
        # not a command: click would take a `--` that is being completed for its own
        from kubectl_pacto.cli.completion_cmd import complete

        complete(arguments[1:], build_group(), {name: entry[2] for name, entry in COMMANDS.items()})
        return 0
    import click

    try:
        # not its `main`, which says something to an interrupt and ends the process at a broken pipe
        group = build_group()
        with group.make_context(PROGRAM, arguments) as context:
            result = group.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _complain(error: PactoError) -> None:
    remedy = REMEDIES.get(error.hint, "")
    said = " ".join(map(str.strip, str(error).splitlines()))
    tell(f"error: {said}" + (f" ({remedy})" if remedy else ""))
