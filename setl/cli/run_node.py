"""The command that runs a node: a process that leads pipelines which Spark loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from setl.cli.node_process import process_options, run_process
from setl.cli.spark_options import spark_options
from setl.node.settings import NodeSettings

if TYPE_CHECKING:
    from setl.run.spark_session import SparkSettings


@click.command()
@spark_options
@process_options
def node(settings: NodeSettings, spark: Callable[[str], SparkSettings]) -> None:
    """Run a node.

    The node stands by for every started channel and leads the pipelines it wins. Pipelines to
    Kafka are led by `setl relay`.
    """
    # Imported late: Spark takes a second that other commands need not wait.
    from setl.node.spark_engine import SparkEngine  # noqa: PLC0415

    run_process(settings, SparkEngine(spark("setl")))
