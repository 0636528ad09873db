"""The `setl` command: puts the subcommands together and turns errors into exit codes.

Exit codes: 0 done; 1 the answer is no, or what was asked was refused or is not done; 2 wrong
usage or configuration; 3 the cluster or a server could not be reached; 4 any other failure.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from arbiter.errors import ArbiterError, Invalid, NotFound, Unreachable
from arbiter.requests import Refused
from setl import __version__
from setl.cli.access.cluster import AnswerNo, Connect
from setl.cli.catalogue import SECTIONS, entries
from setl.cli.plugins import ExtensibleGroup
from setl.cli.terminal.interruption import EXIT_INTERRUPTED, end_at_interrupt
from setl.cli.terminal.output import take_any_letter, to_stderr
from setl.errors import ConfigurationError, SetlError, TransientError
from setl.log import configure_command, fields, is_json

_log = logging.getLogger(__name__)

EXIT_NO = 1
EXIT_CONFIGURATION = 2
EXIT_UNREACHABLE = 3
EXIT_FAILURE = 4


class _Commands(ExtensibleGroup):
    """The subcommands, by what they are for."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._entries = {entry.name: entry for entry in entries()}

    def own_names(self) -> Iterable[str]:
        """See `ExtensibleGroup.own_names`."""
        return self._entries

    def own_command(self, name: str) -> click.Command | None:
        """See `ExtensibleGroup.own_command`; imports it."""
        entry = self._entries.get(name)
        return entry.load() if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group of commands."""
        further = [
            (name, command)
            for name in self.list_commands(ctx)
            if name not in self._entries and (command := self.get_command(ctx, name))
        ]
        width = max(len(name) for name in (*self._entries, *(name for name, _ in further)))
        limit = formatter.width - 6 - width
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(entry.name.ljust(width), entry.short) for entry in section])
        if further:
            with formatter.section("More"):
                formatter.write_dl(
                    [(name.ljust(width), each.get_short_help_str(limit)) for name, each in further]
                )


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="setl")
def cli() -> None:
    """Keep databases in step. A PIPELINE is channel/pipeline, or one if clear."""


def run(arguments: Sequence[str] | None = None, connect: Connect | None = None) -> int:
    """Run the command and return its exit status; errors go to standard error.

    Args:
        arguments: what follows ``setl``; None for those of this process.
        connect: how to reach the cluster, None for ZooKeeper.
    """
    take_any_letter()
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
        return EXIT_INTERRUPTED
    except (SetlError, ArbiterError) as error:
        status = _exit_status(error)
        if is_json():
            # Who reads the log of a process as JSON reads its last line so, too.
            _log.critical("ended by an error", extra=fields(error=str(error), status=status))
        else:
            to_stderr(f"Error: {error}")
        return status
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
    """Run the command of this process; `setl.cli.entry` is the entry point of the script."""
    configure_command()
    if _ends_at_interrupt(sys.argv[1:]):
        end_at_interrupt()
    else:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = run()
    if status == EXIT_INTERRUPTED:
        # Python would wait for threads that wait for servers.
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)


def _ends_at_interrupt(arguments: Sequence[str]) -> bool:
    """Whether Ctrl-C ends this command at once; some have to put things in order first."""
    name = next((word for word in arguments if not word.startswith("-")), "")
    return any(entry.name == name and not entry.tidies_up for entry in entries())
