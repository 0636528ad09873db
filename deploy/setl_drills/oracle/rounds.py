"""One round through adapters: a random table, a history, both ways to copy it, the comparison."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import dataclass

import pymysql

from setl.systems.mysql.load.rows import CollisionError
from setl.systems.mysql.sql_files import system_table_statements
from setl_drills.binlog import binlog_end, entries_between
from setl_drills.oracle.comparison import Row, rows_of_table
from setl_drills.oracle.histories import rows_of
from setl_drills.oracle.loading import Loading
from setl_drills.oracle.replica import Replication, is_mariadb
from setl_drills.oracle.shapes import Shape, shapes_of
from setl_drills.oracle.tables import COLLATIONS, random_table
from setl_embedded import DatabaseServer


@dataclass(frozen=True, slots=True)
class Servers:
    """Where a round runs.

    Attributes:
        source: takes the statements.
        replica: of the same product, follows the source.
        target: what setl writes to; may be the replica.
    """

    source: DatabaseServer
    replica: DatabaseServer
    target: DatabaseServer

    @property
    def families(self) -> str:
        """A key of `COLLATIONS`."""
        kinds = {is_mariadb(server) for server in (self.source, self.target)}
        return "mixed" if len(kinds) > 1 else "mariadb" if kinds == {True} else "mysql"

    def prepare(self) -> None:
        """Make setl's own tables on the target."""
        _execute(self.target, *system_table_statements())


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round.

    Attributes:
        number: decides everything in it, with the run's seed.
        table: what it was about, for people.
        statements: how many the source took.
        replica: the error that the replica stopped with, or "".
        setl: the error that setl stopped with, or "".
        faults: what is wrong; nothing if it passed.
    """

    number: str
    table: str
    statements: int
    replica: str
    setl: str
    faults: tuple[str, ...]


def play(servers: Servers, number: str, *, statements: int = 120) -> Round:
    """Play one round; `number` decides everything in it."""
    chance = random.Random(number)
    table = random_table(chance, COLLATIONS[servers.families], twisted=chance.random() < 0.5)
    # Not from the seed, so that a round may be played twice on the same servers.
    schema, copy = (f"oracle{kind}_{uuid.uuid4().hex[:8]}" for kind in ("", "_setl"))
    name, target = f"{schema}.t", f"{copy}.t"
    replication = Replication(servers.replica, servers.source)
    before = binlog_end(servers.source)
    _execute(servers.source, f"CREATE DATABASE {schema}", table.create(name))
    _execute(servers.target, f"CREATE DATABASE {copy}", table.create(target))
    _execute(servers.target, *(s.format(t=target) for s in table.target))
    try:
        replication.start(schema, before)
        created = replication.reach(binlog_end(servers.source))
        if created:
            raise RuntimeError(f"the replica has not even the table: {created}")
        _execute(
            servers.replica,
            "SET SESSION sql_log_bin = 0",
            *(s.format(t=name) for s in table.target),
        )
        start = binlog_end(servers.source)
        shape = shapes_of(servers.source, schema)["t"]
        taken = _write(servers.source, schema, shape, chance, statements)
        end = binlog_end(servers.source)
        key = table.key if table.mapped else ()
        stopped = Loading(servers.source, servers.target, (name, target), chance, key).run(
            entries_between(servers.source, start, end)
        )
        replica_stopped = replication.reach(end)
        faults: list[str] = []
        expected = rows_of_table(servers.source, schema, shape)
        if stopped is None:
            faults += _differences(
                "setl's target", rows_of_table(servers.target, copy, shape), expected
            )
        elif not isinstance(stopped, CollisionError):
            faults.append(f"setl has stopped for another reason: {stopped}")
        elif not replica_stopped:
            faults.append(f"setl has stopped and the replica has not: {stopped}")
        if not replica_stopped and not table.twist:
            faults += _differences(
                "the replica", rows_of_table(servers.replica, schema, shape), expected
            )
        if not table.twist and replica_stopped:
            faults.append(f"the replica of an equal table has stopped: {replica_stopped}")
    finally:
        replication.stop()
        for server, gone in ((servers.source, schema), (servers.target, copy)):
            _execute(server, f"DROP DATABASE {gone}")
        _execute(servers.replica, f"DROP DATABASE IF EXISTS {schema}")
    described = table.create("t") + (f" | target: {table.twist} {table.target}")
    return Round(number, described, taken, replica_stopped, str(stopped or ""), tuple(faults))


def _write(
    server: DatabaseServer, schema: str, shape: Shape, chance: random.Random, count: int
) -> int:
    """Run statements in transactions, and return how many the server has taken."""
    taken = 0
    with server.connect(database=schema) as connection, connection.cursor() as cursor:
        for step in rows_of(chance, shape, count):
            try:
                cursor.execute(step.sql)
                taken += 1
            except (pymysql.IntegrityError, pymysql.DataError, pymysql.OperationalError) as error:
                if error.args[0] in {1205, 1213, 2006, 2013}:
                    raise
    return taken


def _differences(what: str, found: Counter[Row], expected: Counter[Row]) -> list[str]:
    if found == expected:
        return []
    lacks, has = list((expected - found).elements()), list((found - expected).elements())
    return [f"{what} differs from the source: lacks {lacks[:3]}, has {has[:3]}"]


def _execute(server: DatabaseServer, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
