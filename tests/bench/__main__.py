"""``python -m tests.bench``: setl's rates beside what people use instead, on servers made for it.

All read the same binlog, one after the other, each into a target of its own. Machines differ and
are busy with other things, so only ratios within one call mean much.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from tests.bench.competition import WORKLOADS, Case, Competitor, run
from tests.bench.peers.scripts import Bulk, Debezium, Plain
from tests.bench.peers.server_tools import replicas
from tests.bench.report import (
    Result,
    floors_met,
    json_option,
    print_tables,
    print_verdicts,
    wide_console,
    write_json,
)
from tests.bench.servers import TARGETS, family_option, keep_option, scratch_folder, target_option
from tests.bench.setl_side import Setl, master_option


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--workload", "names", multiple=True, default=("all",), show_default=True,
    type=click.Choice([*WORKLOADS, "all"]),
    help="w1: inserts, 100 a statement, 1,000 a transaction; w2: updates of 2,000 rows, one a"
    " statement, 100 a transaction; w3: 60/25/15 % updates, inserts and deletes over three tables,"
    " 20 a transaction; wide: inserts of 60 columns and 2 KB; many: as w3 over 200 tables; big: one"
    " transaction. May be repeated.",
)  # fmt: skip
@click.option(
    "--source", type=click.Choice(["binlog", "kafka", "all"]), default="binlog", show_default=True,
    help="What setl reads. With all it takes part twice.",
)  # fmt: skip
@target_option
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
@family_option("--servers", help="Family of the databases. With mysql setl and replicas take part.")
@master_option
@click.option("--batch-rows", type=int, help="The pipeline's `batch_rows`, if not its default.")
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
    floors: bool,
    file: Path | None,
    keep: bool,
) -> None:
    """Measure how fast changes are applied, side by side with what people use instead."""
    console = wide_console()
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
    results: list[Result] = []
    with scratch_folder("bench", keep=keep) as folder:
        for kind in TARGETS if target == "all" else (target,):
            for name in WORKLOADS if "all" in names else names:
                console.print(f"{name} to {kind}", style="bold")
                case = Case(name, kind, competitors, rows, rounds, family)
                results += run(case, folder / f"{name}-{kind}", console)
    print_tables(results, console)
    found = floors_met(results)
    if floors:
        print_verdicts(found, console)
    if file is not None:
        write_json(
            file,
            master=master,
            batch_rows=batch_rows,
            servers=family,
            figures=[result.as_json() for result in results],
            floors=[asdict(verdict) for verdict in found],
        )
    if any(r.problems for r in results) or (floors and any(v.met is False for v in found)):
        sys.exit(1)


if __name__ == "__main__":
    main()
