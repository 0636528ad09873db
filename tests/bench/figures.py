"""What was measured, as tables for people and as JSON, and beside what was promised."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from tests.bench.metering import OWN, ROLES
from tests.bench.turns import Result

STEADY, HALF, EXPRESSIONS = "20 a second", "half of the maximum", "20 a second, Spark SQL"
"""Loads under which latency is measured."""


@dataclass(frozen=True)
class Latency:
    """From commit at the source to visible in the target, under a load; in seconds."""

    target: str
    load: str
    transactions: int = 0
    rate: float = 0.0  # rows a second
    p50: float = 0.0
    p99: float = 0.0
    worst: float = 0.0
    problems: tuple[str, ...] = ()


FLOORS = (
    ("w1", "mysql", "setl", "replica", 0.25),
    ("w2", "mysql", "setl", "replica", 0.5),
    ("w3", "mysql", "setl", "replica", 0.4),
    ("w1", "mysql", "setl", "debezium", 3.0),
    ("w2", "mysql", "setl", "debezium", 4.0),
    ("w3", "mysql", "setl", "debezium", 2.0),
    ("w1", "elasticsearch", "setl", "bulk", 0.8),
    ("w2", "elasticsearch", "setl", "plain", 10.0),
    *(
        (workload, target, "setl-kafka", "setl", 0.8)
        for target in ("mysql", "elasticsearch")
        for workload in ("w1", "w2", "w3")
    ),
)
"""With this workload into this target, a peer is so many times as fast as another, or more."""

CEILINGS = (
    (STEADY, "p50", 0.025),
    (STEADY, "p99", 0.06),
    (HALF, "p99", 0.2),
    (EXPRESSIONS, "p50", 0.1),
)
"""Under this load, a quantile of the latency is at most so many seconds."""


class Verdict(NamedTuple):
    """What was measured beside what was promised; None if it was not measured."""

    title: str
    wanted: str
    found: float | None
    met: bool | None


def floors_met(results: Sequence[Result]) -> list[Verdict]:
    """One for each floor."""
    found: list[Verdict] = []
    for workload, target, peer, reference, at_least in FLOORS:
        mine = of(results, workload, target, peer)
        times = ratio(mine, of(results, workload, target, reference))
        met = None if mine is None or times is None else not mine.problems and times >= at_least
        title = f"{workload} to {target}: {peer} / {reference}"
        found.append(Verdict(title, f">= {at_least:g}", times, met))
    return found


def ceilings_met(latencies: Sequence[Latency]) -> list[Verdict]:
    """One for each ceiling and latency."""
    return [
        Verdict(
            f"latency to {one.target}, {load}: {quantile}",
            f"<= {at_most:g} s",
            getattr(one, quantile),
            not one.problems and getattr(one, quantile) <= at_most,
        )
        for one in latencies
        for load, quantile, at_most in CEILINGS
        if load == one.load
    ]


def of(results: Iterable[Result], workload: str, target: str, peer: str) -> Result | None:
    wanted = (workload, target, peer)
    return next((r for r in results if (r.workload, r.target, r.peer) == wanted), None)


def ratio(mine: Result | None, other: Result | None) -> float | None:
    """How many times as fast as another one it was, in whatever size; None without two rates."""
    if mine is None or other is None or not mine.rate or not other.rate:
        return None
    return mine.rate / other.rate


def ratios_by_round(mine: Result | None, other: Result) -> list[float]:
    """Empty if a run has failed: then nobody knows which belong together."""
    if mine is None or len(mine.runs) != len(other.runs):
        return []
    pairs = zip(mine.runs, other.runs, strict=True)
    return [mine.changes / a.seconds / (other.changes / b.seconds) for a, b in pairs]


def wide_console() -> Console:
    """Where results are printed: tables do not wrap where the output is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=150)


def print_results(results: Sequence[Result], console: Console) -> None:
    """Print rates and ratios, what they cost, and whatever went wrong."""
    rates = _table(
        "rows a second, of the best round",
        "workload", "peer", "rows", "rate", "start s", "setl is x times", "in each round",
        caption="(rate): wrong contents at the end. setl's rates include the start of the channel",
    )  # fmt: skip
    costs = _table(
        "processor time, µs a row, and highest memory (PSS), MiB",
        "workload", "peer", "own", *ROLES, *(f"{role} MiB" for role in OWN),
        caption="own: driver, JVM and workers together",
    )  # fmt: skip
    for r in results:
        if r.missing or not r.best:
            rates.add_row(r.title, r.peer, "", r.missing or "failed")
            continue
        setl = of(results, r.workload, r.target, "setl") if r.peer != "setl" else None
        rounds = [number(x, 2) for x in ratios_by_round(setl, r)]
        rate = f"({number(r.rate)})" if r.wrong else number(r.rate)
        rates.add_row(
            r.title, r.peer, f"{r.changes:,}", rate, number(r.best.start_seconds, 2),
            number(ratio(setl, r), 2), ", ".join(rounds) if len(rounds) > 1 else "",
        )  # fmt: skip
        memory = [r.best.memory.get(role) for role in OWN]
        costs.add_row(
            r.title, r.peer, number(r.cpu(*OWN), 1), *(number(r.cpu(role), 1) for role in ROLES),
            *(number(None if size is None else size / 2**20) for size in memory),
        )  # fmt: skip
    console.print(rates, costs)
    for r in results:
        _print_problems(f"{r.title}, {r.peer}", r.problems, console)


def print_latencies(latencies: Sequence[Latency], console: Console) -> None:
    table = _table(
        "setl: milliseconds from commit to visible in the target",
        "target", "transactions", "count", "rows/s", "p50", "p99", "worst",
    )  # fmt: skip
    for one in latencies:
        table.add_row(
            one.target, one.load, f"{one.transactions:,}", number(one.rate),
            *(number(seconds * 1000) for seconds in (one.p50, one.p99, one.worst)),
        )  # fmt: skip
    console.print(table)
    for one in latencies:
        _print_problems(f"{one.target}, {one.load}", one.problems, console)


def _print_problems(title: str, problems: Iterable[str], console: Console) -> None:
    for problem in problems:
        console.print(f"{title}: {problem}", style="red", markup=False)


def _table(title: str, *columns: str, caption: str | None = None) -> Table:
    """The first two columns are names, all others figures."""
    table = Table(title=title, caption=caption)
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index < 2, justify="left" if index < 2 else "right")
    return table


def number(value: float | None, digits: int = 0) -> str:
    """For people; a dash for what is not known."""
    return "-" if value is None else f"{value:,.{digits}f}"


def finish(
    console: Console,
    file: Path | None,
    figures: Sequence[Result | Latency],
    verdicts: Sequence[Verdict] = (),
    **about: Any,
) -> None:
    """Print verdicts, write JSON, and exit with 1 if anything is not as it should be."""
    if verdicts:
        table = _table("floors", "what", "", "wanted", "found")
        words = {True: "[green]met[/]", False: "[red]not met[/]", None: "not measured"}
        for v in verdicts:
            table.add_row(v.title, words[v.met], v.wanted, number(v.found, 3))
        console.print(table)
    if file is not None:
        content = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {cpu_count()} cores",
            **about,
            "figures": [{**asdict(one), "rate": one.rate} for one in figures],
            "floors": [verdict._asdict() for verdict in verdicts],
        }
        file.write_text(json.dumps(content, indent=2) + "\n")
    if any(one.problems for one in figures) or any(v.met is False for v in verdicts):
        sys.exit(1)
