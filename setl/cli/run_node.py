"""The command that runs a node: a process that leads pipelines which Spark loads."""

from __future__ import annotations

from pathlib import Path

import click

from setl.cli.node_process import process_options, run_process
from setl.cli.user_code import py_files_option, shipped
from setl.node.settings import NodeSettings


@click.command()
@click.option(
    "--master",
    envvar="SETL_SPARK_MASTER",
    default="local[*]",
    show_default=True,
    help="Spark master that runs Transform and Load.",
)
@click.option(
    "--spark-conf", multiple=True, metavar="NAME=VALUE", help="A Spark setting; may be repeated."
)
@py_files_option
@process_options
def node(
    settings: NodeSettings, master: str, spark_conf: tuple[str, ...], py_files: tuple[Path, ...]
) -> None:
    """Run a node.

    It stands by for every started channel, and leads what falls to it; but for pipelines to
    Kafka, which `setl relay` leads.
    """
    # Imported late: Spark takes a second that other commands need not wait.
    from setl.node.spark_engine import SparkEngine  # noqa: PLC0415
    from setl.pipeline.spark_session import SparkSettings  # noqa: PLC0415

    conf: dict[str, str] = {}
    for item in spark_conf:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--spark-conf")
        conf[name] = value
    spark = SparkSettings(master=master, conf=conf, py_files=shipped(py_files))
    run_process(settings, SparkEngine(spark))
