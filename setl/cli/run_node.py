"""The command that runs a node."""

from __future__ import annotations

import os
import signal

import click

from setl.cli.cluster import cluster_options
from setl.cli.zookeeper_access import zookeeper_access
from setl.log import configure
from setl.node.settings import NodeSettings, default_nid
from setl.pipeline.spark_session import SparkSettings


@click.command()
@click.option("--id", "nid", envvar="SETL_NODE_ID", default=default_nid, help="This node's id.")
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
@click.option(
    "--session-timeout",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds of silence after which this node counts as dead.",
)
@click.option(
    "--http",
    envvar="SETL_HTTP",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to serve status and metrics; port 0 takes any free one.",
)
@click.option("--log-json", is_flag=True, help="Log one JSON object a line.")
@click.option("--log-level", default="INFO", show_default=True, help="Least level that is logged.")
@cluster_options
def node(  # noqa: PLR0917 - click passes options by name
    nid: str,
    master: str,
    spark_conf: tuple[str, ...],
    session_timeout: float,
    http: str,
    log_json: bool,
    log_level: str,
    zookeeper: str,
    root: str,
) -> None:
    """Run a node.

    It stands by for every started channel, and leads what falls to it.
    """
    # Imported late: Spark and the servers' clients take a second that other commands need not wait.
    from setl.node.process import NodeProcess  # noqa: PLC0415

    configure(level=log_level.upper(), as_json=log_json)
    conf: dict[str, str] = {}
    for item in spark_conf:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--spark-conf")
        conf[name] = value
    host, _, port = http.rpartition(":")
    if not port.isdigit():
        raise click.BadParameter(f"{http!r} is not HOST:PORT", param_hint="--http")
    process = NodeProcess(
        NodeSettings(
            nid=nid,
            zookeeper=zookeeper,
            root=root,
            access=zookeeper_access(os.environ),
            session_timeout=session_timeout,
            http_host=host or "127.0.0.1",
            http_port=int(port),
            spark=SparkSettings(master=master, conf=conf),
            environment=dict(os.environ),
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: process.stop())
    process.run()
