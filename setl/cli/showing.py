"""The command that prints a channel as the cluster keeps it."""

from __future__ import annotations

import click

from setl.cli.cluster import channel_named, cluster_options, joined
from setl.cli.completion import complete_channel
from setl.cli.output import print_value


@click.command()
@click.argument("channel", shell_complete=complete_channel)
@cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    show_default=True,
    help="How to print it.",
)
def show(channel: str, zookeeper: str, root: str, output: str) -> None:
    """Print the file of CHANNEL, as the cluster keeps it.

    What is printed can be changed and given to `setl apply`. References such as ${PASSWORD} stay
    references; a password that was written into the file itself is shown as (hidden).
    """
    from setl.channel.references import without_secrets  # noqa: PLC0415

    with joined(zookeeper, root) as arbiter:
        found = channel_named(arbiter, channel)
    print_value(without_secrets(found.definition), output)
