"""``python -m tests.bench.far``: how busy setl keeps the slower side of a pipeline.

The target has a core of its own and is reached over a link that adds 2 ms each way, as one on
another machine would be. setl and the source have the other core. Whichever side has more to do
for a row bounds the rate. It is busy all the time if one part of the work goes on while another
waits, so its share of its core is the share of the possible rate that is reached.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from setl_drills.proxy import Links
from setl_embedded.ports import HOST
from tests.bench.cases import WORKLOADS
from tests.bench.competitor import Meter, Place, differences
from tests.bench.report import SOURCE, TARGET, Taken, json_option, number, write_json
from tests.bench.servers import fresh_target, keep_option, scratch_folder, source_server
from tests.bench.setl_side import Setl, rows_applied
from tests.bench.watching import DRIVER, OWN, role_of_each, wait_for
from tests.bench.workloads import Workload, write

_NAMES = ("w1", "w2", "w3", "wide")
_LOOK_SECONDS = 0.02
_WIDE_ROWS = 4  # times fewer rows, since each is as long


@dataclass(frozen=True)
class Apart:
    """What one run made of a workload.

    Attributes:
        workload: its name.
        changes: row changes that were measured.
        seconds: in which they were applied.
        busy: of each side, how much of its core it used in that time.
        wrong: how the target differs from the source.
    """

    workload: str
    changes: int
    seconds: float
    busy: Mapping[str, float]
    wrong: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Row changes a second."""
        return self.changes / self.seconds

    @property
    def reached(self) -> float:
        """The share of what the slower side alone allows."""
        return max(self.busy.values())


def pin(pid: int, core: int) -> None:
    """Keep a process, and all that it has started, on one core."""
    for each in role_of_each({DRIVER: pid}):
        with suppress(OSError):  # it has just ended
            for thread in Path(f"/proc/{each}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {core})


def busy(taken: Taken) -> dict[str, float]:
    """How much of its core each side used."""
    near = sum(taken.cpu.get(role, 0.0) for role in (*OWN, SOURCE))
    return {"setl": near / taken.seconds, "target": taken.cpu.get(TARGET, 0.0) / taken.seconds}


def measure(folder: Path, workload: Workload, links: Links, delay: float, master: str) -> Apart:
    """Apply a workload once; the first quarter, in which a JVM warms up, is not measured.

    Args:
        folder: for logs and data.
        workload: what is written before.
        links: carries the link to the target.
        delay: of the link, seconds each way.
        master: Spark master of setl.

    Raises:
        RuntimeError: it failed, or hangs.
    """
    near, far = sorted(os.sched_getaffinity(0))[:2]
    with ExitStack() as stack:
        source = stack.enter_context(source_server(folder))
        pin(source.pid, near)
        with source.connect() as connection:
            place = Place(folder, source, write(connection, workload))
        target = stack.enter_context(fresh_target(folder, "mysql", workload))
        pin(target.pid, far)
        port = links.add("target", HOST, target.mysql.port, delay).port
        setl = Setl(master=master, target_port=port)
        node = stack.enter_context(setl.standing_by(place, target, place.written.start))
        pin(node.pid, near)
        applied = stack.enter_context(rows_applied(node, target, workload.name))
        node.start()
        _wait(place, lambda: applied() >= workload.changes // 4)
        meter, first, began = Meter(node.pid, target, source.pid), applied(), time.perf_counter()
        _wait(place, lambda: applied() >= workload.changes)
        seconds = time.perf_counter() - began
        taken = meter.taken(seconds)
        wrong = tuple(differences(source, target, workload))
    return Apart(workload.name, workload.changes - first, seconds, busy(taken), wrong)


def _wait(place: Place, done: Callable[[], bool]) -> None:
    wait_for(done, place.limit, "not everything was applied", every=_LOOK_SECONDS)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--workload", "names", multiple=True, default=_NAMES, show_default=True,
              type=click.Choice(_NAMES), help="May be repeated.")  # fmt: skip
@click.option("--rows", default=400_000, show_default=True,
              help="Row changes in each; a quarter of them where rows are wide.")  # fmt: skip
@click.option("--rounds", default=1, show_default=True, help="Runs of each, all are shown.")
@click.option("--delay", default=2.0, show_default=True, help="Of the link, in ms each way.")
@click.option("--master", "masters", multiple=True, default=("local[2]",), show_default=True,
              help="Spark master of setl; may be repeated.")  # fmt: skip
@json_option
@keep_option
def main(
    names: tuple[str, ...],
    rows: int,
    rounds: int,
    delay: float,
    masters: tuple[str, ...],
    file: Path | None,
    keep: bool,
) -> None:
    """Measure how much of what the slower side allows is reached where the target is far away."""
    console = Console(width=None if os.isatty(1) else 150)
    results: list[tuple[str, Apart]] = []
    with scratch_folder("far", keep=keep) as folder:
        with Links() as links:
            for name in names:
                workload = WORKLOADS[name](rows // _WIDE_ROWS if name == "wide" else rows)
                for master in [*masters] * rounds:
                    one = measure(folder, workload, links, delay / 1000, master)
                    console.print(f"{name} on {master}: {one.rate:,.0f} rows/s")
                    results.append((master, one))
        print_apart(results, console)
        if file is not None:
            write_json(file, delay=delay, results=[
                {"master": master, "rate": one.rate, **asdict(one)} for master, one in results
            ])  # fmt: skip
    if wrong := [text for _, one in results for text in one.wrong]:
        raise click.ClickException("; ".join(wrong))


def print_apart(results: list[tuple[str, Apart]], console: Console) -> None:
    """A line for each run."""
    shown = Table(title="A target that is far away; of each side, how busy its core was")
    for column in ("workload", "master", "rows/s", "setl", "target", "reached", "contents"):
        shown.add_column(column, justify="left" if column in {"workload", "master"} else "right")
    for master, one in results:
        shares = [number(share, 2) for share in (*one.busy.values(), one.reached)]
        equal = "differ" if one.wrong else "equal"
        shown.add_row(one.workload, master, number(one.rate), *shares, equal)
    console.print(shown)


if __name__ == "__main__":
    main()
