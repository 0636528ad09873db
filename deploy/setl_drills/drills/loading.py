"""Leaders die while whole tables are loaded beside a stream that changes the same rows."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pymysql

from arbiter.values import ChannelState
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.tables import first_load
from setl_drills.waiting import wait_for
from setl_drills.watching import Watch
from setl_drills.world import World
from setl_embedded import DatabaseServer

# Only who loads passes them.
POINTS = ("tables.before_job", "tables.read", "tables.after_job", "tables.loaded")
# Whoever applies changes passes some of these, too: while tables are loaded, either strikes.
_EXECUTOR = ("tables.read", "task.before_load")
_LOAD = ("task.before_commit", "task.after_commit")
_DRIVER = ("tables.before_job", "tables.after_job", "tables.loaded")
_SELECT = ("select.batch", "checkpoint.stored", "batch.acked")
_OF_DRIVER = (_SELECT, _DRIVER)
_OF_TASKS = (_EXECUTOR, _LOAD)
_VICTIM = frozenset((1205, 1213))
_STRIKE_LIMIT = 60.0
_LOAD_LIMIT = 180.0
_ROWS = 8_000
_PAUSE = 0.02
"""Seconds between two transactions that change rows of the table."""
_CREATE = (
    "CREATE DATABASE `{schema}` CHARACTER SET utf8mb4",
    """CREATE TABLE `{schema}`.stock (
        id BIGINT PRIMARY KEY, code VARCHAR(40) NULL UNIQUE, quantity INT NOT NULL)""",
    # Without a key, each row several times. Its name comes first, and so does its load.
    "CREATE TABLE `{schema}`.arrivals (shelf INT NULL, note VARCHAR(9) NULL)",
)
_FILL = "INSERT INTO `{schema}`.stock VALUES (%s, %s, %s)"
_FILL_ARRIVALS = "INSERT INTO `{schema}`.arrivals VALUES (%s, %s)"
_SHELVES = 40
_ORDERS = {"stock": "id", "arrivals": "shelf, note"}


class StockWriter(Watch):
    """Changes rows of the tables all the time: values, keys, unique values between rows, copies."""

    def __init__(
        self, server: DatabaseServer, schema: str, draw: random.Random, tempo: float
    ) -> None:
        """Describe it; `tempo` is the world's."""
        super().__init__("stock")
        self._pause = _PAUSE / tempo
        self._server = server
        self._table = f"`{schema}`.stock"
        self._waiter = f"`{schema}`.arrivals"
        self._draw = draw
        self.transactions = 0

    def watch(self) -> None:
        """See `Watch`."""
        with self._server.connect(autocommit=False) as connection:
            while not self._stopping.wait(self._pause):
                try:
                    with connection.cursor() as cursor:
                        self._change(cursor, *self._draw.sample(range(_ROWS), 2))
                        self._change_arrivals(cursor, self._draw.randrange(_SHELVES))
                    connection.commit()
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in _VICTIM:
                        raise
                    connection.rollback()  # of a deadlock, as any client may be
                else:
                    self.transactions += 1

    def _change(self, cursor: Any, one: int, other: int) -> None:
        table = self._table
        kind = self._draw.randrange(4)
        if kind == 0:
            cursor.execute(f"UPDATE {table} SET quantity = quantity + 1 WHERE id = %s", (one,))
        elif kind == 1:
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", (one,))
        elif kind == 2:
            cursor.execute(f"UPDATE IGNORE {table} SET id = %s WHERE id = %s", (_ROWS + one, other))
        else:
            cursor.execute(f"SELECT id, code FROM {table} WHERE id IN (%s, %s)", (one, other))
            found = cursor.fetchall()
            if len(found) == 2:
                (first, its), (second, own) = found
                renamed = f"UPDATE {table} SET code = %s WHERE id = %s"
                cursor.executemany(renamed, [(None, first), (its, second), (own, first)])

    def _change_arrivals(self, cursor: Any, shelf: int) -> None:
        table = self._waiter
        kind = self._draw.randrange(3)
        if kind == 0:
            cursor.execute(f"INSERT INTO {table} VALUES (%s, NULL), (%s, NULL)", (shelf, shelf))
        elif kind == 1:
            cursor.execute(f"UPDATE {table} SET note = 'x' WHERE shelf = %s LIMIT 1", (shelf,))
        else:
            cursor.execute(f"DELETE FROM {table} WHERE shelf = %s LIMIT 1", (shelf,))


def load_dies(
    name: str, kinds: tuple[tuple[str, ...], ...], world: World, seed: int
) -> DrillResult:
    """Kill whoever loads a table, from inside, at a point of each kind in turn."""
    with DrillRun(world, name, seed) as run:
        schema, channel = f"{run.schema}_stock", f"{run.channel}-load"
        _create(world, schema)
        writer = StockWriter(world.sites["a"], schema, run.random, world.tempo)
        try:
            points = [run.random.choice(some) for some in kinds]
            run.random.shuffle(points)
            stored = world.arbiter.channels.put(channel, first_load(channel, schema))
            writer.start()
            world.arbiter.channels.set_state(stored, ChannelState.START)
            for number, point in enumerate(points):
                some = number * _ROWS // 8
                wait_for(
                    f"{some} rows to be loaded",
                    lambda some=some: _load(world, channel).get("rows", 0) >= some,
                    _LOAD_LIMIT,  # on a busy machine who takes over may still be starting
                )
                run.say(f"whoever loads is to die at {point}")
                _arm(world, point)
                nodes = [node for node in world.nodes.values() if node.running]
                wait_for(
                    f"a node to die at {point}",
                    lambda nodes=nodes: not all(node.running for node in nodes),
                    _STRIKE_LIMIT,
                )
                for node in world.nodes.values():
                    node.disarm()
                world.restart_dead()
                loaded = _load(world, channel)
                run.require(not loaded.get("until"), "all was loaded before the leader died")
            wait_for(
                "the table to be loaded",
                lambda: bool(_load(world, channel).get("ended")),
                _LOAD_LIMIT,
                interval=0.5,
            )
            writer.stop()
            writer.check()
            wait_for(
                "both sites to hold the same",
                lambda: _equal(world, schema),
                _LOAD_LIMIT,
                interval=1.0,  # each look reads the whole table twice
            )
            run.result.evidence["transactions meanwhile"] = writer.transactions
            run.require(writer.transactions > 100, "hardly anything was written meanwhile")
            return run.finish()
        finally:
            if writer.is_alive():
                writer.stop()
            world.heal()
            world.remove_channel(channel)
            for site in world.sites.values():
                _execute(site, f"DROP DATABASE IF EXISTS `{schema}`")


def _arm(world: World, point: str) -> None:
    for node in world.nodes.values():
        if node.running:
            node.arm(point, "kill node")


def _create(world: World, schema: str) -> None:
    for site in world.sites.values():
        for statement in _CREATE:
            _execute(site, statement.format(schema=schema))
    with world.sites["a"].connect(autocommit=False) as connection:
        with connection.cursor() as cursor:
            rows = [(i, f"code {i}", i % 7) for i in range(_ROWS)]
            cursor.executemany(_FILL.format(schema=schema), rows)
            waiter = [(i % _SHELVES, None) for i in range(_ROWS)]
            cursor.executemany(_FILL_ARRIVALS.format(schema=schema), waiter)
        connection.commit()


def _load(world: World, channel: str) -> dict[str, Any]:
    """How far the load has come, as its checkpoint says."""
    found = _execute(
        world.sites["b"],
        "SELECT checkpoint FROM retl.setl_checkpoint WHERE pipeline = %s",
        f"{channel}/load",
    )
    load: dict[str, Any] = json.loads(found[0][0]).get("load", {}) if found else {}
    return load


def _equal(world: World, schema: str) -> bool:
    for table, order in _ORDERS.items():
        query = f"SELECT * FROM `{schema}`.{table} ORDER BY {order}"
        one, other = (_execute(world.sites[site], query) for site in ("a", "b"))
        if not one or one != other:
            return False
    return True


def _execute(server: DatabaseServer, statement: str, *values: Any) -> Any:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


DRILLS = (
    Drill(
        "load-dies",
        "who loads a table dies in Select and in the driver; the load goes on where it was",
        "at which points, and in which order",
        partial(load_dies, "load-dies", _OF_DRIVER),
    ),
    Drill(
        "load-task-dies",
        "who loads a table dies in a task that reads and in one that writes; nothing is lost",
        "at which points, and in which order",
        partial(load_dies, "load-task-dies", _OF_TASKS),
    ),
)
