"""The `setl` command: puts the subcommands together and turns errors into exit codes.

Exit codes: 0 done; 1 the answer is no, or what was asked was refused or is not done; 2 wrong
usage or configuration; 3 the cluster or a server could not be reached; 4 any other failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from arbiter.arbiter import ArbiterError, Invalid, NotFound, Unreachable
from arbiter.requests import Refused
from setl import __version__
from setl.cli.channels import apply, check
from setl.cli.cluster import AnswerNo, Connect
from setl.cli.conflicts import conflicts
from setl.cli.cutting_over import cutover
from setl.cli.deadletter import deadletter
from setl.cli.epochs import epoch
from setl.cli.handing_over import failover, switchover
from setl.cli.loading import load, resend
from setl.cli.peeking import peek
from setl.cli.planning import plan
from setl.cli.plugins import ExtensibleGroup
from setl.cli.positions import position
from setl.cli.removing import remove
from setl.cli.run_node import node
from setl.cli.run_relay import relay
from setl.cli.signals import signal
from setl.cli.states import pause, resume, start, stop
from setl.cli.verifying import verify
from setl.cli.views import history, list_, status, topology
from setl.cli.waiting import wait
from setl.errors import ConfigurationError, SetlError, TransientError

EXIT_NO = 1
EXIT_CONFIGURATION = 2
EXIT_UNREACHABLE = 3
EXIT_FAILURE = 4
_EXIT_INTERRUPTED = 130

_SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Run": (node, relay, check, plan, apply, epoch),
    "Look": (list_, topology, status, history, peek, verify, wait, conflicts),
    "Channels": (start, pause, resume, stop, remove),
    "Pipelines": (switchover, failover, cutover, signal, position, deadletter, load, resend),
}


class _Commands(ExtensibleGroup):
    """The subcommands, by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group of commands."""
        own = {command for commands in _SECTIONS.values() for command in commands}
        found = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        further = tuple(command for command in found if command and command not in own)
        width = max(len(str(command.name)) for command in (*own, *further))
        limit = formatter.width - 6 - width
        sections = {**_SECTIONS, "More": further} if further else _SECTIONS
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(str(c.name).ljust(width), c.get_short_help_str(limit)) for c in commands]
                )


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="setl")
def cli() -> None:
    """Keep databases in step. A PIPELINE is channel/pipeline, or one if clear."""


for _commands in _SECTIONS.values():
    for _command in _commands:
        cli.add_command(_command)


def run(arguments: Sequence[str] | None = None, connect: Connect | None = None) -> int:
    """Run the command and return its exit status; errors go to standard error.

    Args:
        arguments: what follows ``setl``; None for those of this process.
        connect: how to reach the cluster, None for ZooKeeper.
    """
    try:
        ended = cli.main(
            args=None if arguments is None else list(arguments),
            prog_name="setl",
            standalone_mode=False,
            obj=connect,
        )
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else EXIT_FAILURE
    except click.ClickException as error:
        error.show()
        return EXIT_NO if isinstance(error, AnswerNo) else EXIT_CONFIGURATION
    except click.Abort:
        return _EXIT_INTERRUPTED
    except (SetlError, ArbiterError) as error:
        click.echo(f"Error: {error}", err=True)
        return _exit_status(error)
    return ended if isinstance(ended, int) else 0


def _exit_status(error: SetlError | ArbiterError) -> int:
    if isinstance(error, Refused):
        return EXIT_NO
    if isinstance(error, Unreachable | TransientError):
        return EXIT_UNREACHABLE
    if isinstance(error, ConfigurationError | Invalid | NotFound):
        return EXIT_CONFIGURATION
    return EXIT_FAILURE


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())
