"""Random histories of a real table, cut at random, loaded by concurrent tasks, some of it twice.

Everything between the source's binlog and the target's rows is what a pipeline runs: decoding,
compaction, dealing out, merging and the sink. Whatever is cut where, whichever task commits
first and however much is applied again, the target must hold what the source holds (I11, I12).
"""

import pickle
import random
import threading
from dataclasses import replace
from itertools import permutations

import pymysql
import pytest

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Router
from setl.clock import SystemClock
from setl.errors import SetlError, SharedTableError
from setl.model.entry import EntryKind
from setl.model.position import document_version
from setl.systems.mysql.sink.single_writer import MysqlSingleWriterTables
from setl.transform.merging import merge
from setl.transform.partition import shuffle
from setl.transform.work import TransformPlan, WorkItem
from tests.integration.pipelines import execute, install_system_tables, mysql
from tests.loading import endpoint_of, fence_for, sink_on, ticket_for, unique
from tests.unit.codec.binlog_server import end_of, entries_between

TASKS = 4


class StoredCheckpoint:
    """A table under test: what it is made of, and which values its columns take."""

    def __init__(self, definition, key=None, *, single_writer=True, **values):
        self.definition = definition
        self.key = key
        self.single_writer = single_writer
        self.values = values


TABLES = {
    "primary key only": StoredCheckpoint(
        "id INT PRIMARY KEY, n INT", single_writer=False, id=range(8), n=range(9)
    ),
    "a unique key that holds the primary key": StoredCheckpoint(
        "id INT PRIMARY KEY, n INT, UNIQUE KEY (n, id)",
        single_writer=False, id=range(8), n=range(9),
    ),
    "one unique key": StoredCheckpoint(
        "id INT PRIMARY KEY, code INT UNIQUE, n INT",
        id=range(8), code=[1, 2, 3, 4, 5, None], n=range(9),
    ),
    "two unique keys": StoredCheckpoint(
        "id INT PRIMARY KEY, code INT UNIQUE, x INT, y VARCHAR(9), n INT, UNIQUE KEY (x, y)",
        id=range(8), code=[1, 2, 3, 4, None], x=[1, 2, None], y=["p", "q", "P", None], n=range(9),
    ),
    "composite and loose": StoredCheckpoint(
        "a INT, b VARCHAR(9), code VARCHAR(9) UNIQUE, n INT, PRIMARY KEY (b, a)",
        a=range(3), b=["x", "X", "y", "Y "],
        code=["k", "K", "ß", "ss", "l ", "l", None], n=range(9),
    ),
    "binary key, loose unique value": StoredCheckpoint(
        "b VARBINARY(9) PRIMARY KEY, code VARCHAR(9) NOT NULL UNIQUE, n INT",
        b=[b"a", b"A", b"\x00", b"\xff", b"b"], code=["k", "K", "l", "L", "m", "n"], n=range(9),
    ),
    "key by the mapping": StoredCheckpoint(
        "code INT NOT NULL UNIQUE, x INT, y INT, n INT, UNIQUE KEY (x, y)",
        key=["code"], code=range(8), x=[1, 2, None], y=[1, 2, None], n=range(9),
    ),
    "key by the mapping beside a primary key": StoredCheckpoint(
        "id INT PRIMARY KEY, code INT NOT NULL UNIQUE, n INT",
        key=["code"], id=range(6), code=range(6), n=range(9),
    ),
}  # fmt: skip


def write_history(server, table, stored, chance, statements):
    """Random statements in transactions; what the server refuses is skipped."""

    def value(column):
        return chance.choice(list(stored.values[column]))

    def where():
        return " AND ".join(f"{c} <=> %s" for c in stored.values)

    columns = list(stored.values)
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:

        def some_row():
            cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")
            return chance.choice(cursor.fetchall() or [[None] * len(columns)])

        for _ in range(statements):
            kind = chance.random()
            row = [value(c) for c in columns]
            try:
                if kind < 0.4:
                    verb = "REPLACE" if kind < 0.05 else "INSERT"
                    cursor.execute(
                        f"{verb} INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row
                    )
                elif kind < 0.8:
                    changed = chance.sample(columns, chance.randint(1, len(columns)))
                    sets = ", ".join(f"{c} = %s" for c in changed)
                    cursor.execute(
                        f"UPDATE {table} SET {sets} WHERE {where()}",
                        [*map(value, changed), *some_row()],
                    )
                elif kind < 0.9:
                    cursor.execute(f"DELETE FROM {table} WHERE {where()}", some_row())
                elif isinstance(row[0], int):
                    # All move up: every value is given up by one row and taken by the next.
                    cursor.execute(
                        f"UPDATE {table} SET {columns[0]} = {columns[0]} + 1"
                        f" ORDER BY {columns[0]} DESC"
                    )
                if chance.random() < 0.5:
                    connection.commit()
            except pymysql.IntegrityError:
                continue
        connection.commit()


class Target:
    """Loads stretches of a source's binlog as the tasks of a pipeline would."""

    def __init__(self, server, plan, chance, table):
        self.server, self.plan, self.chance = server, plan, chance
        self.table = tuple(table.split("."))
        self.divided = 0
        self.ticket = ticket_for(unique("replay"))
        fence_for(server, self.ticket).raise_to(1, "n1")
        self.sinks = [sink_on(server) for _ in range(TASKS)]

    def load(self, items, *, tasks, only=None, order=None):
        """One load; `only` says which tasks get through, `order` that they write in turn."""
        insert_partitions = cut(items, self.chance.randint(1, tasks), self.chance)
        while not self._try(insert_partitions, items[-1].version, tasks, only, order):
            # As the driver does when a sink says so.
            self.plan = replace(self.plan, single_writer=frozenset([self.table]))
            self.divided += 1

    def _try(self, insert_partitions, through, tasks, only, order):
        shares = [[] for _ in range(tasks)]
        for insert_partition in insert_partitions:
            for slot, share in shuffle(self.plan, pickle.dumps(insert_partition), tasks):
                shares[slot].append(pickle.loads(share))
        assert not [share.error for slot in shares for share in slot if share.error]
        slots = [s for s in range(tasks) if shares[s] and (only is None or s in only)]
        errors = []
        for slot in slots:
            self.chance.shuffle(shares[slot])  # not by the threads, so that a seed is one history

        def write(slot):
            changes = merge([part for share in shares[slot] for part in share.changes])
            ticket = ticket_for(self.ticket.leadership.pipeline, slot=slot, through=through)
            try:
                self.sinks[slot].apply(ticket, changes)
            except SetlError as error:
                errors.append(error)

        if order is not None:
            for slot in sorted(slots, key=order.index):
                write(slot)
        else:
            threads = [threading.Thread(target=write, args=(slot,)) for slot in slots]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        shared = [isinstance(error, SharedTableError) for error in errors]
        assert all(shared), errors
        return not errors

    def close(self):
        for sink in self.sinks:
            sink.close()


def cut(items, parts, chance):
    """Stretches of items, in order, none of them empty."""
    positions = sorted(chance.sample(range(1, len(items)), min(parts - 1, len(items) - 1)))
    return [items[a:b] for a, b in zip([0, *positions], [*positions, len(items)], strict=True)]


@pytest.fixture
def sites(site_a, site_b):
    """A source and a target with an empty schema of the same name."""
    schema = unique("replay")
    for server in (site_a, site_b):
        install_system_tables(server)
        execute(server, f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    yield site_a, site_b, schema
    for server in (site_a, site_b):
        execute(server, f"DROP DATABASE {schema}")


def plan_for(source, target, table, stored):
    """What the tasks are told, with what the target says of its keys."""
    mapping = {"from": table, "key": stored.key}
    ends = {"source": {**mysql(source), "start": "latest"}, "target": mysql(target)}
    pipeline = Pipeline.model_validate({"name": "p", **ends, "tables": [mapping]})
    tables = MysqlSingleWriterTables(endpoint_of(target), SystemClock())
    single_writer = tables.among({tuple(table.split("."))})
    assert bool(single_writer) == stored.single_writer
    return TransformPlan("binlog", Router(pipeline), single_writer=single_writer)


def items_between(server, start, end):
    return [
        WorkItem((0,), document_version(1, entry.position), entry.context, entry.payload)
        for entry in entries_between(server, start, end)
        if entry.kind is EntryKind.ROWS
    ]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("like", ["the source's", "wider", "not looked at yet"])
def test_a_random_history_arrives(sites, name, like):
    a, b, schema = sites
    # Each family has a history of its own: what they have in common is then tried with both.
    chance, stored = random.Random(f"{name} {type(a).__name__} {like}"), TABLES[name]
    table = f"{schema}.t"
    for server in (a, b):
        execute(server, f"CREATE TABLE {table} ({stored.definition})")
    if like == "wider":
        execute(b, f"ALTER TABLE {table} ADD note INT DEFAULT 7")
    with a.connect() as connection:
        start = end_of(connection)
        write_history(a, table, stored, chance, 150)
        items = items_between(a, start, end_of(connection))
    assert len(items) > 40
    plan, orders = plan_for(a, b, table, stored), list(permutations(range(TASKS)))
    if like == "not looked at yet":
        # The target's keys may have changed in the last minute.
        plan = replace(plan, single_writer=frozenset())
    target = Target(b, plan, chance, table)
    try:
        at = loads = again = 0
        while at < len(items):
            upto = min(len(items), at + chance.randint(1, 25))
            order = chance.choice(orders) if chance.random() < 0.5 else None
            tasks = chance.choice((1, 2, 3, TASKS, TASKS))
            if chance.random() < 0.3 or (not again and upto == len(items)):
                # Some tasks commit, then the leader is lost, and its successor begins earlier.
                only = chance.sample(range(tasks), chance.randint(0, tasks))
                target.load(items[at:upto], tasks=tasks, only=only, order=order)
                at = max(0, at - chance.randint(0, 30))
                again += 1
            else:
                target.load(items[at:upto], tasks=tasks, order=order)
                at = upto
            loads += 1
            assert loads < 200
    finally:
        target.close()
    assert not (target.divided and like != "not looked at yet")
    columns = ", ".join(stored.values)
    everything = f"SELECT {columns} FROM {table} ORDER BY {columns}"
    assert execute(b, everything) == execute(a, everything)
    if like != "wider":
        checksum = f"CHECKSUM TABLE {table} EXTENDED"
        assert execute(b, checksum) == execute(a, checksum)
