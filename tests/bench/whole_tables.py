"""``python -m tests.bench.whole_tables``: whole tables, loaded and compared.

``load``: setl beside what people load tables with. Each loads the same rows into an empty table of
a server of its own, in turns. Of setl the time runs from the begin of the leader's load until the
checkpoint says that the target has all rows; it goes on applying the stream all the while. Only the
ratios mean much. It also measures how soon changes are seen in the target while tables are loaded,
and how long many small tables take.

``verify``: how fast equal tables are compared, and what that costs. Both servers hold the same
table. It is compared by the checksums that they compute, and row by row in Spark's tasks, as tables
are whose servers write something in different ways. Only the processor time of the two servers says
much on a machine that does other things as well.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click
from pyspark.sql import SparkSession

from setl.bulk.source_side import MappedTable
from setl.bulk.verify_target import TargetComparison, VerifySettings, plan_of
from setl.channel.file import Pipeline
from setl.run.spark.session import SparkSettings, start_session
from setl.run.verification.compared_targets import mapped_targets, target_reader
from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer
from tests.bench import options
from tests.bench.figures import Latency, finish, print_latencies, print_results, wide_console
from tests.bench.metering import Meter, Taken
from tests.bench.peers.catalogue import LOADS, peers
from tests.bench.peers.setl import Setl
from tests.bench.servers import Target, fresh_target, mysql_settings, scratch_folder, source_server
from tests.bench.turns import Result, StartPoint, run
from tests.bench.visibility import CHANGED, STEADY_LOAD, Writer, looking, under
from tests.bench.workloads import SCHEMA, fill, loaded, write

_ROWS = {"mysql": 1_000_000, "elasticsearch": 200_000}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure how fast whole tables are loaded, and compared."""


@main.command()
@click.option("--rows", type=int, help="Rows of the table, instead of the usual number.")
@options.names("--only", LOADS, "all", f"Of {', '.join(LOADS)}; or all.")
@options.target("all")
@options.rounds(3)
@options.family("--servers")
@options.master
@click.option("--seconds", default=20.0, show_default=True, help="How long latency is measured;"
              " 0 leaves it out, and the many small tables.")  # fmt: skip
@options.json_file
def load(rows, only, target, rounds, servers, master, seconds, file):
    """Measure how fast tables are loaded."""
    console = wide_console()
    results: list[Result] = []
    latencies: list[Latency] = []
    with scratch_folder("loads") as folder:
        for kind in target:
            those = peers(only, servers, master)
            table = loaded(rows or _ROWS[kind])
            results += run(table, kind, those, folder, console, rounds, servers)
        if seconds:
            small, setl = replace(loaded(10, tables=100), name="small"), Setl(master)
            results += run(small, "mysql", [setl], folder, console, family=servers)
            latencies.append(_while_loading(setl, folder, servers, rows or 3 * 10**6, seconds))
    print_results(results, console)
    if latencies:
        print_latencies(latencies, console)
    finish(console, file, [*results, *latencies], master=master, servers=servers)


def _while_loading(setl: Setl, folder: Path, family: str, rows: int, seconds: float) -> Latency:
    """How soon changes of one table are seen while another one is loaded."""
    table = loaded(rows)
    with ExitStack() as stack:
        source = stack.enter_context(source_server(folder, family))
        target = stack.enter_context(fresh_target(folder, "mysql", CHANGED, family=family))
        with source.connect() as connection, target.mysql.connect() as other:
            fill(connection, table)
            fill(other, replace(table, base=0))
            start = StartPoint(folder, source, write(connection, CHANGED))
        both = (*CHANGED.tables, *table.tables)
        node = stack.enter_context(setl.standing_by(start, target, load=True, tables=both))
        look = stack.enter_context(looking(target))
        node.start()
        wait_for("the first row to be loaded", lambda: node.has(1, loaded=True), 120)
        found = under(STEADY_LOAD, Writer(source), look, "mysql", seconds)
        if node.has(rows, loaded=True):
            found = replace(found, problems=("the load was over before",))
    return replace(found, load=f"{found.load}, tables are loaded")


WAYS = {"checksums": VerifySettings(), "row by row": VerifySettings(checksums=False)}


@main.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table.")
@options.rounds(3)
@options.family("--source")
@options.family("--target")
@options.master
@options.json_file
def verify(rows, rounds, source, target, master, file):
    """Measure how fast equal tables are compared."""
    table, console = loaded(rows), wide_console()
    results = [Result("verify", target, way, rows) for way in WAYS]
    spark = start_session(SparkSettings(master=master, name="setl-verifying"))
    try:
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder("verifying"))
            one = stack.enter_context(source_server(folder, source))
            with one.connect() as connection:
                fill(connection, table)
            other = stack.enter_context(fresh_target(folder, "mysql", table, family=target))
            for result in results * rounds:
                taken = compared(spark, one, other, rows, WAYS[result.peer])
                result.runs.append(taken)
                console.print(f"  {result.peer}: {taken.seconds:.1f} s,"
                              f" {rows / taken.seconds:,.0f} a second")  # fmt: skip
    finally:
        spark.stop()
    print_results(results, console)
    finish(console, file, results, master=master)


def compared(
    spark: SparkSession, source: DatabaseServer, target: Target, rows: int, settings: VerifySettings
) -> Taken:
    """Compare the only table of both servers; it has to be equal.

    Raises:
        RuntimeError: it is not, or not compared in this way.
    """
    pipeline = Pipeline.model_validate(
        {
            "name": "verify",
            "source": {"type": "mysql", **mysql_settings(source)},
            "target": {"type": "mysql", **mysql_settings(target.mysql)},
            "tables": [{"from": f"{SCHEMA}.*"}],
        }
    )
    ((name, sources),) = mapped_targets(pipeline).items()
    mapped = [MappedTable.build(spark, reader, route) for reader, route in sources]
    reader = target_reader(pipeline, name, mapped)
    if settings.checksums and not plan_of(mapped, reader).by_checksums:
        raise RuntimeError(f"no checksums: {plan_of(mapped, reader).why}")
    meter, began = Meter(source=source.pid, target=target.pid), time.monotonic()
    verdict = TargetComparison(spark, mapped, reader, settings).compare_all()
    taken = meter.taken(time.monotonic() - began)
    if not verdict.equal or (verdict.source_rows, verdict.target_rows) != (rows, rows):
        raise RuntimeError(f"the tables are not equal: {verdict}")
    return taken


if __name__ == "__main__":
    main()
