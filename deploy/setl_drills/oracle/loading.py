"""What a pipeline does between a binlog and a target's rows, in this process and without Spark."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Router
from setl.clock import SystemClock
from setl.errors import SetlError, SharedTableError
from setl.load.sink import LoadTicket
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.position import document_version
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.load.fence import MysqlFence
from setl.systems.mysql.sink.single_writer import MysqlSingleWriterTables
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
from setl.transform.merging import merge
from setl.transform.partition import Partition, shuffle
from setl.transform.work import TransformPlan, WorkItem
from setl_embedded import DatabaseServer

TASKS = 3
_MARK = 4711


class Loading:
    """One pipeline with one table, from a source's entries to a target's rows."""

    def __init__(
        self,
        source: DatabaseServer,
        target: DatabaseServer,
        tables: tuple[str, str],
        chance: random.Random,
        key: Sequence[str] = (),
    ) -> None:
        """Take the target over.

        Args:
            source: has the entries.
            target: gets the rows.
            tables: the source's and the target's, with schemas.
            chance: decides what is cut where, and how rows are read and sent.
            key: the key that the mapping names, if it names one.
        """
        self._chance = chance
        self._name = tables[1].replace(".", "_")[:60]
        schema, _, table = tables[1].partition(".")
        self._target = (schema, table)
        endpoint = MysqlEndpoint(target.host, target.port, target.user, target.password)
        settings = MysqlSinkSettings(endpoint, _MARK, bulk_rows=chance.choice([None, 1, 50]))
        mapping: dict[str, object] = {"from": tables[0], "to": tables[1]}
        endpoints = {
            "source": {**_endpoint(source), "start": "latest"},
            "target": _endpoint(target),
            "tables": [{**mapping, "key": list(key)} if key else mapping],
        }
        pipeline = Pipeline.model_validate({"name": "p", **endpoints})
        keys = MysqlSingleWriterTables(endpoint, SystemClock()).among([self._target])
        if chance.random() < 0.2:
            keys = frozenset()  # the target's keys may have changed in the last minute
        self._plan = TransformPlan(
            "binlog",
            Router(pipeline),
            single_writer=keys,
            column_rows=chance.choice([None, 1]),
            takes_columns=True,
        )
        MysqlFence(endpoint, self._ticket(0, 0).pipeline_key, 1.0).raise_to(1, "oracle")
        numbers = itertools.count(1)
        self._sinks = [MysqlSink(settings, lambda: f"n{next(numbers)}") for _ in range(TASKS)]

    def run(self, entries: Iterable[Entry]) -> SetlError | None:
        """Apply everything, cut at random and partly again; returns what it has stopped with."""
        items = [
            WorkItem(
                (0,), document_version(1, e.position), e.context, e.payload, (e.schema, e.table)
            )
            for e in entries
            if e.kind is EntryKind.ROWS
        ]
        at = again = 0
        try:
            while at < len(items):
                upto = min(len(items), at + self._chance.choice([1, 2, 5, 10, 25, 60, 200]))
                tasks = self._chance.choice([1, 2, TASKS])
                cut_off = again < 12 and self._chance.random() < 0.35
                only = self._chance.sample(range(tasks), self._chance.randint(0, tasks))
                self._load(items[at:upto], tasks, only if cut_off else range(tasks))
                if cut_off or (again < 12 and self._chance.random() < 0.1):
                    # The leader is lost, and its successor begins there or earlier.
                    at = max(0, (at if cut_off else upto) - self._chance.randint(0, 40))
                    again += 1
                else:
                    at = upto
        except SetlError as error:
            return error
        finally:
            for sink in self._sinks:
                sink.close()
        return None

    def _load(self, items: Sequence[WorkItem], tasks: int, only: Sequence[int]) -> None:
        while True:
            shares = self._shuffled(items, tasks)
            order = [slot for slot in range(tasks) if shares[slot] and slot in only]
            self._chance.shuffle(order)
            errors = self._write(order, shares, items[-1].version)
            if not errors:
                return
            for error in errors:
                if not isinstance(error, SharedTableError):
                    raise error
            self._plan = replace(self._plan, single_writer=frozenset([self._target]))

    def _write(
        self, order: Sequence[int], shares: list[list[Partition]], through: int
    ) -> list[SetlError]:
        """Have tasks write, one after another or at once; returns their errors."""
        errors: list[SetlError] = []

        def write(slot: int) -> None:
            changes = merge([part for share in shares[slot] for part in share.changes])
            try:
                self._sinks[slot].apply(self._ticket(slot, through), changes)
            except SetlError as error:
                errors.append(error)

        with ThreadPoolExecutor(self._chance.choice([1, TASKS])) as pool:
            list(pool.map(write, order))
        return errors

    def _shuffled(self, items: Sequence[WorkItem], tasks: int) -> list[list[Partition]]:
        positions = range(1, len(items))
        cuts = sorted(
            self._chance.sample(positions, min(len(positions), self._chance.randrange(tasks)))
        )
        shares: list[list[Partition]] = [[] for _ in range(tasks)]
        for first, last in itertools.pairwise([0, *cuts, len(items)]):
            for slot, blob in shuffle(self._plan, pickle.dumps(list(items[first:last])), tasks):
                share: Partition = pickle.loads(blob)  # our own
                if share.error is not None:
                    raise share.error
                shares[slot].append(share)
        for parts in shares:
            self._chance.shuffle(parts)
        return shares

    def _ticket(self, slot: int, through: int) -> LoadTicket:
        return LoadTicket(Leadership("oracle", self._name, "oracle", 1), 1, slot, through)


def _endpoint(server: DatabaseServer) -> dict[str, object]:
    return {
        "type": "mysql",
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }
