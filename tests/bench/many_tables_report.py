"""What the runs over many tables gave, as a table for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.bench.many_tables_workload import Change
from tests.bench.report import circumstances


class Delay(NamedTuple):
    """Seconds from a change being in the topic until it could be seen in the target."""

    median: float
    p95: float


_NEVER = Delay(0.0, 0.0)


@dataclass
class Result:
    """One run of one contender.

    Attributes:
        case: which case.
        contender: who.
        changes: row changes.
        seconds: from the first change being there until the last commit.
        cold: delays of changes of cold tables.
        hot: delays of changes of the hot table.
        orphans: after how many commits an item or payment had no order.
        commits: how many commits there were.
        problems: what went wrong; wrong contents of the target too.
    """

    case: str
    contender: str
    changes: int
    seconds: float = 0.0
    cold: Delay = _NEVER
    hot: Delay = _NEVER
    orphans: int = 0
    commits: int = 0
    problems: list[str] = field(default_factory=list[str])

    @property
    def rate(self) -> float:
        """Row changes a second."""
        return self.changes / self.seconds if self.seconds else 0.0

    @property
    def summary(self) -> str:
        """In a line."""
        if self.problems:
            return "; ".join(self.problems)
        return (
            f"{self.rate:,.0f} changes a second, cold ones seen after {self.cold.median:.2f} s"
            f" ({self.cold.p95:.2f} s), hot ones after {self.hot.median:.2f} s"
            f" ({self.hot.p95:.2f} s), orphans after {self.orphans} of {self.commits} commits"
        )


def delays(
    changes: Sequence[Change],
    seen: Mapping[int, float],
    available: Sequence[float],
    tables: Collection[str],
) -> Delay:
    """Median and 95th percentile for the changes of some tables that were ever seen."""
    wanted = set(tables)
    found = [
        seen[number] - available[number - 1]
        for number, change in enumerate(changes, 1)
        if change.table in wanted and number in seen
    ]
    if len(found) < 2:
        return _NEVER
    return Delay(median(found), quantiles(found, n=20)[-1])


def print_results(results: Sequence[Result], console: Console) -> None:
    """Print figures, medians over rounds, and what they are in times the demo's."""
    table = Table(
        title="many tables, one of them hot and slow",
        caption="delay: seconds until seen in the target, median / 95th percentile. (x): times"
        " better than the demo's consumer in the same round. orphans: commits after which an item"
        " or payment was there without its order",
    )
    table.add_column("case", no_wrap=True)
    table.add_column("contender")
    for title in ("changes/s", "cold delay", "hot delay", "orphans"):
        table.add_column(title, justify="right")
    for case, contender in dict.fromkeys((r.case, r.contender) for r in results):
        runs = _good(results, case, contender)
        if runs:
            table.add_row(case, contender, *_cells(runs, _good(results, case, "demo")))
    console.print(table)
    for result in results:
        for problem in result.problems:
            console.print(f"{result.case}, {result.contender}: {problem}", style="red")


def _good(results: Sequence[Result], case: str, contender: str) -> list[Result]:
    return [r for r in results if r.case == case and r.contender == contender and not r.problems]


def _cells(runs: list[Result], demos: list[Result]) -> Sequence[str]:
    rate, beside = median(r.rate for r in runs), list(zip(runs, demos, strict=False))

    def delay(part: str, index: int) -> str:
        taken = median(getattr(r, part)[index] for r in runs)
        times = [getattr(d, part)[index] / max(getattr(r, part)[index], 1e-3) for r, d in beside]
        return f"{taken:.2f}" + (f" ({median(times):.2g}x)" if times else "")

    times = f" ({median(r.rate / d.rate for r, d in beside):.2g}x)" if beside else ""
    return (
        f"{rate:,.0f}{times}",
        *(f"{delay(part, 0)} / {delay(part, 1)}" for part in ("cold", "hot")),
        f"{sum(r.orphans for r in runs)} of {sum(r.commits for r in runs)}",
    )


def write_results(results: Sequence[Result], file: Path) -> None:
    """Write everything, with the machine and the date."""
    runs = [{**asdict(result), "rate": result.rate} for result in results]
    file.write_text(json.dumps({**circumstances(), "runs": runs}, indent=2) + "\n")
