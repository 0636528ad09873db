"""A large load of new rows alone: each task transforms a stretch of the stream and loads it.

Nothing has to be dealt out by key where no key changes twice. New rows of a table have keys of
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
import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark import SparkContext

from setl.codec.row_codec import RowCodec
from setl.load.sink import LoadTicket, SinkSettings
from setl.log import fields
from setl.run.load_work import LoadWork, staggered
from setl.run.runners.runner import LoadRunner, LoadState, Phase
from setl.run.tasks import TaskReport, load, transform
from setl.transform.placement import key_hashes, spreads
from setl.transform.share import Share
from setl.transform.work import TransformPlan

_log = logging.getLogger(__name__)

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StretchReport:
    """What a task says of its stretch.

    Attributes:
        report: of what it wrote.
        keys: of each target, hashes of the keys that it wrote, 8 bytes each.
        apart: whether nothing was written, because rows of one table must not be shared out.
    """

    report: TaskReport
    keys: dict[_Name, bytes]
    apart: bool = False


class StretchByStretch:
    """The `LoadRunner` of large loads of new rows; gives the others to `DealtByKey`."""

    def __init__(
        self,
        context: SparkContext,
        codec: RowCodec,
        sink: SinkSettings,
        state: LoadState,
        by_key: LoadRunner,
    ) -> None:
        """Nothing is run yet.

        Args:
            context: where to run it.
            codec: tells new rows from other changes.
            sink: where to.
            state: is told when tasks may write.
            by_key: runs what cannot be run stretch by stretch.
        """
        self._context = context
        self._codec = codec
        self._sink = sink
        self._state = state
        self._by_key = by_key
        self._dealt: set[_Name] = set()  # targets that turned out to need it

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport]:
        """See `LoadRunner.run`."""
        targets = new_rows_alone(plan, work, self._codec)
        cut = staggered(work.plain, tasks) if targets.isdisjoint(self._dealt) else []
        # A few large entries would leave tasks without work.
        if not targets or len(cut) < tasks:
            return self._by_key.run(plan, work, ticket, tasks)
        self._state.phase = Phase.BOTH
        sink = self._sink
        blobs = [pickle.dumps(stretch, protocol=5) for stretch in cut]

        def load_one(slot: int, mine: Iterable[bytes]) -> Iterator[StretchReport]:
            for blob in mine:
                yield load_stretch(sink, plan, ticket, slot, blob)

        stretched = self._context.parallelize(blobs, len(blobs))
        found = stretched.mapPartitionsWithIndex(load_one).collect()
        if any(each.report.error is not None for each in found):
            return [each.report for each in found]
        if any(each.apart for each in found) or keys_meet(found):
            # The targets at fault are not told apart: where several are loaded at once, it is
            # enough that the next load does not try again.
            self._dealt |= targets
            _log.info(
                "rows of these tables are dealt out by key from now on",
                extra=fields(tables=sorted(".".join(filter(None, name)) for name in targets)),
            )
            self._state.refuse_if_cancelled()
            return self._by_key.run(plan, work, ticket, tasks)
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
    return frozenset() if targets & plan.undivided else targets


def load_stretch(
    settings: SinkSettings, plan: TransformPlan, ticket: LoadTicket, slot: int, items: bytes
) -> StretchReport:
    """In a task: transform pickled work items and load them, beside other tasks."""
    shares = transform(plan, items)
    changes = [part for share in shares for part in share.changes]
    if not all(spreads([part.columns[i] for i in part.key], None) for part in changes):
        return StretchReport(TaskReport(), {}, apart=True)
    keys = _keys_of(shares)
    beside = [_beside_others(share) for share in shares]
    return StretchReport(load(settings, ticket, slot, beside), keys)


def _beside_others(share: Share) -> Share:
    """The same, for a task beside which others write into the same tables."""
    return replace(share, changes=[replace(part, shared=True) for part in share.changes])


def _keys_of(shares: Sequence[Share]) -> dict[_Name, bytes]:
    """See `StretchReport.keys`; those of faulty rows are among them."""
    keys: defaultdict[_Name, bytes] = defaultdict(bytes)
    for share in shares:
        for part in share.changes:
            keys[part.target] += key_hashes(part.upserts, part.key)
            keys[part.target] += key_hashes(part.deletes, range(len(part.key)))
        for row in share.faulty:
            if row.key is not None:
                keys[row.target] += key_hashes([row.key], range(len(row.key)))
    return dict(keys)


def keys_meet(found: Sequence[StretchReport]) -> bool:
    """Whether two tasks may have written the same key."""
    for target in {target for each in found for target in each.keys}:
        together = b"".join([each.keys.get(target, b"") for each in found])
        hashes = np.frombuffer(together, dtype=np.uint64)
        if len(np.unique(hashes)) < len(hashes):
            return True
    return False
