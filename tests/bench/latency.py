"""``python -m tests.bench.latency``: how soon a change can be seen, under a steady load.

Transactions of new rows are committed at a rate. A thread asks the target every few milliseconds
for the rows that it has not seen yet, by their keys, which grow by one: a transaction is visible at
the end of the first answer after which none of its rows is missing. The Elasticsearch target is
asked with GET by id; searches see a document after the index's next refresh, which is no matter
of setl's.
"""

from __future__ import annotations

import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import click
from elasticsearch import Elasticsearch as Client

from setl_embedded import MariaDb
from tests.bench.competition import Case, StartPoint, differences, run
from tests.bench.report import (
    EXPRESSIONS,
    HALF,
    STEADY,
    Latency,
    ceilings_met,
    json_option,
    print_latencies,
    print_verdicts,
    wide_console,
    write_json,
)
from tests.bench.servers import (
    TARGETS,
    Target,
    family_option,
    fresh_target,
    keep_option,
    scratch_folder,
    source_server,
    target_option,
)
from tests.bench.setl_side import Setl, master_option
from tests.bench.watching import wait_for
from tests.bench.workloads import NARROW, SCHEMA, Workload, Written, fill, position

_LOOK_SECONDS = 0.005
_AT_ONCE = 20_000  # rows that one look asks for at most
_AT_ONCE_SEARCH = 200
_TEXTS = 500  # different rows, but for their key
_WARM_UP_SECONDS = 5.0  # at most; transactions of the beginning that do not count


class Load(NamedTuple):
    """What is committed.

    Attributes:
        name: `STEADY` or `HALF`.
        transactions: a second.
        rows: of each transaction.
    """

    name: str
    transactions: float
    rows: int


STEADY_LOAD = Load(STEADY, 20.0, 5)


def half_of(rate: float) -> Load:
    """Half of a number of rows a second, in transactions of a hundred."""
    return Load(HALF, rate / 2 / 100, 100)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@target_option
@click.option("--seconds", default=60.0, show_default=True, help="How long each is measured.")
@click.option("--rows", type=int, help="Row changes from which setl's maximum is measured first.")
@family_option("--servers", help="Family of the databases.")
@master_option
@click.option("--floors", is_flag=True, help="Say which aims are met; exit code 1 if one is not.")
@json_option
@keep_option
def main(
    target: str,
    seconds: float,
    rows: int | None,
    family: str,
    master: str,
    floors: bool,
    file: Path | None,
    keep: bool,
) -> None:
    """Measure the latency at 20 transactions a second and at half of what setl can do."""
    console = wide_console()
    setl = Setl(master=master)
    found: list[Latency] = []
    with scratch_folder("latency", keep=keep) as folder:
        for kind in TARGETS if target == "all" else (target,):
            (fastest,) = run(Case("w1", kind, [setl], rows, family=family), folder / kind, console)
            if fastest.rate is None:
                found.append(Latency(kind, "not measured", problems=fastest.problems))
                continue
            for made, loads in (
                (setl, [STEADY_LOAD, half_of(fastest.rate)]),
                (replace(setl, expressions=True), [STEADY_LOAD._replace(name=EXPRESSIONS)]),
            ):
                try:
                    found += measure(made, folder, kind, loads, seconds, family)
                except RuntimeError as error:  # what was measured before must not be lost
                    found.append(Latency(kind, "not measured", problems=(str(error),)))
    print_latencies(found, console)
    verdicts = list(ceilings_met(found))
    if floors:
        print_verdicts(verdicts, console)
    if file is not None:
        write_json(
            file,
            master=master,
            servers=family,
            latencies=[asdict(one) for one in found],
            floors=[asdict(verdict) for verdict in verdicts],
        )
    if any(one.problems for one in found) or (floors and not all(v.met for v in verdicts)):
        sys.exit(1)


def measure(
    setl: Setl,
    folder: Path,
    kind: str,
    loads: Sequence[Load],
    seconds: float,
    family: str = "mariadb",
) -> Iterator[Latency]:
    """One after the other, through one pipeline.

    Args:
        setl: its settings.
        folder: for logs and data.
        kind: of target, mysql or elasticsearch.
        loads: what is committed.
        seconds: for how long each, after as many, but five at most, that do not count: they show
            how long a JVM takes to get warm.
        family: of the databases.
    """
    workload = Workload("latency", 0, 1)
    with (
        source_server(folder, family) as source,
        fresh_target(folder, kind, workload, family=family) as target,
    ):
        with source.connect() as connection:
            fill(connection, workload)
            start = position(connection)
        other_position = StartPoint(folder, source, Written(workload, start, start))
        with setl.standing_by(other_position, target, start) as node, looking(target) as look:
            node.start()
            writer = Writer(source)
            for load in loads:
                yield under(load, writer, look, kind, seconds)
            if wrong := differences(source, target, workload):
                yield Latency(kind, "contents at the end", problems=tuple(wrong))


def under(load: Load, writer: Writer, look: Look, kind: str, seconds: float) -> Latency:
    """Commit for so many seconds, and look; `measure` says more."""
    watch = _Watch(look, writer.last)
    try:
        with watch:
            writer.commit(load, min(_WARM_UP_SECONDS, seconds))
            committed = writer.commit(load, seconds)
            wait_for(lambda: watch.seen >= writer.last, 120, "not everything could be seen")
    except RuntimeError as error:
        return Latency(kind, load.name, problems=(str(error),))
    delays = sorted(watch.seen_at(last) - at for last, at in committed)
    took = committed[-1][1] - committed[0][1]
    rows = committed[-1][0] - committed[0][0]
    return Latency(
        kind, load.name, len(delays), rows / took if took else 0.0, _quantile(delays, 0.5),
        _quantile(delays, 0.99), delays[-1],
    )  # fmt: skip


def _quantile(ordered: Sequence[float], fraction: float) -> float:
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


class Writer:
    """Commits transactions of new rows at the source.

    Attributes:
        last: key of the newest row.
    """

    def __init__(self, source: MariaDb) -> None:
        self.last = 0
        self._connection = source.connect(database=SCHEMA)
        random = Random(20260101)
        # Ready text, so that writing costs next to nothing beside what is measured.
        self._texts = [
            ",".join(map(self._connection.escape, NARROW.row(0, random)[1:])) for _ in range(_TEXTS)
        ]

    def commit(self, load: Load, seconds: float) -> list[tuple[int, float]]:
        """Commit for so long; returns the last key of each transaction, and when it was there."""
        committed: list[tuple[int, float]] = []
        began = time.monotonic()
        with self._connection.cursor() as cursor:
            for number in range(max(1, int(load.transactions * seconds))):
                wait = began + number / load.transactions - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
                first, self.last = self.last + 1, self.last + load.rows
                keys = range(first, self.last + 1)
                rows = ",".join(f"({key},{self._texts[key % _TEXTS]})" for key in keys)
                cursor.execute(f"INSERT INTO latency VALUES {rows}")
                committed.append((self.last, time.monotonic()))
        return committed


Look = Callable[[int], int]
"""Takes a key up to which all rows were seen, and returns up to which they are seen now."""


class _Watch:
    """Looks again and again; a context manager.

    Attributes:
        seen: key up to which all rows have been seen.
    """

    def __init__(self, look: Look, seen: int) -> None:
        self.seen = seen
        self._look = look
        self._seen: list[int] = []
        self._at: list[float] = []
        self._error: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="latency", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        if self._error is not None:
            raise RuntimeError(f"the target cannot be asked: {self._error}") from self._error

    def _watch(self) -> None:
        try:
            while not self._stopping.wait(_LOOK_SECONDS):
                found = self._look(self.seen)
                if found > self.seen:
                    self._at.append(time.monotonic())
                    self._seen.append(found)
                    self.seen = found
        except Exception as error:  # noqa: BLE001 - whatever it is, the other thread raises it
            self._error = error

    def seen_at(self, key: int) -> float:
        """When a row and all before it had been seen."""
        return self._at[bisect_left(self._seen, key)]


@contextmanager
def looking(target: Target) -> Iterator[Look]:
    """What looks at the target."""
    if target.elasticsearch is not None:
        with Client(target.elasticsearch.url, request_timeout=60) as client:
            yield lambda seen: _seen_in_index(client, seen)
    else:
        with target.mysql.connect(database=SCHEMA) as connection, connection.cursor() as cursor:
            yield lambda seen: _seen_in_table(cursor, seen)


def _seen_in_table(cursor: Any, seen: int) -> int:
    cursor.execute("SELECT COUNT(*), MAX(id) FROM latency WHERE id > %s", (seen,))
    count, last = cursor.fetchone()
    if not count or last - seen == count:
        return last or seen
    # Some are missing in between: several tasks write a batch.
    cursor.execute("SELECT id FROM latency WHERE id > %s ORDER BY id LIMIT %s", (seen, _AT_ONCE))
    return _without_gap(seen, (key for (key,) in cursor))


def _seen_in_index(client: Client, seen: int) -> int:
    ids = [str(key) for key in range(seen + 1, seen + 1 + _AT_ONCE_SEARCH)]
    answer = client.mget(index="latency", ids=ids, source=False)
    return _without_gap(seen, (int(d["_id"]) for d in answer["docs"] if d.get("found")))


def _without_gap(seen: int, keys: Iterator[int]) -> int:
    for key in keys:
        if key != seen + 1:
            break
        seen = key
    return seen


if __name__ == "__main__":
    main()
