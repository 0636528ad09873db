"""``python -m tests.bench.bounds``: what bounds one pipeline.

``far``: how busy setl keeps the slower side. The target has a core of its own and is reached over a
link that adds 2 ms each way, as one on another machine would be. setl and the source have the other
core. Whichever side has more to do for a row bounds the rate. It is busy all the time if one part
of the work goes on while another waits, so its share of its core is the share of the possible rate
that is reached.

``cores``: one pipeline on one core, on two, and on two Spark workers. The same changes are read
from the same binlog by nodes of different masters, one after the other. What the driver's process
spends on a row bounds the rate of one pipeline, however many workers there are: its ceiling is one
row per so many seconds. All share one machine here, so rates say what the machine allows; the
ceiling says what more machines would.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import click
from rich.console import Console
from rich.table import Table

from setl.run.spark.security import VARIABLE
from setl_drills.proxy import Links
from setl_embedded import SparkMaster, SparkWorker
from setl_embedded.ports import HOST
from tests.bench.competition import WORKLOADS, Meter, Place, differences
from tests.bench.report import SOURCE, TARGET, Taken, json_option, number, write_json
from tests.bench.servers import Target, fresh_target, keep_option, scratch_folder, source_server
from tests.bench.setl_side import Setl, rows_applied
from tests.bench.watching import DRIVER, JVM, OWN, WORKERS, cpu_by_role, role_of_each, wait_for
from tests.bench.workloads import Workload, write

_LOOK_SECONDS = 0.02
_NAMES = ("w1", "w2", "w3", "wide")
_WIDE_ROWS = 4  # times fewer rows, since each is as long


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure what bounds one pipeline."""


def _wait(place: Place, done: Callable[[], bool]) -> None:
    wait_for(done, place.limit, "not everything was applied", every=_LOOK_SECONDS)


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


def measure_far(folder: Path, workload: Workload, links: Links, delay: float, master: str) -> Apart:
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
    here, there = sorted(os.sched_getaffinity(0))[:2]
    with ExitStack() as stack:
        source = stack.enter_context(source_server(folder))
        pin(source.pid, here)
        with source.connect() as connection:
            place = Place(folder, source, write(connection, workload))
        target = stack.enter_context(fresh_target(folder, "mysql", workload))
        pin(target.pid, there)
        port = links.add("target", HOST, target.mysql.port, delay).port
        setl = Setl(master=master, target_port=port)
        node = stack.enter_context(setl.standing_by(place, target, place.written.start))
        pin(node.pid, here)
        applied = stack.enter_context(rows_applied(node, target, workload.name))
        node.start()
        _wait(place, lambda: applied() >= workload.changes // 4)
        meter, first, began = Meter(node.pid, target, source.pid), applied(), time.perf_counter()
        _wait(place, lambda: applied() >= workload.changes)
        seconds = time.perf_counter() - began
        taken = meter.taken(seconds)
        wrong = tuple(differences(source, target, workload))
    return Apart(workload.name, workload.changes - first, seconds, busy(taken), wrong)


@main.command()
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
def far(
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
                    one = measure_far(folder, workload, links, delay / 1000, master)
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


@dataclass(frozen=True)
class Scaled:
    """What one master made of the workload.

    Attributes:
        workload: its name.
        master: where the tasks ran.
        changes: row changes.
        seconds: from the start of the channel until all are applied.
        cpu: CPU seconds by role; those of executors on a cluster are named after their worker.
        wrong: how the target differs from the source.
    """

    workload: str
    master: str
    changes: int
    seconds: float
    cpu: Mapping[str, float]
    wrong: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Row changes a second."""
        return self.changes / self.seconds

    @property
    def driver_seconds(self) -> float:
        """CPU seconds of the driver's Python process for a row, which no worker can take over."""
        return self.cpu[DRIVER] / self.changes

    @property
    def ceiling(self) -> float:
        """Row changes a second at which the driver's process would fill one core."""
        return 1 / self.driver_seconds

    def micro(self, *roles: str) -> float:
        """Microseconds of CPU for a row."""
        return 1e6 * sum(self.cpu.get(role, 0.0) for role in roles) / self.changes


@contextmanager
def masters(
    folder: Path, names: tuple[str, ...]
) -> Iterator[list[tuple[str, str, dict[str, int]]]]:
    """Name, address and workers' pids of each master; a cluster is started if one needs it.

    Args:
        folder: for logs.
        names: ``local[N]``, or ``cluster`` for two workers of one core.
    """
    with ExitStack() as stack:
        found: list[tuple[str, str, dict[str, int]]] = []
        for name in names:
            if name != "cluster":
                found.append((name, name, {}))
                continue
            master = stack.enter_context(SparkMaster(folder / "master"))
            stack.enter_context(patch.dict(os.environ, {VARIABLE: master.secret}))
            workers = [
                stack.enter_context(SparkWorker(folder / f"worker-{n}", master, f"worker-{n}"))
                for n in range(2)
            ]
            pids = {worker.name: worker.pid for worker in workers}
            found.append(("2 workers of 1 core", master.url, pids))
        yield found


def measure_scaled(
    place: Place, target: Target, name: str, url: str, workers: dict[str, int]
) -> Scaled:
    """Apply the workload once.

    Raises:
        RuntimeError: it failed, or hangs.
    """
    workload = place.written.workload
    side = Setl(master=url)
    with (
        side.standing_by(place, target, place.written.start) as node,
        rows_applied(node, target, workload.name) as applied,
    ):
        roots = {DRIVER: node.pid, **workers}
        before = cpu_by_role(roots)
        began = time.perf_counter()
        node.start()
        _wait(place, lambda: applied() >= workload.changes)
        seconds = time.perf_counter() - began
        after = cpu_by_role(roots)
    used = {role: spent - before.get(role, 0.0) for role, spent in after.items()}
    wrong = tuple(differences(place.source, target, workload))
    return Scaled(workload.name, name, workload.changes, seconds, used, wrong)


def print_scaled(results: list[Scaled], console: Console) -> None:
    """A table, one line for each."""
    shown = Table(title="One pipeline to MySQL; CPU in microseconds for a row change")
    for column in ("workload", "master", "rows/s", "driver", "its JVM", "Python tasks",
                   "executors", "ceiling rows/s", "contents"):  # fmt: skip
        shown.add_column(column, justify="left" if column in {"workload", "master"} else "right")
    for result in results:
        executors = [role for role in result.cpu if role not in {DRIVER, JVM, WORKERS}]
        shown.add_row(
            result.workload, result.master, number(result.rate), number(result.micro(DRIVER), 1),
            number(result.micro(JVM), 1), number(result.micro(WORKERS), 1),
            number(result.micro(*executors), 1) if executors else "",
            number(result.ceiling), "differ" if result.wrong else "equal",
        )  # fmt: skip
    console.print(shown)


@main.command()
@click.option("--workload", "names", multiple=True, default=("w1",), show_default=True,
              type=click.Choice(["w1", "w2"]), help="May be repeated.")  # fmt: skip
@click.option("--rows", default=200_000, show_default=True, help="Row changes in each.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each; the best one counts.")
@click.option("--master", "chosen", multiple=True, default=("local[1]", "local[2]", "cluster"),
              show_default=True, help="local[N], or cluster; may be repeated.")  # fmt: skip
@json_option
@keep_option
def cores(
    names: tuple[str, ...],
    rows: int,
    rounds: int,
    chosen: tuple[str, ...],
    file: Path | None,
    keep: bool,
) -> None:
    """Measure one pipeline of setl on one core, on two, and on two workers of a Spark cluster."""
    console = Console(width=None if os.isatty(1) else 150)
    results: list[Scaled] = []
    with scratch_folder("scale", keep=keep) as folder:
        with source_server(folder) as source, masters(folder, chosen) as places:
            for name in names:
                with source.connect() as connection:
                    written = write(connection, WORKLOADS[name](rows))
                for label, url, workers in places:
                    best: Scaled | None = None
                    for _ in range(rounds):
                        with fresh_target(folder, "mysql", written.workload) as target:
                            place = Place(folder, source, written)
                            taken = measure_scaled(place, target, label, url, workers)
                        if best is None or taken.seconds < best.seconds:
                            best = taken
                    assert best is not None
                    console.print(f"{name} on {label}: {best.rate:,.0f} rows/s")
                    results.append(best)
        print_scaled(results, console)
        if file is not None:
            write_json(file, results=[_plain(each) for each in results])
    if any(result.wrong for result in results):
        raise click.ClickException("; ".join(w for r in results for w in r.wrong))


def _plain(result: Scaled) -> dict[str, object]:
    return {**asdict(result), "rate": result.rate, "ceiling": result.ceiling,
            "driver_micros": result.micro(DRIVER)}  # fmt: skip


if __name__ == "__main__":
    main()
