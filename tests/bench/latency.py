"""``python -m tests.bench.latency``: how soon a change can be seen, under a steady load.

At 20 transactions a second, with and without Spark SQL, and at half of what setl can do, which is
measured first; `tests.bench.visibility` says how. Three minutes on two cores for each target:

    python -m tests.bench.latency --target mysql --seconds 20
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from tests.bench import options
from tests.bench import visibility as seen
from tests.bench.contents import differences
from tests.bench.figures import Latency, ceilings_met, finish, print_latencies, wide_console
from tests.bench.peers.setl import Setl
from tests.bench.servers import fresh_target, scratch_folder, source_server
from tests.bench.turns import StartPoint, run
from tests.bench.visibility import CHANGED, EXPRESSIONS_LOAD, STEADY_LOAD
from tests.bench.workloads import WORKLOADS, write

LOADS = ("steady", "half", "expressions")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@options.target("all")
@options.names("--only", LOADS, "all", "Under which load: steady, half, expressions.")
@click.option("--seconds", default=60.0, show_default=True, help="How long each is measured.")
@click.option("--rows", default=WORKLOADS["w1"].changes, show_default=True,
              help="Row changes from which setl's maximum is measured first.")  # fmt: skip
@options.family("--servers")
@options.master
@options.floors
@options.json_file
@options.keep
def main(target, only, seconds, rows, servers, master, floors, file, keep):
    """Measure the latency at 20 transactions a second and at half of what setl can do."""
    console = wide_console()
    setl, expressing = Setl(master), Setl(master, expressions=True)
    found: list[Latency] = []
    with scratch_folder("latency", keep=keep) as folder:
        for kind in target:
            plain = [STEADY_LOAD] if "steady" in only else []
            if "half" in only:
                (fastest,) = run(WORKLOADS["w1"].sized(rows), kind, [setl], folder / kind, console,
                                 family=servers)  # fmt: skip
                if fastest.rate is None:
                    found.append(Latency(kind, "half", problems=tuple(fastest.problems)))
                else:
                    plain.append(seen.half_of(fastest.rate))
            made = [EXPRESSIONS_LOAD] if "expressions" in only else []
            for peer, loads in ((setl, plain), (expressing, made)):
                try:
                    found += measure(peer, folder, kind, loads, seconds, servers)
                except RuntimeError as error:  # what was measured before must not be lost
                    found.append(Latency(kind, "not measured", problems=(str(error),)))
    print_latencies(found, console)
    verdicts = ceilings_met(found) if floors else []
    finish(console, file, found, verdicts, master=master, servers=servers)


def measure(
    setl: Setl, folder: Path, kind: str, loads: Sequence[seen.Load], seconds: float, family: str
) -> Iterator[Latency]:
    """One load after the other, through one pipeline."""
    if not loads:
        return
    with ExitStack() as stack:
        source = stack.enter_context(source_server(folder, family))
        target = stack.enter_context(fresh_target(folder, kind, CHANGED, family=family))
        with source.connect() as connection:
            start = StartPoint(folder, source, write(connection, CHANGED))
        node = stack.enter_context(setl.standing_by(start, target))
        look = stack.enter_context(seen.looking(target))
        node.start()
        writer = seen.Writer(source)
        for load in loads:
            yield seen.under(load, writer, look, kind, seconds)
        if wrong := differences(source, target, CHANGED):
            yield Latency(kind, "contents at the end", problems=tuple(wrong))


if __name__ == "__main__":
    main()
