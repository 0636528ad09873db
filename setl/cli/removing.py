"""The command that removes a channel from the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import click

from arbiter.arbiter import Conflict
from arbiter.values import Channel, ChannelState
from setl.cli.cluster import AnswerNo, acting, channel_named, cluster_options, joined, output_option
from setl.cli.completion import complete_channel
from setl.cli.confirmation import confirm, yes_option
from setl.cli.output import console, print_value
from setl.node.stored import pipelines_of

_BY_PIPELINE = (
    "setl_checkpoint", "setl_fence", "setl_writer", "setl_deadletter", "setl_ddl", "setl_applied",
    "setl_question", "setl_conflict",
)  # fmt: skip


@click.command()
@click.argument("channel", shell_complete=complete_channel)
@yes_option
@cluster_options
@output_option
def remove(channel: str, yes: bool, zookeeper: str, root: str, output: str) -> None:
    """Remove a stopped CHANNEL from the cluster.

    The cluster forgets its definition, signals, history and positions. Targets keep their
    checkpoints: a channel of the same name would go on from there. The command prints the
    statements that remove those, and does not run them.
    """
    with joined(zookeeper, root) as arbiter:
        found = channel_named(arbiter, channel)
        if found.state is not ChannelState.STOP:
            raise AnswerNo(f"channel {channel} is not stopped: `setl stop {channel}` stops it")
        names = ", ".join(p.pipeline for p in pipelines_of(found))
        confirm(
            f"Remove channel {channel} ({names}) with its history and positions?",
            yes=yes,
        )
        try:
            with acting(arbiter, "remove", channel):
                arbiter.remove_channel(found)
        except Conflict as error:
            raise AnswerNo(f"{error}; nothing was removed") from None
    statements = left_in_targets(found)
    if output != "table":
        print_value({"channel": channel, "removed": True, "left": list(statements)}, output)
        return
    console().print(f"channel {channel} removed.")
    if statements:
        console().print(
            "Targets keep what follows. To begin anew under the same name, run this there, where"
            " a table exists:"
        )
        for statement in statements:
            console().print(f"  {statement}", markup=False, soft_wrap=True)


def left_in_targets(channel: Channel) -> Sequence[str]:
    """Statements that remove what MySQL targets keep of a channel's pipelines."""
    keys = ", ".join(f"'{pipeline}'" for pipeline in pipelines_of(channel))
    if not keys:
        return ()
    return [f"DELETE FROM retl.{table} WHERE pipeline IN ({keys});" for table in _BY_PIPELINE]
