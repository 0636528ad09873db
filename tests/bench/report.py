"""The figures of a run, as a table for people and as JSON."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table


class Taken(NamedTuple):
    """What one run of one competitor took.

    Attributes:
        seconds: from its start until everything was applied.
        cpu: CPU seconds of its own processes in that time, without the servers.
    """

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Figure:
    """One workload into one target, by both competitors one after the other.

    Attributes:
        workload: w1 or w2.
        target: mysql or elasticsearch.
        changes: row changes.
        plain: the runs of the plain script that did what they should.
        setl: the same of setl.
        problems: what went wrong; wrong contents of a target too.
    """

    workload: str
    target: str
    changes: int
    plain: tuple[Taken, ...]
    setl: tuple[Taken, ...]
    problems: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """How many times faster than the plain script setl was, each at its best."""
        plain, setl = best(self.plain), best(self.setl)
        return plain.seconds / setl.seconds if plain and setl else None

    def rate(self, runs: tuple[Taken, ...]) -> float | None:
        """Row changes a second in the best run."""
        run = best(runs)
        return self.changes / run.seconds if run else None

    def cpu(self, runs: tuple[Taken, ...]) -> float | None:
        """CPU seconds for a million row changes, in the best run."""
        run = best(runs)
        return run.cpu / self.changes * 1e6 if run else None


def best(runs: tuple[Taken, ...]) -> Taken | None:
    """The fastest run: what the machine does beside it can only slow a run down."""
    return min(runs, default=None)


def print_table(figures: list[Figure], console: Console) -> None:
    """Print rates and ratios, and whatever went wrong."""
    table = Table(
        title="row changes a second, from a binlog already written",
        caption="cpu: CPU seconds of the competitor itself for a million changes",
    )
    for title in ("workload", "target"):
        table.add_column(title, no_wrap=True)
    for title in ("changes", "plain script", "setl", "ratio", "plain cpu", "setl cpu"):
        table.add_column(title, justify="right")
    for f in figures:
        table.add_row(
            f.workload.upper(),
            f.target,
            f"{f.changes:,}",
            _number(f.rate(f.plain)),
            _number(f.rate(f.setl)),
            "-" if f.ratio is None else f"{f.ratio:.2f}",
            _number(f.cpu(f.plain)),
            _number(f.cpu(f.setl)),
        )
    console.print(table)
    for f in figures:
        for problem in f.problems:
            console.print(f"{f.workload.upper()} to {f.target}: {problem}", style="red")


def write_json(figures: list[Figure], file: Path, *, master: str) -> None:
    """Write everything, with the machine and the date."""
    rows: list[dict[str, Any]] = [
        {
            "workload": f.workload,
            "target": f.target,
            "changes": f.changes,
            "plain": [run._asdict() for run in f.plain],
            "setl": [run._asdict() for run in f.setl],
            "plain_rate": f.rate(f.plain),
            "setl_rate": f.rate(f.setl),
            "ratio": f.ratio,
            "plain_cpu_per_million": f.cpu(f.plain),
            "setl_cpu_per_million": f.cpu(f.setl),
            "problems": list(f.problems),
        }
        for f in figures
    ]
    content = {**circumstances(), "master": master, "figures": rows}
    file.write_text(json.dumps(content, indent=2) + "\n")


def circumstances() -> dict[str, str]:
    """Where and when it was measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, {cpu_count()} cores",
        "python": platform.python_version(),
    }


def _number(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.0f}"
