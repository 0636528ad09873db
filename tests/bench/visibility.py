"""When each change of the source could be seen in the target, from the target's own binlog.

While a consumer runs, a thread notes every few milliseconds how long the target's binlog is.
Afterwards the binlog is read: it has every commit with its place, hence its time, and the rows
that it wrote, each with the number of the change that it shows. Nothing is asked of the tables
meanwhile, and nothing of the consumer.

A change is visible at the first commit after which its row is as that change left it, or as a
later change did. Changes of rows that came and went without ever being seen are left out.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from pymysql.connections import Connection
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from setl.model.change import Op
from setl_embedded import MariaDb
from tests.bench.many_tables_workload import ORDERS, SCHEMA, Change, Row
from tests.bench.sampling import Sampler
from tests.bench.servers import mysql_settings
from tests.bench.workloads import Position, position

_LOOK_SECONDS = 0.005

Key = tuple[str, int]
"""Table and id."""


class Commit(NamedTuple):
    """A transaction of the target.

    Attributes:
        at: when it could be seen at the latest, by `time.monotonic`.
        numbers: the number that each changed row has since, None where it is gone.
        parents: order of each changed item and payment, gone ones too.
    """

    at: float
    numbers: dict[Key, int | None]
    parents: dict[Key, int]


class CommitLog(Sampler):
    """Notes how the target's binlog grows; a context manager around the run of a consumer."""

    def __init__(self, target: MariaDb) -> None:
        """Note nothing yet."""
        super().__init__("commit-log", self._note, _LOOK_SECONDS)
        self._target = target
        self._connection: Connection[Any] | None = None
        self._grown: list[tuple[Position, float]] = []

    def __enter__(self) -> Self:
        """Begin; what is committed from now on counts."""
        self._connection = self._target.connect()
        self._note()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        """End; everything committed until now is noted."""
        super().__exit__(*error)
        if self._connection is not None:
            self._connection.close()

    def _note(self) -> None:
        if self._connection is not None:
            place = position(self._connection)
            if not self._grown or place != self._grown[-1][0]:
                self._grown.append((place, time.monotonic()))

    def commits(self) -> Iterator[Commit]:
        """The transactions on tables of the workload, in their order; once it has ended."""
        places = [place for place, _ in self._grown]
        for end, events in _transactions(self._target, places[0], places[-1]):
            numbers: dict[Key, int | None] = {}
            parents: dict[Key, int] = {}
            for event in events:
                image = "after_values" if isinstance(event, UpdateRowsEvent) else "values"
                gone = isinstance(event, DeleteRowsEvent)
                for row in event.rows or ():
                    values = row[image]
                    key = (event.table, values["id"])
                    numbers[key] = None if gone else values["number"]
                    if values["parent"]:
                        parents[key] = values["parent"]
            if numbers:
                yield Commit(self._grown[bisect_left(places, end)][1], numbers, parents)


def _transactions(
    target: MariaDb, start: Position, end: Position
) -> Iterator[tuple[Position, list[Any]]]:
    """Row events of each transaction between two places, and where the transaction ends."""
    if start == end:
        return
    reader = BinLogStreamReader(
        connection_settings=mysql_settings(target),
        server_id=990_018,
        is_mariadb=False,  # see `tests.bench.plain_script.events`
        log_file=start.file,
        log_pos=start.offset,
        resume_stream=True,
        blocking=False,
        only_schemas=[SCHEMA],
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent],
    )
    events: list[Any] = []
    try:
        for event in reader:
            place = Position(str(reader.log_file), reader.log_pos or 0)
            if place > end:
                return
            if isinstance(event, XidEvent):
                yield place, events
                events = []
            else:
                events.append(event)
    finally:
        reader.close()


def seen_at(commits: Iterable[Commit], changes: Iterable[Change]) -> dict[int, float]:
    """When each change could first be seen, by its number: its place in `changes`, from 1."""
    waiting: dict[Key, list[tuple[int, Op]]] = {}
    for number, change in enumerate(changes, 1):
        waiting.setdefault(change.key, []).append((number, change.op))
    done: dict[Key, int] = {}
    seen: dict[int, float] = {}
    for commit in commits:
        for key, shown in commit.numbers.items():
            history, first = waiting[key], done.get(key, 0)
            until = first
            while until < len(history) and (shown is None or history[until][0] <= shown):
                seen[history[until][0]] = commit.at
                until += 1
            done[key] = max(first, until)
    return seen


def orphans(commits: Iterable[Commit]) -> tuple[int, int]:
    """After how many commits an item or a payment was there without its order, and of how many."""
    orders: set[int] = set()
    parts: dict[int, set[Key]] = {}  # order → its items and payments that are there
    lost: set[int] = set()  # orders that are not there although something of theirs is
    bad = count = 0
    for commit in commits:
        count += 1
        touched = set(commit.parents.values())
        for key, number in commit.numbers.items():
            if key[0] == ORDERS:
                touched.add(key[1])
                (orders.discard if number is None else orders.add)(key[1])
            elif key in commit.parents:
                there = parts.setdefault(commit.parents[key], set())
                (there.discard if number is None else there.add)(key)
        for order in touched:
            missing = order not in orders and parts.get(order)
            (lost.add if missing else lost.discard)(order)
        bad += bool(lost)
    return bad, count


def differences(target: MariaDb, expected: Mapping[str, Mapping[int, Row]]) -> list[str]:
    """Tables that do not hold what they should, in words."""
    found: list[str] = []
    with target.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s",
                       (SCHEMA,))  # fmt: skip
        for (table,) in list(cursor.fetchall()):
            cursor.execute(f"SELECT id, parent, number, note FROM {SCHEMA}.`{table}`")
            held = {row[0]: Row(*row) for row in cursor.fetchall()}
            wanted = expected.get(table, {})
            if held != wanted:
                wrong = sum(held.get(key) != row for key, row in wanted.items())
                more = len(held.keys() - wanted.keys())
                found.append(f"{table}: {wrong} rows missing or wrong, {more} too many")
    return found
