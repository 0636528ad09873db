"""From commit at the source to visible in the target, under a steady load.

Transactions of new rows are committed at a rate. A thread asks the target every few milliseconds
for the rows that it has not seen yet, by their keys, which grow by one: a transaction is visible at
the end of the first answer after which none of its rows is missing. An Elasticsearch target is
asked by id; searches see a document after the index's next refresh, which is no matter of setl's.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from elasticsearch import Elasticsearch as Client

from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer
from tests.bench.figures import EXPRESSIONS, HALF, STEADY, Latency
from tests.bench.servers import Target
from tests.bench.workloads import NARROW, SCHEMA, Workload

CHANGED = Workload("latency", 0, 1)
"""The table into which rows are committed."""

_LOOK_SECONDS = 0.005
_AT_ONCE = 20_000  # rows that one look asks for at most
_AT_ONCE_SEARCH = 200
_TEXTS = 500  # different rows, but for their key
_WARM_UP_SECONDS = 5.0  # at most; transactions of the beginning that do not count


class Load(NamedTuple):
    """What is committed: transactions a second, and rows of each."""

    name: str
    transactions: float
    rows: int


STEADY_LOAD = Load(STEADY, 20.0, 5)
EXPRESSIONS_LOAD = STEADY_LOAD._replace(name=EXPRESSIONS)


def half_of(rate: float) -> Load:
    """Half of a number of rows a second, in transactions of a hundred."""
    return Load(HALF, rate / 2 / 100, 100)


Look = Callable[[int], int]  # from a key up to which all rows were seen, to that of now


def under(load: Load, writer: Writer, look: Look, kind: str, seconds: float) -> Latency:
    """Commit for so many seconds, after as many, but five at most, that do not count, and look.

    Those show how long a JVM takes to get warm.
    """
    watch = _Watch(look, writer.last)
    try:
        with watch:
            writer.commit(load, min(_WARM_UP_SECONDS, seconds))
            committed = writer.commit(load, seconds)
            wait_for("everything to be seen", lambda: watch.seen >= writer.last, 120)
    except RuntimeError as error:
        return Latency(kind, load.name, problems=(str(error),))
    delays = sorted(watch.seen_at(last) - at for last, at in committed)
    (first, began), (last, ended) = committed[0], committed[-1]
    rate = (last - first) / (ended - began) if ended > began else 0.0
    p50, p99 = (delays[min(len(delays) - 1, int(q * len(delays)))] for q in (0.5, 0.99))
    return Latency(kind, load.name, len(delays), rate, p50, p99, delays[-1])


class Writer:
    """Commits transactions of new rows at the source."""

    def __init__(self, source: DatabaseServer) -> None:
        self.last = 0  # key of the newest row
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


class _Watch:
    """Looks again and again while it is entered."""

    def __init__(self, look: Look, seen: int) -> None:
        self.seen = seen  # key up to which all rows have been seen
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
    if target.database is None:
        with Client(target.url, request_timeout=60) as client:
            yield lambda seen: _seen_in_index(client, seen)
    else:
        with target.database.connect(database=SCHEMA) as connection, connection.cursor() as cursor:
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


def _without_gap(seen: int, keys: Iterable[int]) -> int:
    for key in keys:
        if key != seen + 1:
            break
        seen = key
    return seen
