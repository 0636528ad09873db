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

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from setl.bulk.source_side import MappedTable
from setl.bulk.verify_target import TargetComparison, VerifySettings, plan_of
from setl.channel.file import Pipeline
from setl.run.spark.session import SparkSettings, start_session
from setl.run.verification.compared_targets import mapped_targets, target_reader
from setl_embedded import MariaDb
from tests.bench import latency
from tests.bench.competition import Competitor, Meter, StartPoint, differences
from tests.bench.peers.scripts import Bulk, Debezium
from tests.bench.peers.server_tools import MariaDbDump, MyDumper
from tests.bench.report import (
    Latency,
    Taken,
    json_option,
    print_latencies,
    wide_console,
    write_json,
)
from tests.bench.servers import (
    TARGETS,
    Target,
    family_option,
    fresh_target,
    mysql_settings,
    scratch_folder,
    source_server,
    target_option,
)
from tests.bench.setl_side import Node, Setl, master_option
from tests.bench.watching import cpu_by_role, wait_for
from tests.bench.workloads import NARROW, SCHEMA, Position, Workload, Written, fill, loaded

_LOOK_SECONDS = 0.02
_ROWS = {"mysql": 1_000_000, "elasticsearch": 200_000}
_START = Position("", 0)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure how fast whole tables are loaded, and compared."""


class SetlLoad:
    """setl, whose channel begins with the rows that are there."""

    name = "setl"
    source = "binlog"
    target_options = ()

    def __init__(self, master: str) -> None:
        self.setl = Setl(master=master)

    def why_not(self, target: str, workload: Workload) -> str:
        return ""

    def measure(self, position: StartPoint, target: Target) -> Taken:
        wanted = position.written.workload.size
        with self.setl.standing_by(position, target, None) as node:
            meter = Meter(node.pid, target, position.source.pid)
            look = _how_far(node, target, position.written.workload.name)
            with meter.memory:
                node.start()
                wait_for(
                    lambda: look().get("rows", 0) >= wanted,
                    position.limit,
                    "not everything was loaded",
                    every=_LOOK_SECONDS,
                )
                seconds = time.time() - look()["begun"]
            return meter.taken(seconds)


def _how_far(node: Node, target: Target, pipeline: str) -> Callable[[], dict[str, Any]]:
    """What the checkpoint says of the load; nothing before it has begun."""

    def looked() -> dict[str, Any]:
        if target.mariadb is None:
            stored = node.stored_position(pipeline)
            return (stored or {}).get("checkpoint", {}).get("load", {})
        with target.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT checkpoint FROM retl.setl_checkpoint")
            row = cursor.fetchone()
        return json.loads(row[0]).get("load", {}) if row else {}

    return looked


class Turn(NamedTuple):
    """One run of one competitor."""

    target: str
    competitor: str
    rows: int
    seconds: float
    cpu: dict[str, float]


@main.command()
@click.option("--rows", type=int, help="Rows of the table, instead of the usual number.")
@click.option(
    "--rounds", default=3, show_default=True, help="Runs of each, in turns; medians count."
)
@target_option
@family_option("--family", help="Which servers.")
@click.option("--only", multiple=True, help="Run these competitors only; may be repeated.")
@master_option
@click.option("--seconds", default=20.0, show_default=True, help="How long latency is measured;"
              " 0 leaves it out, and the many small tables.")  # fmt: skip
@json_option
def load(
    rows: int | None,
    rounds: int,
    target: str,
    family: str,
    only: tuple[str, ...],
    master: str,
    seconds: float,
    file: Path | None,
) -> None:
    """Measure how fast tables are loaded."""
    console = wide_console()
    setl = SetlLoad(master)
    others: list[Competitor] = [MyDumper(), MariaDbDump(), Bulk(), Debezium()]
    competitors = [c for c in [*others, setl] if not only or c.name in only]
    turns: list[Turn] = []
    latencies: list[Latency] = []
    with scratch_folder("loads") as folder:
        for kind in TARGETS if target == "all" else (target,):
            workload = loaded(rows or _ROWS[kind])
            turns += _in_turns(folder, kind, family, workload, competitors, rounds, console)
        print_turns(turns, console)
        if seconds:
            latencies.append(_while_loading(setl, folder, family, rows or 3 * 10**6, seconds))
            small = loaded(10, tables=100)
            (turn,) = _in_turns(folder, "mysql", family, small, [setl], 1, console)
            console.print(f"100 tables of 10 rows: {turn.seconds:.1f} s")
            print_latencies(latencies, console)
    if file is not None:
        write_json(
            file,
            family=family,
            turns=[turn._asdict() for turn in turns],
            latencies=[asdict(one) for one in latencies],
        )


def _in_turns(
    folder: Path,
    kind: str,
    family: str,
    workload: Workload,
    competitors: Sequence[Competitor],
    rounds: int,
    console: Console,
) -> list[Turn]:
    turns: list[Turn] = []
    empty = replace(workload, base=0)
    able = [c for c in competitors if not c.why_not(kind, workload)]
    with source_server(folder, family) as source:
        with source.connect() as connection:
            fill(connection, workload)
        position = StartPoint(folder, source, Written(workload, _START, _START))
        for competitor in [*able] * rounds:
            with fresh_target(folder, kind, empty, competitor.target_options, family) as target:
                taken = competitor.measure(position, target)
                if wrong := differences(source, target, workload):
                    raise RuntimeError(f"{competitor.name}: {wrong}")
            turns.append(Turn(kind, competitor.name, workload.size, taken.seconds, dict(taken.cpu)))
            console.print(
                f"{kind}, {competitor.name}: {taken.seconds:.1f} s,"
                f" {workload.size / taken.seconds:,.0f} rows a second"
            )
    return turns


def ratios(turns: Sequence[Turn], target: str, competitor: str) -> list[float]:
    """How many times as fast setl was as another one, in each round."""
    mine, theirs = (
        [t.seconds for t in turns if (t.target, t.competitor) == (target, name)]
        for name in ("setl", competitor)
    )
    return [their / own for own, their in zip(mine, theirs, strict=False)]


def print_turns(turns: Sequence[Turn], console: Console) -> None:
    """Medians, and how far the rounds were apart."""
    table = Table("target", "competitor", "rows/s", "slowest, fastest", "setl is x times", "rounds",
                  "CPU µs a row")  # fmt: skip
    for target, name in dict.fromkeys((t.target, t.competitor) for t in turns):
        own = [t for t in turns if (t.target, t.competitor) == (target, name)]
        rates = sorted(t.rows / t.seconds for t in own)
        times = ratios(turns, target, name) if name != "setl" else []
        spent = {r: median(t.cpu.get(r, 0) / t.rows * 1e6 for t in own) for r in own[0].cpu}
        table.add_row(
            target,
            name,
            f"{median(rates):,.0f}",
            f"{rates[0]:,.0f}, {rates[-1]:,.0f}",
            f"{median(times):.2f}" if times else "",
            ", ".join(f"{x:.2f}" for x in times),
            ", ".join(f"{role} {used:.1f}" for role, used in spent.items()),
        )
    console.print(table)


def _while_loading(setl: SetlLoad, folder: Path, family: str, rows: int, seconds: float) -> Latency:
    """How soon changes of one table are seen while another one is loaded."""
    changed, there = Workload("latency", 0, 1), loaded(rows)
    both = _Two("latency", 0, 1, base=rows, shape=NARROW)
    with (
        source_server(folder, family) as source,
        fresh_target(folder, "mysql", changed, (), family) as target,
    ):
        with source.connect() as connection:
            fill(connection, there)
            fill(connection, changed)
        with target.mysql.connect() as connection:
            fill(connection, replace(there, base=0))
        position = StartPoint(folder, source, Written(both, _START, _START))
        with setl.setl.standing_by(position, target, None) as node, latency.looking(target) as look:
            load = _how_far(node, target, "")
            node.start()
            wait_for(lambda: load().get("rows", 0) > 0, 120, "no row was loaded")
            writer = latency.Writer(source)
            found = latency.under(latency.STEADY_LOAD, writer, look, "mysql", seconds)
            if load().get("rows", 0) >= rows:
                found = replace(found, problems=("the load was over before",))
    return replace(found, load=f"{found.load}, tables are loaded")


class _Two(Workload):
    """Stands for two in a channel file."""

    @property
    def tables(self) -> tuple[str, ...]:
        return ("latency", "load")


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


@main.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table.")
@click.option("--rounds", default=3, show_default=True, help="Runs of each, in turns.")
@click.option("--source", default="mariadb", show_default=True,
              type=click.Choice(["mariadb", "mysql"]), help="Family of the source.")  # fmt: skip
@click.option("--target", default="mariadb", show_default=True,
              type=click.Choice(["mariadb", "mysql"]), help="Family of the target.")  # fmt: skip
@master_option
def verify(rows: int, rounds: int, source: str, target: str, master: str) -> None:
    """Measure how fast equal tables are compared."""
    workload = loaded(rows)
    console = wide_console()
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
