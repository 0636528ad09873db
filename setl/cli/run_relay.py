"""The command that runs a relay: a process that leads pipelines to Kafka."""

from __future__ import annotations

import click

from setl.cli.node_process import process_options, run_process
from setl.node.settings import NodeSettings


@click.command()
@process_options
def relay(settings: NodeSettings) -> None:
    """Run a relay.

    It is a node without Spark: it stands by for the pipelines of started channels that write to
    Kafka (`type: dts`), and leads what falls to it.
    """
    # Imported late: what it needs takes time that other commands need not wait.
    from setl.node.relay_engine import RelayEngine  # noqa: PLC0415

    run_process(settings, RelayEngine())
