"""``python -m tests.bench.many_tables``: does a hot, slow table hold up the others?

A topic has DTS records of many tables. The consumer of the subscription demo, one thread that
applies one record after another, and setl bring it into the same MariaDB, in turns. How soon each
change could be seen there is read from the target's own binlog afterwards, and what the tables
hold is checked. Only ratios within one run mean much.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from setl_embedded import Kafka, MariaDb
from tests.bench import many_tables_workload as tables
from tests.bench.many_tables_contenders import CONTENDERS, Contender, Place
from tests.bench.many_tables_report import Result, delays, print_results, write_results
from tests.bench.many_tables_topic import all_at_once, at_a_rate, new_topic
from tests.bench.many_tables_workload import Change, Workload
from tests.bench.servers import add_system_tables
from tests.bench.visibility import CommitLog, differences, orphans, seen_at


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--changes", default=60_000, show_default=True, help="Row changes of a backlog.")
@click.option(
    "--paced-changes", default=12_000, show_default=True, help="Row changes written at a rate."
)
@click.option(
    "--rate", "rates", type=float, multiple=True, default=(300.0, 1000.0), show_default=True,
    help="Such a rate, in changes a second; may be repeated.",
)  # fmt: skip
@click.option("--tables", "count", default=50, show_default=True, help="Tables.")
@click.option("--hot-keys", default=200, show_default=True, help="Rows of the hot table.")
@click.option(
    "--slow-ms", default=2.0, show_default=True,
    help="Milliseconds that a row costs that is written into the hot table.",
)  # fmt: skip
@click.option(
    "--rounds", default=1, show_default=True, type=click.IntRange(min=1),
    help="Runs of each contender, in turns; the median counts.",
)  # fmt: skip
@click.option(
    "--only", multiple=True, type=click.Choice([c.name for c in CONTENDERS]),
    help="Run these contenders only; may be repeated.",
)  # fmt: skip
@click.option(
    "--case", "chosen", multiple=True, type=click.Choice(["updated", "appended", "paced"]),
    help="Run these cases only; may be repeated.",
)  # fmt: skip
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures here too.")
@click.option("--keep", is_flag=True, help="Keep logs and data.")
def main(
    changes: int,
    paced_changes: int,
    rates: tuple[float, ...],
    count: int,
    hot_keys: int,
    slow_ms: float,
    rounds: int,
    only: tuple[str, ...],
    chosen: tuple[str, ...],
    file: Path | None,
    keep: bool,
) -> None:
    """Measure how soon changes of cold tables arrive beside a hot, slow one."""
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="setl-bench-"))
    contenders = [c for c in CONTENDERS if not only or c.name in only]
    cases = [
        Case("updated", Workload(changes, hot_keys, count)),
        Case("appended", Workload(changes, 0, count)),
        *(
            Case("paced", Workload(paced_changes, keys, count), rate)
            for rate in rates
            for keys in dict.fromkeys((hot_keys, 0))
        ),
    ]
    results: list[Result] = []
    try:
        with Kafka(folder / "kafka") as kafka, MariaDb(folder / "target", "target", 12) as target:
            add_system_tables(target)
            bench = Bench(Place(folder, kafka.brokers, target), slow_ms / 1000, console)
            for case in cases:
                if not chosen or case.name in chosen:
                    results += bench.run(case, contenders, rounds)
    finally:
        if keep:
            console.print(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print_results(results, console)
    if file is not None:
        write_results(results, file)
    if any(result.problems for result in results):
        sys.exit(1)


@dataclass(frozen=True)
class Case:
    """What is written and when.

    Attributes:
        name: updated (few hot rows, a backlog), appended (only ever new rows of the hot table,
            a backlog), or paced (either, written at a rate).
        workload: the changes.
        rate: changes a second that are written, 0 for a backlog.
    """

    name: str
    workload: Workload
    rate: float = 0.0

    @property
    def title(self) -> str:
        """For people."""
        if not self.rate:
            return self.name
        return f"{'updated' if self.workload.hot_keys else 'appended'}, {self.rate:g}/s"


class Bench:
    """Runs cases on one Kafka and one MariaDB."""

    def __init__(self, place: Place, slow: float, console: Console) -> None:
        self._place = place
        self._slow = slow
        self._console = console

    def run(self, case: Case, contenders: list[Contender], rounds: int) -> Iterator[Result]:
        """One result for each contender and round."""
        written = tables.transactions(case.workload)
        backlog = ""
        if not case.rate:
            backlog = new_topic(self._place.brokers)
            all_at_once(self._place.brokers, backlog, written)
        self._console.print(f"{case.title}: {sum(map(len, written)):,} changes")
        for _ in range(rounds):
            for contender in contenders:
                if contender.backlog_only and case.rate:
                    continue
                result = self._measure(case, contender, written, backlog)
                self._console.print(f"  {contender.name}: {result.summary}")
                yield result

    def _measure(
        self, case: Case, contender: Contender, written: list[list[Change]], backlog: str
    ) -> Result:
        changes = [change for transaction in written for change in transaction]
        place, target = self._place, self._place.target
        with target.connect() as connection:
            tables.create_tables(connection, case.workload, self._slow)
        topic = backlog or new_topic(place.brokers)
        try:
            with contender.ready(place, topic, len(changes)) as running, CommitLog(target) as log:
                began = running.start()
                if case.rate:
                    available = at_a_rate(place.brokers, topic, written, case.rate)
                else:
                    available = [began] * len(changes)
                running.wait(120 + len(changes) / 100)
        except RuntimeError as error:
            return Result(case.title, contender.name, len(changes), problems=[str(error)])
        commits = list(log.commits())
        seen = seen_at(commits, changes)
        bad, count = orphans(commits)
        return Result(
            case.title,
            contender.name,
            len(changes),
            seconds=commits[-1].at - available[0],
            cold=delays(changes, seen, available, case.workload.cold),
            hot=delays(changes, seen, available, (tables.HOT,)),
            orphans=bad,
            commits=count,
            problems=differences(target, tables.contents(written)),
        )


if __name__ == "__main__":
    main()
