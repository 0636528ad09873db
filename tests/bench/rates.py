"""``python -m tests.bench.rates``: how fast changes are applied, beside what people use instead.

All read the same binlog, one after the other, each into a target of its own. Machines differ and
are busy with other things, so only ratios within one call mean much. Two minutes on two cores:

    python -m tests.bench.rates --workload w1 --only setl,replica --rounds 2
"""

from __future__ import annotations

import click

from tests.bench import options
from tests.bench.figures import finish, floors_met, print_results, wide_console
from tests.bench.peers.catalogue import CHANGES, peers
from tests.bench.servers import scratch_folder
from tests.bench.turns import Peer, Result, run
from tests.bench.workloads import WORKLOADS, Workload

# The embedded Elasticsearch overwrites a thousand documents a second, and stalls when it holds
# a million: by its own fault, and no subject of this measurement.
_SEARCH = {"w3": 20_000, "many": 20_000, "big": 200_000}
# They write every last image of each ten thousand changes, setl fewer of them.
_SEARCH_SLOW = {"w2": 20_000}
_SLOW = ("plain", "debezium")


def sized(name: str, target: str, peer: str, rows: int | None) -> Workload:
    """A workload in the size in which a peer can do it in a few minutes."""
    workload = WORKLOADS[name]
    rows = rows or (_SEARCH if target == "elasticsearch" else {}).get(name, workload.changes)
    if target == "elasticsearch" and peer in _SLOW:
        rows = min(rows, _SEARCH_SLOW.get(name, rows))
    return workload.sized(rows)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@options.names(
    "--workload", [*WORKLOADS], "w1,w2,w3",
    "w1: inserts, 100 a statement, 1,000 a transaction; w2: updates of 2,000 rows, one a statement,"
    " 100 a transaction; w3: 60/25/15 % updates, inserts and deletes over three tables, 20 a"
    " transaction; wide: inserts of 60 columns and 2 KB; many: as w3 over 200 tables; big: one"
    " transaction; or all.",
)  # fmt: skip
@options.names("--only", CHANGES, "setl,replica", f"Of {', '.join(CHANGES)}; or all.")
@options.target("mysql")
@click.option("--rows", type=int, help="Row changes in each workload, instead of the usual number.")
@options.rounds(1)
@options.family("--servers")
@options.master
@click.option("--batch-rows", type=int, help="The pipeline's `batch_rows`, if not its default.")
@options.floors
@options.json_file
@options.keep
def main(workload, only, target, rows, rounds, servers, master, batch_rows, floors, file, keep):
    """Measure how fast changes are applied, side by side with what people use instead."""
    console = wide_console()
    settings = {} if batch_rows is None else {"batch_rows": batch_rows}
    results: list[Result] = []
    with scratch_folder("bench", keep=keep) as folder:
        for kind in target:
            for name in workload:
                sizes: dict[Workload, list[Peer]] = {}
                for peer in peers(only, servers, master, **settings):
                    sizes.setdefault(sized(name, kind, peer.name, rows), []).append(peer)
                for size, those in sizes.items():
                    place = folder / f"{name}-{kind}-{size.changes}"
                    results += run(size, kind, those, place, console, rounds, servers)
    print_results(results, console)
    about = {"master": master, "batch_rows": batch_rows, "servers": servers}
    finish(console, file, results, floors_met(results) if floors else [], **about)


if __name__ == "__main__":
    main()
