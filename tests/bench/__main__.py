"""``python -m tests.bench``: setl beside the plain script, on servers made for it.

Both competitors read the same binlog, one after the other, each into a target of its own that
begins empty. Machines differ and are busy with other things, so only the ratio means much.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from setl_embedded import MariaDb
from tests.bench import setl_side
from tests.bench.contents import differences
from tests.bench.plain_script import Settings
from tests.bench.report import Figure, Taken, print_table, write_json
from tests.bench.servers import Target, fresh_target, mysql_settings, source_server
from tests.bench.workloads import SCHEMA, Workload, Written, inserts, updates, write

_ROOT = Path(__file__).parents[2]
# The embedded Elasticsearch overwrites a thousand documents a second, by its own fault.
_OVERWRITES = 20_000
_ROWS_UPDATED = {"mysql": 2_000, "elasticsearch": 200}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=200_000, show_default=True, help="Row changes in each workload.")
@click.option(
    "--target", type=click.Choice(["mysql", "elasticsearch", "all"]), default="all",
    show_default=True, help="Where to.",
)  # fmt: skip
@click.option(
    "--workload", type=click.Choice(["w1", "w2", "all"]), default="all", show_default=True,
    help="w1: inserts, 100 a statement, 1,000 a transaction; w2: updates of few rows, one a"
    " statement, 100 a transaction.",
)  # fmt: skip
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures here too.")
@click.option("--master", default="local[2]", show_default=True, help="Spark master of setl.")
@click.option(
    "--rounds", default=1, show_default=True, type=click.IntRange(min=1),
    help="Runs of each competitor, in turns; the best one counts.",
)  # fmt: skip
@click.option("--only", type=click.Choice(["plain", "setl"]), help="Run one competitor only.")
@click.option("--keep", is_flag=True, help="Keep logs and data.")
def main(
    rows: int,
    target: str,
    workload: str,
    file: Path | None,
    master: str,
    rounds: int,
    only: str | None,
    keep: bool,
) -> None:
    """Measure how fast changes are applied, side by side with a plain script."""
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="setl-bench-"))
    figures: list[Figure] = []
    run = _Run((only,) if only else ("plain", "setl"), rounds, master)
    try:
        for kind in ("mysql", "elasticsearch") if target == "all" else (target,):
            for name in ("w1", "w2") if workload == "all" else (workload,):
                case = folder / f"{name}-{kind}"
                figures.append(_case(case, kind, _sized(name, kind, rows), run, console))
    finally:
        if keep:
            console.print(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print_table(figures, console)
    if file is not None:
        write_json(figures, file, master=master)
    if any(figure.problems for figure in figures):
        sys.exit(1)


class _Run(NamedTuple):
    competitors: tuple[str, ...]
    rounds: int
    master: str


def _sized(name: str, kind: str, rows: int) -> Workload:
    if name == "w1":
        return inserts(rows)
    changes = rows if kind == "mysql" else min(rows, _OVERWRITES)
    return updates(changes, _ROWS_UPDATED[kind])


def _case(folder: Path, kind: str, workload: Workload, run: _Run, console: Console) -> Figure:
    taken: dict[str, list[Taken]] = {"plain": [], "setl": []}
    problems: list[str] = []
    with source_server(folder) as source:
        console.print(f"{workload.name.upper()} to {kind}: writing {workload.changes:,} changes")
        with source.connect() as connection:
            written = write(connection, workload)
        for competitor in run.competitors * run.rounds:
            with fresh_target(folder, kind, workload) as target:
                try:
                    if competitor == "plain":
                        took = _plain_script(source, written, target)
                    else:
                        limit = 120 + workload.changes / 500
                        took = setl_side.measure(
                            folder, source, written, target, master=run.master, limit=limit
                        )
                except RuntimeError as error:
                    problems.append(f"{competitor}: {error}")
                    continue
                if wrong := differences(source, target, workload):
                    problems += [f"{competitor}: {text}" for text in wrong]
                    continue
                taken[competitor].append(took)
                rate = workload.changes / took.seconds
                console.print(f"  {competitor}: {took.seconds:.1f} s, {rate:,.0f} a second")
    return Figure(
        workload.name,
        kind,
        workload.changes,
        tuple(taken["plain"]),
        tuple(taken["setl"]),
        tuple(problems),
    )


def _plain_script(source: MariaDb, written: Written, target: Target) -> Taken:
    settings = Settings(
        source=mysql_settings(source),
        start=(written.start.file, written.start.offset),
        end=(written.end.file, written.end.offset),
        schema=SCHEMA,
        table=written.workload.table,
        key="id",
        target=target.settings,
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.plain_script"],
        input=json.dumps(asdict(settings)), cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    answer = json.loads(done.stdout)
    if answer["rows"] != written.workload.changes:
        raise RuntimeError(f"it saw {answer['rows']} of {written.workload.changes} changes")
    return Taken(answer["seconds"], answer["cpu"])


if __name__ == "__main__":
    main()
