"""What setl promises, as ratios within one run, and whether a run has met it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.table import Table

from tests.bench.report import HALF, STEADY, Latency, Result, number, ratio


@dataclass(frozen=True)
class Floor:
    """At least so many times as fast as another competitor, with one workload into one target."""

    workload: str
    target: str
    competitor: str
    reference: str
    at_least: float

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.workload} to {self.target}: {self.competitor} / {self.reference}"

    def applies_to(self, result: Result) -> bool:
        """Whether the result is that of the one who has to be fast."""
        found = result.workload, result.target, result.competitor
        return found == (self.workload, self.target, self.competitor)


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
    Ceiling(STEADY, "p50", 0.25),
    Ceiling(STEADY, "p99", 0.5),
    Ceiling(HALF, "p99", 1.0),
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


def verdicts(results: Sequence[Result], latencies: Sequence[Latency]) -> list[Verdict]:
    """One for each floor, and for each ceiling and latency."""
    return [*map(partial(_on_floor, results), FLOORS), *_below_ceilings(latencies)]


def _on_floor(results: Sequence[Result], floor: Floor) -> Verdict:
    found: float | None = None
    right = True
    for result in results:
        if floor.applies_to(result):
            found = ratio(results, result, floor.reference)
            right = not result.problems
    met = None if found is None else right and found >= floor.at_least
    return Verdict(floor.title, f">= {floor.at_least:g}", found, met)


def _below_ceilings(latencies: Sequence[Latency]) -> Iterator[Verdict]:
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
