"""The figures of a run, as tables for people and as JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import cpu_count, sysconf
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from tests.bench.watching import DRIVER, JVM, OWN, WORKERS

SOURCE, TARGET = "source", "target"
"""Roles of servers, beside those of a competitor's own processes."""

LOGGING = "replica, logging"
"""A replica that writes a binlog of its own, as the target of any other writes one."""

PARALLEL = "replica, 4 threads"
"""The same with four threads that apply."""

REFERENCES = ("replica", LOGGING, PARALLEL, "bulk", "debezium", "plain")
"""Competitors to which others are compared."""

STEADY, HALF = "20 a second", "half of the maximum"
EXPRESSIONS = "20 a second, Spark SQL"
"""Loads under which latency is measured."""

_CPU = (DRIVER, JVM, WORKERS, TARGET, SOURCE)


@dataclass(frozen=True, order=True)
class Taken:
    """What one run of one competitor took; the fastest run is the smallest.

    Attributes:
        seconds: from its start until everything was applied.
        start_seconds: of these, until the first rows were applied; None if that is not known.
        cpu: CPU seconds in that time by role.
        memory: highest resident bytes by role, as sampled.
    """

    seconds: float
    start_seconds: float | None = field(default=None, compare=False)
    cpu: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)
    memory: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)


@dataclass(frozen=True)
class Result:
    """What one competitor did with one workload.

    Attributes:
        workload: its name.
        target: mysql or elasticsearch.
        competitor: its name.
        changes: row changes.
        runs: those that came to their end.
        wrong: in which way the target's contents were wrong after one of them.
        failed: what went wrong in other runs.
        missing: why it did not take part.
    """

    workload: str
    target: str
    competitor: str
    changes: int
    runs: tuple[Taken, ...] = ()
    wrong: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    missing: str = ""

    @property
    def best(self) -> Taken | None:
        """The fastest run: what the machine does beside it can only slow a run down."""
        return min(self.runs, default=None)

    @property
    def rate(self) -> float | None:
        """Row changes a second in the best run."""
        return self.changes / self.best.seconds if self.best else None

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that went wrong."""
        return (*self.failed, *self.wrong)

    def cpu(self, *roles: str) -> float | None:
        """CPU seconds of some roles for a million row changes, in the best run."""
        if self.best is None or not any(role in self.best.cpu for role in roles):
            return None
        return sum(self.best.cpu.get(role, 0.0) for role in roles) / self.changes * 1e6

    def as_json(self) -> dict[str, Any]:
        """Everything about it; CPU seconds are for a million row changes."""
        best = self.best
        return {
            "workload": self.workload,
            "target": self.target,
            "competitor": self.competitor,
            "changes": self.changes,
            "rate": self.rate,
            "seconds": [run.seconds for run in self.runs],
            "start_seconds": best.start_seconds if best else None,
            "cpu_per_million": {role: self.cpu(role) for role in best.cpu} if best else {},
            "peak_bytes": dict(best.memory) if best else {},
            "wrong": list(self.wrong),
            "failed": list(self.failed),
            "missing": self.missing,
        }


@dataclass(frozen=True)
class Latency:
    """From commit at the source to visible in the target, under a load.

    Attributes:
        target: mysql or elasticsearch.
        load: `STEADY` or `HALF`.
        transactions: how many were committed.
        rows_per_second: how many rows a second these had.
        p50: median, in seconds.
        p99: 99th percentile.
        worst: the longest.
        problems: what went wrong.
    """

    target: str
    load: str
    transactions: int = 0
    rows_per_second: float = 0.0
    p50: float = 0.0
    p99: float = 0.0
    worst: float = 0.0
    problems: tuple[str, ...] = ()


def ratio(results: Iterable[Result], result: Result, reference: str) -> float | None:
    """How many times as fast as another one with the same workload, of whatever size, it was.

    None if either has no rate.
    """
    for other in results:
        same = (other.workload, other.target) == (result.workload, result.target)
        if same and other.competitor == reference:
            return result.rate / other.rate if result.rate and other.rate else None
    return None


def wide_console() -> Console:
    """Where results are printed: tables do not wrap where the output is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=150)


def print_tables(results: Sequence[Result], console: Console) -> None:
    """Print rates and ratios, what they cost, and whatever went wrong."""
    console.print(_rates(results))
    console.print(_costs(results))
    for r in results:
        for problem in r.problems:
            console.print(f"{_title(r)}, {r.competitor}: {problem}", style="red", markup=False)


def _rates(results: Sequence[Result]) -> Table:
    table = Table(
        title="row changes a second, from a stream already written until the target has it all",
        caption="x: times as fast as that competitor. (rate): wrong contents at the end."
        " Rates include the start of the channel",
    )
    table.add_column("workload", no_wrap=True)
    table.add_column("competitor", no_wrap=True)
    for title in ("changes", "rate", "start s", *(f"x {name}" for name in REFERENCES)):
        table.add_column(title, justify="right")
    for r in results:
        if r.missing:
            table.add_row(_title(r), r.competitor, "", r.missing)
            continue
        ratios = [None if name == r.competitor else ratio(results, r, name) for name in REFERENCES]
        rate = number(r.rate)
        start = r.best.start_seconds if r.best else None
        table.add_row(
            _title(r),
            r.competitor,
            f"{r.changes:,}",
            f"({rate})" if r.wrong else rate,
            number(start, 2),
            *(number(value, 2) for value in ratios),
        )
    return table


def _costs(results: Sequence[Result]) -> Table:
    table = Table(
        title="CPU seconds for a million row changes, and highest memory in MiB",
        caption="own: driver, JVM and workers together. Python workers share pages, counted for"
        " each of them",
    )
    table.add_column("workload", no_wrap=True)
    table.add_column("competitor", no_wrap=True)
    for title in ("own", *_CPU, *(f"{role} MiB" for role in OWN)):
        table.add_column(title, justify="right")
    for r in results:
        if r.best is not None:
            memory = [r.best.memory.get(role) for role in OWN]
            table.add_row(
                _title(r),
                r.competitor,
                number(r.cpu(*OWN), 1),
                *(number(r.cpu(role), 1) for role in _CPU),
                *(number(None if size is None else size / 2**20) for size in memory),
            )
    return table


def print_latencies(latencies: Sequence[Latency], console: Console) -> None:
    """Print them in milliseconds."""
    table = Table(title="setl: milliseconds from commit to visible in the target")
    table.add_column("target")
    table.add_column("transactions", no_wrap=True)
    for title in ("count", "rows/s", "p50", "p99", "worst"):
        table.add_column(title, justify="right")
    for one in latencies:
        table.add_row(
            one.target, one.load, f"{one.transactions:,}", number(one.rows_per_second),
            *(number(seconds * 1000) for seconds in (one.p50, one.p99, one.worst)),
        )  # fmt: skip
    console.print(table)
    for one in latencies:
        for problem in one.problems:
            console.print(f"{one.target}, {one.load}: {problem}", style="red", markup=False)


def _title(result: Result) -> str:
    return f"{result.workload} to {result.target}"


def number(value: float | None, digits: int = 0) -> str:
    """For people; a dash for what is not known."""
    return "-" if value is None else f"{value:,.{digits}f}"


def circumstances() -> dict[str, str]:
    """Where and when it was measured."""
    memory = sysconf("SC_PHYS_PAGES") * sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, {cpu_count()} cores,"
        f" {memory:.0f} GiB",
        "python": platform.python_version(),
    }


json_option = click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write the figures here too."
)


def write_json(file: Path, **content: Any) -> None:
    """Write figures, with the machine and the date."""
    file.write_text(json.dumps({**circumstances(), **content}, indent=2) + "\n")


@dataclass(frozen=True)
class Floor:
    """At least so many times as fast as another competitor, with one workload into one target."""

    workload: str
    target: str
    competitor: str
    reference: str
    at_least: float


@dataclass(frozen=True)
class Ceiling:
    """A quantile of the latency under a load, in seconds, that must not be exceeded."""

    load: str
    quantile: str
    at_most: float


FLOORS = (
    Floor("w1", "mysql", "setl", "replica", 0.25),
    Floor("w2", "mysql", "setl", "replica", 0.5),
    Floor("w3", "mysql", "setl", "replica", 0.4),
    Floor("w1", "mysql", "setl", "debezium", 3.0),
    Floor("w2", "mysql", "setl", "debezium", 4.0),
    Floor("w3", "mysql", "setl", "debezium", 2.0),
    Floor("w1", "elasticsearch", "setl", "bulk", 0.8),
    Floor("w2", "elasticsearch", "setl", "plain", 10.0),
    *(
        Floor(workload, target, "setl, kafka", "setl", 0.8)
        for target in ("mysql", "elasticsearch")
        for workload in ("w1", "w2", "w3")
    ),
)

CEILINGS = (
    Ceiling(STEADY, "p50", 0.025),
    Ceiling(STEADY, "p99", 0.06),
    Ceiling(HALF, "p99", 0.2),
    Ceiling(EXPRESSIONS, "p50", 0.1),
)


@dataclass(frozen=True)
class Verdict:
    """What was measured, beside what was promised.

    Attributes:
        title: which floor.
        wanted: the bound, for people.
        found: the figure; None if it was not measured.
        met: whether it is good enough; None if it was not measured.
    """

    title: str
    wanted: str
    found: float | None
    met: bool | None


def floors_met(results: Sequence[Result]) -> list[Verdict]:
    """One for each floor."""
    found: list[Verdict] = []
    for floor in FLOORS:
        wanted = floor.workload, floor.target, floor.competitor
        mine = next((r for r in results if (r.workload, r.target, r.competitor) == wanted), None)
        times = ratio(results, mine, floor.reference) if mine else None
        met = None
        if mine is not None and times is not None:
            met = not mine.problems and times >= floor.at_least
        title = f"{floor.workload} to {floor.target}: {floor.competitor} / {floor.reference}"
        found.append(Verdict(title, f">= {floor.at_least:g}", times, met))
    return found


def ceilings_met(latencies: Sequence[Latency]) -> Iterator[Verdict]:
    """One for each ceiling and latency."""
    for latency in latencies:
        for ceiling in CEILINGS:
            if ceiling.load == latency.load:
                found: float = getattr(latency, ceiling.quantile)
                met = not latency.problems and found <= ceiling.at_most
                title = f"latency to {latency.target}, {latency.load}: {ceiling.quantile}"
                yield Verdict(title, f"<= {ceiling.at_most:g} s", found, met)


def print_verdicts(found: Sequence[Verdict], console: Console) -> None:
    """Print each as met or not; those that were not measured say so."""
    table = Table(title="floors")
    table.add_column("what", no_wrap=True)
    for title in ("wanted", "found"):
        table.add_column(title, justify="right")
    table.add_column("")
    words = {True: "[green]met[/]", False: "[red]not met[/]", None: "not measured"}
    for verdict in found:
        table.add_row(verdict.title, verdict.wanted, number(verdict.found, 3), words[verdict.met])
    console.print(table)
