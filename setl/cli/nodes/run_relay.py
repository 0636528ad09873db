"""The command that runs a relay: a process that leads pipelines to Kafka."""

from __future__ import annotations

import click

from setl import garbage_collection
from setl.cli.nodes.process import process_options, run_process
from setl.node.settings import NodeSettings


@click.command()
@process_options
def relay(settings: NodeSettings) -> None:
    """Run a relay.

    A relay is a node without Spark. It stands by for the pipelines that write to Kafka (`type:
    dts`) and leads those it wins.
    """
    # Imported late: what it needs takes time that other commands need not wait.
    with garbage_collection.paused():
        from setl.node.engines.engine import RelayEngine  # noqa: PLC0415

    run_process(settings, RelayEngine())
