"""``python -m tests.bench.plots FOLDER``: setl's rate against batch size, and against cores.

Writes `batch_rows.svg`, `cores.svg` and `plots.json`. All points of a workload read one binlog.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from tests.bench.cases import WORKLOADS, Case, run
from tests.bench.chart import Line, line_chart
from tests.bench.report import Result, write_json
from tests.bench.setl_side import Setl

_BATCH_ROWS = (500, 2_000, 10_000, 40_000)
_TARGETS = ("mysql", "elasticsearch")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--workload", "names", multiple=True, default=("w1", "w2", "w3"), show_default=True,
    type=click.Choice(list(WORKLOADS)), help="A line each; may be repeated.",
)  # fmt: skip
@click.option("--target", type=click.Choice(_TARGETS), default="mysql", show_default=True)
@click.option("--rows", type=int, help="Row changes in each workload, instead of the usual number.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each point; the best counts.")
@click.option(
    "--batch-rows", "sizes", multiple=True, type=int, default=_BATCH_ROWS, show_default=True,
    help="A point each; may be repeated.",
)  # fmt: skip
@click.option(
    "--cores", type=int, default=os.cpu_count() or 1, show_default=True, help="local[1] to this."
)
def main(
    folder: Path,
    names: tuple[str, ...],
    target: str,
    rows: int | None,
    rounds: int,
    sizes: tuple[int, ...],
    cores: int,
) -> None:
    """Plot how fast setl applies changes."""
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    by_size = [
        Setl(name=f"{size:,}", master=f"local[{cores}]", settings=(("batch_rows", size),))
        for size in sizes
    ]
    by_cores = [Setl(name=f"local[{n}]", master=f"local[{n}]") for n in range(1, cores + 1)]
    results: list[Result] = []
    data = Path(tempfile.mkdtemp(prefix="setl-bench-"))
    try:
        for name in names:
            case = Case(name, target, [*by_size, *by_cores], rows, rounds)
            results += run(case, data / name, console)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    for file, across, variants in (
        ("batch_rows", "batch_rows", by_size),
        ("cores", "Spark master", by_cores),
    ):
        lines = {name: _line(results, name, variants) for name in names}
        chart = line_chart(f"row changes to {target}", across, "changes/s", lines)
        (folder / f"{file}.svg").write_text(chart)
    write_json(folder / "plots.json", figures=[result.as_json() for result in results])
    problems = [f"{r.workload}, {r.competitor}: {p}" for r in results for p in r.problems]
    if problems:
        raise click.ClickException("; ".join(problems))


def _line(results: Sequence[Result], workload: str, variants: Sequence[Setl]) -> Line:
    rates = {r.competitor: r.rate for r in results if r.workload == workload and not r.wrong}
    return [(v.name, rate) for v in variants if (rate := rates.get(v.name)) is not None]


if __name__ == "__main__":
    main()
