"""``python -m tests.bench``: setl beside what people use instead, on servers made for it.

All read the same binlog, one after the other, each into a target of its own. Machines differ and
are busy with other things, so only ratios within one run mean much.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import click
from rich.console import Console

from tests.bench import latency
from tests.bench.competition import WORKLOADS, Case, Competitor, run
from tests.bench.report import (
    Latency,
    Result,
    json_option,
    print_latencies,
    print_tables,
    print_verdicts,
    verdicts,
    write_json,
)
from tests.bench.scripts import Bulk, Debezium, Plain
from tests.bench.server_tools import replicas
from tests.bench.servers import keep_option
from tests.bench.setl_side import Setl

_TARGETS = ("mysql", "elasticsearch")
_LATENCY = "latency"
_WIDTH = 150  # of tables, where the output is no terminal


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--workload", "names", multiple=True, default=("all",), show_default=True,
    type=click.Choice([*WORKLOADS, _LATENCY, "all"]),
    help="w1: inserts, 100 a statement, 1,000 a transaction; w2: updates of 2,000 rows, one a"
    " statement, 100 a transaction; w3: 60/25/15 % updates, inserts and deletes over three tables,"
    " 20 a transaction; wide: inserts of 60 columns and 2 KB; many: as w3 over 200 tables; big: one"
    " transaction; latency: from commit to visible. May be repeated.",
)  # fmt: skip
@click.option(
    "--source", type=click.Choice(["binlog", "kafka", "all"]), default="binlog", show_default=True,
    help="What setl reads. With all it takes part twice.",
)  # fmt: skip
@click.option(
    "--target", type=click.Choice([*_TARGETS, "all"]), default="all", show_default=True,
    help="Where to.",
)  # fmt: skip
@click.option("--rows", type=int, help="Row changes in each workload, instead of the usual number.")
@click.option(
    "--rounds", default=1, show_default=True, type=click.IntRange(min=1),
    help="Runs of each competitor, in turns; the best one counts.",
)  # fmt: skip
@click.option(
    "--only", multiple=True,
    type=click.Choice(["replica", "bulk", "debezium", "plain", "setl"]),
    help="Run these competitors only; may be repeated.",
)  # fmt: skip
@click.option(
    "--servers", "family", type=click.Choice(["mariadb", "mysql"]), default="mariadb",
    show_default=True, help="Family of the databases. With mysql setl and replicas take part.",
)  # fmt: skip
@click.option("--master", default="local[2]", show_default=True, help="Spark master of setl.")
@click.option("--batch-rows", type=int, help="The pipeline's `batch_rows`, if not its default.")
@click.option(
    "--seconds", default=60.0, show_default=True, help="How long latency is measured, each time."
)
@click.option("--floors", is_flag=True, help="Say which floors are met; exit code 1 if one is not.")
@json_option
@keep_option
def main(
    names: tuple[str, ...],
    source: str,
    target: str,
    rows: int | None,
    rounds: int,
    only: tuple[str, ...],
    family: str,
    master: str,
    batch_rows: int | None,
    seconds: float,
    floors: bool,
    file: Path | None,
    keep: bool,
) -> None:
    """Measure how fast changes are applied, side by side with what people use instead."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    folder = Path(tempfile.mkdtemp(prefix="setl-bench-"))
    settings = () if batch_rows is None else (("batch_rows", batch_rows),)
    setl = [
        Setl(kind, "setl" if kind == "binlog" else "setl, kafka", master, settings)
        for kind in ("binlog", "kafka")
        if source in {kind, "all"}
    ]
    others: list[Competitor] = [*replicas(family)]
    if family == "mariadb":
        others += [Bulk(), Debezium(), Plain()]
    competitors = [c for c in [*others, *setl] if not only or c.name.partition(",")[0] in only]
    own = replace(setl[0], source="binlog")
    bench = _Bench(folder, console, competitors, own, rows, rounds, family)
    chosen = [*WORKLOADS, _LATENCY] if "all" in names else list(names)
    try:
        for kind in _TARGETS if target == "all" else (target,):
            for name in (name for name in WORKLOADS if name in chosen):
                bench.compare(name, kind)
            if _LATENCY in chosen:
                bench.look_at_latency(kind, seconds)
    finally:
        if keep:
            console.print(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    found = verdicts(bench.results, bench.latencies)
    bench.report()
    if floors:
        print_verdicts(found, console)
    if file is not None:
        write_json(
            file,
            master=master,
            batch_rows=batch_rows,
            servers=family,
            figures=[result.as_json() for result in bench.results],
            latencies=[asdict(one) for one in bench.latencies],
            floors=[asdict(verdict) for verdict in found],
        )
    if bench.failed or (floors and any(verdict.met is False for verdict in found)):
        sys.exit(1)


@dataclass
class _Bench:
    """Everything that is measured in one call.

    Attributes:
        folder: for logs and data.
        console: where to say how it goes.
        competitors: who takes part.
        setl: whose latency is measured.
        rows: row changes of each workload, None for the usual number.
        rounds: runs of each competitor.
        family: of the databases.
        results: so far.
        latencies: so far.
    """

    folder: Path
    console: Console
    competitors: Sequence[Competitor]
    setl: Setl
    rows: int | None
    rounds: int
    family: str
    results: list[Result] = field(default_factory=list[Result])
    latencies: list[Latency] = field(default_factory=list[Latency])

    def compare(self, name: str, kind: str) -> None:
        """One workload into one target."""
        self.console.print(f"{name} to {kind}", style="bold")
        case = Case(name, kind, self.competitors, self.rows, self.rounds, self.family)
        self.results += run(case, self.folder / f"{name}-{kind}", self.console)

    def look_at_latency(self, kind: str, seconds: float) -> None:
        """Under each load; the second is half of what setl does with w1."""
        self.console.print(f"latency to {kind}", style="bold")
        folder = self.folder / f"latency-{kind}"
        try:
            loads = [latency.steady(), latency.half_of(self._rate(kind))]
            self.latencies += latency.measure(self.setl, folder, kind, loads, seconds, self.family)
            made, loads = replace(self.setl, expressions=True), [latency.with_expressions()]
            self.latencies += latency.measure(made, folder, kind, loads, seconds, self.family)
        except RuntimeError as error:  # what was measured before must not be lost
            self.latencies.append(Latency(kind, "not measured", problems=(str(error),)))

    def _rate(self, kind: str) -> float:
        """Of w1 by setl; measured now if it was not before."""
        measured = [r for r in self.results if (r.workload, r.target) == ("w1", kind)]
        measured = [r for r in measured if r.competitor == "setl"]
        if not measured:
            case = Case(
                "w1", kind, [replace(self.setl, name="setl")], self.rows, family=self.family
            )
            measured = list(run(case, self.folder / f"rate-{kind}", self.console))
        if measured[0].rate is None:
            raise RuntimeError("; ".join(measured[0].problems))
        return measured[0].rate

    def report(self) -> None:
        """Print what was found."""
        if self.results:
            print_tables(self.results, self.console)
        if self.latencies:
            print_latencies(self.latencies, self.console)

    @property
    def failed(self) -> bool:
        """Whether setl, or whoever should not, did anything wrong."""
        return any(r.problems for r in self.results) or any(o.problems for o in self.latencies)


if __name__ == "__main__":
    main()
