"""The command that runs a node: a process that leads pipelines which Spark loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from setl import garbage_collection
from setl.cli.access.spark_options import spark_options
from setl.cli.nodes.process import process_options, run_process
from setl.node.settings import NodeSettings

if TYPE_CHECKING:
    from setl.run.spark.session import SparkSettings


@click.command()
@click.option(
    "--traces/--no-traces",
    default=False,
    envvar="SETL_TRACES",
    show_default=True,
    help="Send a trace of each batch by OpenTelemetry, to OTEL_EXPORTER_OTLP_ENDPOINT.",
)
@spark_options
@process_options
def node(settings: NodeSettings, spark: Callable[[str], SparkSettings], *, traces: bool) -> None:
    """Run a node.

    The node stands by for every started channel and leads the pipelines it wins. Pipelines to
    Kafka are led by `setl relay`.
    """
    # Imported late: Spark takes a second that other commands need not wait.
    with garbage_collection.paused():
        from setl.node.engines.spark import SparkEngine  # noqa: PLC0415

    tracer = None
    if traces:
        from setl.run.tracing.choice import tracer_of  # noqa: PLC0415

        tracer = tracer_of(settings.nid)
    session = spark("setl")
    settings = replace(settings, spark_folders=session.conf.get("spark.local.dir", ""))
    run_process(settings, SparkEngine(session, tracer))
