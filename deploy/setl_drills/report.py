"""What drills say in the end: a line each for people, everything as JSON for records."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from setl import __version__
from setl_drills.checkers import median
from setl_drills.drill import Drill, DrillResult
from setl_drills.world import SESSION_TIMEOUT

_LIBRARIES = ("pyspark", "kazoo", "pymysql", "mysql-event-stream", "elasticsearch", "noida-db")


def show_list(console: Console, drills: Sequence[Drill]) -> None:
    """Name, what is done, and what the seed decides."""
    table = Table(header_style="bold")
    for column in ("drill", "what is rehearsed", "the seed decides"):
        table.add_column(column)
    for drill in drills:
        table.add_row(drill.name, drill.about, drill.seeded)
    console.print(table)


def show_results(console: Console, results: Sequence[DrillResult]) -> None:
    """A line for each drill, over all its seeds; below, what was wrong."""
    table = Table(header_style="bold")
    table.add_column("drill")
    for column in (
        "seeds",
        "outage p50",
        "outage max",
        "redelivered",
        "lost",
        "unexpected",
        "echoes",
    ):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for name, runs in by_drill(results).items():
        outages = [seconds for run in runs for seconds in run.outages]
        failed = [run.seed for run in runs if not run.passed]
        table.add_row(
            name,
            str(len(runs)),
            _seconds(median(outages)),
            _seconds(max(outages, default=None)),
            f"{sum(run.redelivered for run in runs):,}",
            f"{sum(run.lost for run in runs):,}",
            f"{sum(run.unexpected for run in runs):,}",
            f"{sum(run.echoes for run in runs):,}",
            f"[red]FAILED[/] with {_seeds(failed)}" if failed else "[green]passed[/]",
        )
    console.print(table)
    for run in results:
        for problem in run.problems:
            console.print(f"{run.drill}, seed {run.seed}: {problem}", markup=False)
        for note in run.notes:
            console.print(f"{run.drill}, seed {run.seed}: note: {note}", markup=False)
        if run.folder is not None:
            console.print(f"{run.drill}, seed {run.seed}: logs in {run.folder}", markup=False)


def by_drill(results: Sequence[DrillResult]) -> dict[str, list[DrillResult]]:
    """Results grouped by drill, in the order of the first run of each."""
    grouped: dict[str, list[DrillResult]] = {}
    for result in results:
        grouped.setdefault(result.drill, []).append(result)
    return grouped


def write_json(file: Path, results: Sequence[DrillResult]) -> None:
    """The record of a run: versions, settings, and everything that was seen."""
    content: dict[str, Any] = {
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions(),
        "session_timeout": SESSION_TIMEOUT,
        "passed": all(result.passed for result in results),
        "drills": [
            {
                "drill": name,
                "seeds": [run.seed for run in runs],
                "outage_p50": median([s for run in runs for s in run.outages]),
                "outage_max": max((s for run in runs for s in run.outages), default=None),
                "redelivered": sum(run.redelivered for run in runs),
                "lost": sum(run.lost for run in runs),
                "unexpected": sum(run.unexpected for run in runs),
                "echoes": sum(run.echoes for run in runs),
                "passed": all(run.passed for run in runs),
                "runs": [run.to_json() for run in runs],
            }
            for name, runs in by_drill(results).items()
        ],
    }
    file.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Versions of what took part."""
    found = {"setl": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _seeds(seeds: Sequence[int]) -> str:
    return ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(str(seed) for seed in seeds)
