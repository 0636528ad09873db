"""The table that the demo ends with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass
class PipelineResult:
    """One column of the final table.

    Attributes:
        pipeline: channel and pipeline.
        written: row changes committed at the source by its users.
        applied: row changes applied, each counted once however often it was delivered.
        redelivered: row changes applied again after the failover; None where the target
            cannot tell.
        loopback: rows dropped because the channel itself had written them (estimated from the
            binlog's headers).
        failover_seconds: from SIGKILL to the first batch applied by the new leader.
        lag_p50: median seconds from commit to visible.
        lag_p99: 99th percentile of the same.
        differences: keys that differ after the end; must be 0. None for a topic.
        echoes: rows that came back to where they were written; must be 0. None for a target
            that nobody reads from.
    """

    pipeline: str
    written: int
    applied: int
    redelivered: int | None
    loopback: int
    failover_seconds: float | None
    lag_p50: float | None
    lag_p99: float | None
    differences: int | None
    echoes: int | None

    @property
    def good(self) -> bool:
        """Whether everything arrived and nothing came back."""
        return not self.differences and not self.echoes and self.applied == self.written


@dataclass
class Result:
    """All figures of a run."""

    pipelines: list[PipelineResult] = field(default_factory=list)
    killed: str = ""
    kill_during: str = ""
    seconds: float = 0.0
    session_timeout: float = 0.0
    tables: list[dict[str, Any]] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether every pipeline is."""
        return bool(self.pipelines) and all(line.good for line in self.pipelines)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"good": self.good, **asdict(self)}


def show(console: Console, result: Result) -> None:
    """Print the final table and the verdict."""
    table = Table(title="what came of it", title_justify="left", header_style="bold")
    table.add_column("")
    for line in result.pipelines:
        table.add_column(line.pipeline, justify="right")
    for name, text_of in _LINES:
        table.add_row(name, *map(text_of, result.pipelines))
    console.print(table)
    if result.good:
        console.print(
            f"[bold green]All equal, nothing echoed[/] — in {result.seconds:.0f} s, with"
            f" {result.killed} killed {result.kill_during}."
        )
        return
    console.print("[bold red]Not equal:[/]")
    for line in result.pipelines:
        if not line.good:
            console.print(
                f"  {line.pipeline}: written {line.written:,}, applied {line.applied:,},"
                f" differences {line.differences}, echoes {line.echoes}"
            )
    for table_line in result.tables:
        if table_line.get("differences"):
            console.print(f"  {table_line}", markup=False)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _must_be_zero(count: int | None) -> str:
    if count is None:
        return "-"
    return "[green]0[/]" if count == 0 else f"[bold red]{count:,}[/]"


_LINES: tuple[tuple[str, Callable[[PipelineResult], str]], ...] = (
    ("rows written", lambda line: _count(line.written)),
    ("applied", lambda line: _count(line.applied)),
    ("redelivered", lambda line: _count(line.redelivered)),
    ("dropped as loopback", lambda line: _count(line.loopback)),
    ("kill → first applied", lambda line: _seconds(line.failover_seconds)),
    ("lag p50", lambda line: _seconds(line.lag_p50)),
    ("lag p99", lambda line: _seconds(line.lag_p99)),
    ("differences", lambda line: _must_be_zero(line.differences)),
    ("echoes", lambda line: _must_be_zero(line.echoes)),
)
"""A line of the table each, so that it fits into a terminal with 80 columns."""
