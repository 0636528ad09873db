"""The command that removes a channel from the cluster."""

from __future__ import annotations

import click

from arbiter.requests import Refused
from setl.cli.cluster import AnswerNo, acting, channel_named, cluster_options, joined, output_option
from setl.cli.completion import complete_channel
from setl.cli.confirmation import confirm, yes_option
from setl.cli.output import console, print_value
from setl.node.stored import pipelines_into, pipelines_of
from setl.operate import removing
from setl.operate.questions import before_remove


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
            "Targets keep what follows. To begin anew under the same name, run this there, where"
            " a table exists:"
        )
        for statement in statements:
            console().print(f"  {statement}", markup=False, soft_wrap=True)
