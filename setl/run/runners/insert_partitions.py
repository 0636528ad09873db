"""A large load of new rows alone: each task transforms a stretch of the stream and loads it.

Nothing has to be shuffled by key where no key changes twice. New rows of a table have keys of
their own, as the source's primary key has it. So their values pass through no second process, and
the load is one Spark job instead of two.

A key may still be written twice in one load: what a cascade of foreign keys deletes, or a session
without a binlog, is in no stream; and a codec may take other changes for new rows. So each task
tells which keys it wrote or deleted. If two tasks have a key in common, the load is done again, by
key: that leaves of each key the last state, whatever the order in which they wrote it. Crash: the
load is not acknowledged before that, so the next leader does it again from the checkpoint, and
finds the same.
"""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
from pyspark import SparkContext

from setl.codec.row_codec import RowCodec
from setl.load.sink import LoadTicket, SinkSettings
from setl.log import fields
from setl.model.target_name import target_name
from setl.run.runners.runner import LoadState, Phase
from setl.run.runners.tasks import TaskReport, load, transform
from setl.run.runners.work import LoadWork, insert_partitions, pieces
from setl.run.spark.shared_memory import handing_over
from setl.transform.packing import packed
from setl.transform.partition import Partition
from setl.transform.placement import key_hashes, spreads
from setl.transform.work import TransformPlan

_log = logging.getLogger(__name__)

_Name = tuple[str, str]
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")

_SWITCH_SECONDS: Final = 0.0005


@dataclass(frozen=True, slots=True)
class InsertPartitionReport:
    """What a task says of its stretch.

    Attributes:
        report: of what it wrote.
        keys: of each target, hashes of the keys that it wrote, 8 bytes each.
        apart: whether there are rows of a table that must not be shared out, none of which was
            written.
    """

    report: TaskReport
    keys: dict[_Name, bytes]
    apart: bool = False

    def then(self, other: InsertPartitionReport) -> InsertPartitionReport:
        """This piece, and the one after it."""
        names = {**self.keys, **other.keys}
        return InsertPartitionReport(
            self.report.then(other.report),
            {name: self.keys.get(name, b"") + other.keys.get(name, b"") for name in names},
            self.apart or other.apart,
        )


class InsertPartitions:
    """The `LoadRunner` of large loads of new rows."""

    def __init__(
        self,
        context: SparkContext,
        codec: RowCodec,
        sink: SinkSettings,
        state: LoadState,
    ) -> None:
        """Nothing is run yet.

        Args:
            context: where to run it.
            codec: tells new rows from other changes.
            sink: where to.
            state: is reported when tasks may write.
        """
        self._context = context
        self._codec = codec
        self._sink = sink
        self._state = state
        self._shuffled: set[_Name] = set()  # targets that turned out to need it

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """See `LoadRunner.run`."""
        targets = new_rows_alone(plan, work, self._codec)
        cut = insert_partitions(work.plain, tasks) if targets.isdisjoint(self._shuffled) else []
        # A few large entries would leave tasks without work.
        if not targets or len(cut) < tasks:
            return None
        self._state.phase = Phase.BOTH
        sink = self._sink

        def load_one(slot: int, mine: Iterable[Sequence[bytes]]) -> Iterator[InsertPartitionReport]:
            for insert_partition in mine:
                yield load_insert_partition(sink, plan, ticket, slot, insert_partition)

        with handing_over(self._context) as hand:
            blobs = [[hand(packed(piece)) for piece in pieces(each)] for each in cut]
            stretched = self._context.parallelize(blobs, len(blobs))
            found = stretched.mapPartitionsWithIndex(load_one).collect()
        if any(each.report.error is not None for each in found):
            return [each.report for each in found]
        if any(each.apart for each in found) or keys_meet(found):
            # The targets at fault are not distinguished: where several are loaded at once, it is
            # enough that the next load does not try again.
            self._shuffled |= targets
            _log.info(
                "rows of these tables are shuffled by key from now on",
                extra=fields(tables=sorted(map(target_name, targets))),
            )
            self._state.refuse_if_cancelled()
            return None
        return [each.report for each in found]


def new_rows_alone(plan: TransformPlan, work: LoadWork, codec: RowCodec) -> frozenset[_Name]:
    """The targets of a load of new rows alone; none if it has, or may have, anything else.

    Each of their rows comes from one table, and has the key that it has there.
    """
    if work.by_branch or work.ready:
        return frozenset()
    sources: dict[_Name, tuple[_Name, int]] = {}
    for item in work.plain:
        if item.decoded is not None or item.table_rows is not None:
            return frozenset()
        for route in plan.router.route(*item.table):
            if route.index not in item.routes:
                continue
            own_key = not (route.key or route.routing or route.processor or route.documents)
            in_any_order = route.group is None and route.conflict is None and not route.rereads
            source = sources.setdefault(route.target, (item.table, route.index))
            if not (own_key and in_any_order) or source != (item.table, route.index):
                return frozenset()
        if not codec.likely_inserts(item.payload):
            return frozenset()
    targets = frozenset(sources)
    return frozenset() if targets & plan.single_writer else targets


def load_insert_partition(
    settings: SinkSettings,
    plan: TransformPlan,
    ticket: LoadTicket,
    slot: int,
    insert_partition: Sequence[bytes],
) -> InsertPartitionReport:
    """In a task: transform the pieces of a stretch and load them, beside other tasks.

    A piece is transformed while the target works on the one before it. Each is loaded in
    transactions of its own. A later piece may have the same key, and is written later.

    Args:
        settings: where to.
        plan: how to transform.
        ticket: on whose behalf.
        slot: the number of this task in its load.
        insert_partition: packed work items of each piece.
    """
    found = InsertPartitionReport(TaskReport(), {})
    for partitions in _one_ahead(lambda items: transform(plan, items), insert_partition):
        found = found.then(_load_piece(settings, ticket, slot, partitions))
        if found.apart or found.report.error is not None:
            break
    return found


def _load_piece(
    settings: SinkSettings, ticket: LoadTicket, slot: int, partitions: Sequence[Partition]
) -> InsertPartitionReport:
    changes = [part for partition in partitions for part in partition.changes]
    if any(
        part.keyless or not spreads([part.columns[i] for i in part.key], None) for part in changes
    ):
        return InsertPartitionReport(TaskReport(), {}, apart=True)
    keys = _keys_of(partitions)
    background = [_beside_others(partition) for partition in partitions]
    return InsertPartitionReport(load(settings, ticket, slot, background), keys)


def _one_ahead(make: Callable[[_Given], _Made], given: Sequence[_Given]) -> Iterator[_Made]:
    """What `make` makes of each; the next one is made in a thread while one is worked on."""
    if len(given) == 1:
        yield make(given[0])
        return
    interval = sys.getswitchinterval()
    # An answer of the target must not wait long for what is being transformed.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(1, "transform") as ahead:
            coming = ahead.submit(make, given[0])
            for following in given[1:]:
                made, coming = coming.result(), ahead.submit(make, following)
                yield made
            yield coming.result()
    finally:
        sys.setswitchinterval(interval)


def _beside_others(partition: Partition) -> Partition:
    """The same, for a task beside which others write into the same tables; new rows, it seems."""
    changes = [replace(part, shared=True, new=not part.deletes) for part in partition.changes]
    return replace(partition, changes=changes)


def _keys_of(partitions: Sequence[Partition]) -> dict[_Name, bytes]:
    """See `InsertPartitionReport.keys`; those of faulty rows are among them."""
    keys: defaultdict[_Name, bytes] = defaultdict(bytes)
    for partition in partitions:
        for part in partition.changes:
            keys[part.target] += key_hashes(part.upserts, part.key)
            keys[part.target] += key_hashes(part.deletes, range(len(part.key)))
        for row in partition.faulty:
            if row.key is not None:
                keys[row.target] += key_hashes([row.key], range(len(row.key)))
    return dict(keys)


def keys_meet(found: Sequence[InsertPartitionReport]) -> bool:
    """Whether two tasks, or two pieces of one, may have written the same key."""
    for target in {target for each in found for target in each.keys}:
        together = b"".join([each.keys.get(target, b"") for each in found])
        hashes = np.frombuffer(together, dtype=np.uint64)
        if len(np.unique(hashes)) < len(hashes):
            return True
    return False
