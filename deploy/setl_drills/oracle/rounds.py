"""One round: a random table, a history of it, both ways to copy it, and the comparison."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from typing import Any

from setl.systems.mysql.load.rows import CollisionError
from setl.systems.mysql.sql_files import system_table_statements
from setl_drills.oracle.histories import write_history
from setl_drills.oracle.loading import Loading, entries_between
from setl_drills.oracle.replica import Replication, end_of, is_mariadb
from setl_drills.oracle.tables import COLLATIONS, RandomTable, TextColumn, random_table
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
    before = end_of(servers.source)
    _execute(servers.source, f"CREATE DATABASE {schema}", table.create(name))
    _execute(servers.target, f"CREATE DATABASE {copy}", table.create(target))
    _execute(servers.target, *(s.format(t=target) for s in table.target))
    try:
        replication.start(schema, before)
        created = replication.reach(end_of(servers.source))
        if created:
            raise RuntimeError(f"the replica has not even the table: {created}")
        _execute(
            servers.replica,
            "SET SESSION sql_log_bin = 0",
            *(s.format(t=name) for s in table.target),
        )
        start = end_of(servers.source)
        taken = write_history(servers.source, name, table, chance, statements)
        end = end_of(servers.source)
        stopped = Loading(servers.source, servers.target, (name, target), chance).run(
            entries_between(servers.source, start, end)
        )
        replica_stopped = replication.reach(end)
        faults: list[str] = []
        expected = _rows(servers.source, name, table)
        if stopped is None:
            faults += _differences("setl's target", _rows(servers.target, target, table), expected)
        elif not isinstance(stopped, CollisionError):
            faults.append(f"setl has stopped for another reason: {stopped}")
        elif not replica_stopped:
            faults.append(f"setl has stopped and the replica has not: {stopped}")
        if not replica_stopped and not table.twist:
            faults += _differences("the replica", _rows(servers.replica, name, table), expected)
        if not table.twist and replica_stopped:
            faults.append(f"the replica of an equal table has stopped: {replica_stopped}")
    finally:
        replication.stop()
        for server, gone in ((servers.source, schema), (servers.target, copy)):
            _execute(server, f"DROP DATABASE {gone}")
        _execute(servers.replica, f"DROP DATABASE IF EXISTS {schema}")
    described = table.create("t") + (f" | target: {table.twist} {table.target}")
    return Round(number, described, taken, replica_stopped, str(stopped or ""), tuple(faults))


def _rows(server: DatabaseServer, name: str, table: RandomTable) -> list[Any]:
    """The rows, each value as the bytes of its text."""
    values = [
        f"HEX(CONVERT({c.name} USING utf8mb4))" if isinstance(c, TextColumn) else f"HEX({c.name})"
        for c in table.columns
    ]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(values)} FROM {name}")
        return sorted(cursor.fetchall(), key=repr)


def _differences(what: str, found: list[Any], expected: list[Any]) -> list[str]:
    if found == expected:
        return []
    lacks = [row for row in expected if row not in found]
    has = [row for row in found if row not in expected]
    return [f"{what} differs from the source: lacks {lacks[:3]}, has {has[:3]}"]


def _execute(server: DatabaseServer, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
