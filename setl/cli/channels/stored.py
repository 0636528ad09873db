"""Commands about the channels that the cluster keeps: apply, show, remove."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from arbiter.requests import Refused
from arbiter.values import Channel, ChannelState
from setl.cli.access.cluster import (
    AnswerNo,
    acting,
    channel_named,
    cluster_options,
    joined,
    output_option,
)
from setl.cli.channels.starting import refuse_faults
from setl.cli.terminal.completion import complete_channel
from setl.cli.terminal.confirmation import confirm, has_terminal, yes_option
from setl.cli.terminal.output import console, print_value, to_stderr
from setl.node.stored import pipelines_into, pipelines_of
from setl.operate import removing
from setl.operate.questions import before_apply, before_remove

if TYPE_CHECKING:
    from setl.channel.file import ChannelFile
    from setl.channel.reading import ChannelDefinition


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--base",
    metavar="REVISION",
    help="Store it only if the stored file is still this one, as `setl plan` or `setl show` named"
    " it; none: if there is none.",
)
@click.option(
    "--allow-ring", is_flag=True, help="Store it even if changes would go round between channels."
)
@click.option(
    "--check/--no-check",
    "checks",
    default=True,
    help="Look at the servers first if the channel is not stopped. [default: check]",
)
@yes_option
@cluster_options
def apply(  # noqa: PLR0917 - click passes options by name
    file: Path,
    base: str | None,
    allow_ring: bool,
    checks: bool,
    yes: bool,
    zookeeper: str,
    root: str,
) -> None:
    """Store a channel FILE in the cluster.

    A new channel is stopped. A known one keeps its state: if it is not stopped, its pipelines go on
    by the new file at once, so the servers are looked at first, as by `setl start`. References such
    as ${PASSWORD} are stored as they are; each node resolves them from its own environment.

    At a terminal, what differs from the stored file is shown first, unless --base says that it is
    known. What somebody else stores meanwhile is never replaced.
    """
    from setl.channel.partitions import read_expanded  # noqa: PLC0415
    from setl.channel.reading import (  # noqa: PLC0415
        definition_warnings,
        read_channel_definition,
    )
    from setl.channel.text.references import refuse_hidden  # noqa: PLC0415
    from setl.operate import applying  # noqa: PLC0415
    from setl.operate.cluster_check import other_channels, ring_findings  # noqa: PLC0415

    read = read_channel_definition(file)
    refuse_hidden(read)
    definition, channel = read_expanded(read, os.environ)
    name = channel.channel
    hint = (
        f"`setl plan {file}` says what would change now, `setl show {name}` prints the stored file,"
        f" and `setl history --actions {name}` says who has stored it"
    )
    for problem in definition_warnings(definition):
        to_stderr(f"warning: {problem}")
    with joined(zookeeper, root) as arbiter:
        seen = applying.stored_channel(arbiter, name)
        if base is not None:
            applying.refuse_another(name, seen, base, hint)
        for finding in ring_findings(definition, other_channels(arbiter, name)):
            if finding.level == "error" and not allow_ring:
                raise AnswerNo(f"{finding.what}. {finding.hint[0]}, or say --allow-ring")
            to_stderr(f"warning: {finding.what}")
        goes_on = seen is not None and seen.state is not ChannelState.STOP
        if checks and goes_on:
            otherwise = f"`setl apply {file} --no-check` stores it"
            refuse_faults(channel, arbiter, "stored", otherwise, f"`setl check {file} -o sql`")
        if seen is not None and base is None and not yes and has_terminal():
            _confirm_changes(seen, definition, channel)
        with acting(arbiter, "apply", name) as entry:
            stored = applying.store(
                arbiter,
                name,
                definition,
                seen=seen,
                looked=goes_on or not checks,
                hint=hint,
            )
            entry.outcome = applying.stored_sentence(stored, seen)
    console().print(
        entry.outcome
        + ("" if stored.state is ChannelState.START else f"; `setl start {stored.name}` starts it")
    )


def _confirm_changes(seen: Channel, definition: ChannelDefinition, channel: ChannelFile) -> None:
    """Show what replacing the stored file would change, and ask; nothing to change, no question."""
    from setl.cli.channels.planning import print_plan  # noqa: PLC0415
    from setl.operate.planning import compared  # noqa: PLC0415

    found = compared(seen, definition, channel, os.environ)
    if found.empty:
        return
    print_plan(found, "")
    confirm(before_apply(found.channel, found.base), yes=False)


@click.command()
@click.argument("channel", shell_complete=complete_channel)
@click.option("--revision", is_flag=True, help="Print only the revision, for `setl apply --base`.")
@cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    show_default=True,
    help="How to print it.",
)
def show(channel: str, revision: bool, zookeeper: str, root: str, output: str) -> None:
    """Print the file of CHANNEL, as the cluster keeps it.

    What is printed can be changed and given to `setl apply`. References such as ${PASSWORD} stay
    references; a password that was written into the file itself is shown as (hidden). A comment in
    the first line names the revision.
    """
    with joined(zookeeper, root) as arbiter:
        found = channel_named(arbiter, channel)
    from setl.channel.text.references import without_secrets  # noqa: PLC0415
    from setl.operate.applying import revision_of  # noqa: PLC0415

    if revision:
        print(revision_of(found))
        return
    if output == "yaml":
        print(f"# revision {revision_of(found)}")
    print_value(without_secrets(found.definition), output)


@click.command()
@click.argument("channel", shell_complete=complete_channel)
@yes_option
@cluster_options
@output_option
def remove(channel: str, yes: bool, zookeeper: str, root: str, output: str) -> None:
    """Remove a stopped CHANNEL from the cluster.

    The cluster forgets its definition, signals, history and positions. MySQL targets keep their
    checkpoints: a channel of the same name would go on from there. The command prints the
    statements that remove those, and does not run them.
    """
    with joined(zookeeper, root) as arbiter:
        found = channel_named(arbiter, channel)
        why = removing.objection_to_remove(found)
        if why:
            raise AnswerNo(why)
        pipelines = pipelines_of(found)
        confirm(before_remove(channel, [ident.pipeline for ident in pipelines]), yes=yes)
        try:
            with acting(arbiter, "remove", channel):
                removing.remove(arbiter, found)
        except Refused as error:
            raise AnswerNo(str(error)) from None
    statements = removing.left_in_targets(pipelines_into(found, "mysql"))
    if output != "table":
        print_value({"channel": channel, "removed": True, "left": list(statements)}, output)
        return
    console().print(f"channel {channel} removed.")
    if statements:
        console().print(
            "Targets keep what follows. To restart under the same name, run this there, where"
            " a table exists:"
        )
        for statement in statements:
            console().print(f"  {statement}", soft_wrap=True)
