"""``python -m tests.bench.verifying``: how fast equal tables are compared, and what that costs.

Both servers hold the same table. It is compared by the checksums that they compute, and row by row
in Spark's tasks, as tables are whose servers write something in different ways. Only the processor
time of the two servers says much on a machine that does other things as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import click
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from setl.bulk.source_side import MappedTable
from setl.bulk.verify_target import TargetComparison, VerifySettings, plan_of
from setl.channel.file import Pipeline
from setl.run.compared_targets import mapped_targets, target_reader
from setl.run.spark.session import SparkSettings, start_session
from setl_embedded import MariaDb
from tests.bench.servers import Target, fresh_target, mysql_settings, scratch_folder, source_server
from tests.bench.watching import cpu_by_role
from tests.bench.workloads import SCHEMA, fill, loaded


class Compared(NamedTuple):
    """One comparison.

    Attributes:
        way: how.
        rows: of each side.
        seconds: it took.
        cpu: seconds of processor time of the servers, by side.
    """

    way: str
    rows: int
    seconds: float
    cpu: dict[str, float]


def pipeline_between(source: MariaDb, target: MariaDb) -> Pipeline:
    """The pipeline whose tables are compared."""
    return Pipeline.model_validate(
        {
            "name": "verify",
            "source": {"type": "mysql", **mysql_settings(source)},
            "target": {"type": "mysql", **mysql_settings(target)},
            "tables": [{"from": f"{SCHEMA}.*"}],
        }
    )


def compared(
    spark: SparkSession, source: MariaDb, target: Target, way: str, settings: VerifySettings
) -> Compared:
    """Compare the only table of both servers; it has to be equal."""
    pipeline = pipeline_between(source, target.mysql)
    ((name, sources),) = mapped_targets(pipeline).items()
    mapped = [MappedTable.build(spark, reader, route) for reader, route in sources]
    reader = target_reader(pipeline, name, mapped)
    if settings.checksums and not plan_of(mapped, reader).by_checksums:
        raise SystemExit(f"no checksums: {plan_of(mapped, reader).why}")
    roots = {"source": source.pid, "target": target.pid}
    before, began = cpu_by_role(roots), time.monotonic()
    verdict = TargetComparison(spark, mapped, reader, settings).compare_all()
    seconds, after = time.monotonic() - began, cpu_by_role(roots)
    if not verdict.equal or verdict.source_rows != verdict.target_rows:
        raise SystemExit(f"the tables are not equal: {verdict}")
    cpu = {side: after[side] - before[side] for side in roots}
    return Compared(way, verdict.source_rows, seconds, cpu)


WAYS = {
    "checksums": VerifySettings(),
    "row by row": VerifySettings(checksums=False),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table.")
@click.option("--rounds", default=3, show_default=True, help="Runs of each, in turns.")
@click.option("--source", default="mariadb", show_default=True,
              type=click.Choice(["mariadb", "mysql"]), help="Family of the source.")  # fmt: skip
@click.option("--target", default="mariadb", show_default=True,
              type=click.Choice(["mariadb", "mysql"]), help="Family of the target.")  # fmt: skip
@click.option("--master", default="local[2]", show_default=True, help="Spark master of setl.")
def main(rows: int, rounds: int, source: str, target: str, master: str) -> None:
    """Measure how fast equal tables are compared."""
    workload = loaded(rows)
    console = Console(width=None if Console().is_terminal else 120)
    spark = start_session(SparkSettings(master=master, name="setl-verifying"))
    try:
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder("verifying"))
            one = stack.enter_context(source_server(folder, source))
            with one.connect() as connection:
                fill(connection, workload)
            other = stack.enter_context(fresh_target(folder, "mysql", workload, family=target))
            turns = [
                compared(spark, one, other, way, settings)
                for _ in range(rounds)
                for way, settings in WAYS.items()
            ]
        print_compared(turns, console)
    finally:
        spark.stop()


def print_compared(turns: list[Compared], console: Console) -> None:
    """Print the comparisons."""
    table = Table("way", "rows/s", "source, µs a row", "target, µs a row",
                  "rows/s a core: source", "target", "both together")  # fmt: skip
    for turn in turns:
        there, here = turn.cpu["source"], turn.cpu["target"]
        per: Callable[[float], str] = lambda cpu, rows=turn.rows: f"{rows / max(cpu, 0.01):,.0f}"  # noqa: E731
        table.add_row(
            turn.way,
            f"{turn.rows / turn.seconds:,.0f}",
            f"{there / turn.rows * 1e6:.2f}",
            f"{here / turn.rows * 1e6:.2f}",
            per(there),
            per(here),
            per(there + here),
        )
    console.print(table)


if __name__ == "__main__":
    main()
