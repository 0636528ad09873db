"""Whether an offset lies between two transactions, as far as the records beside it tell.

Reading that begins inside of a transaction sees neither its mark nor its first rows: half of it
would be applied, and what this channel wrote itself would be taken for a client's.
"""

from __future__ import annotations

from typing import Final

from setl.errors import ConfigurationError
from setl.model.entry import EntryKind
from setl.systems.kafka.by_time import ENDS
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.partition import PartitionView, SeenRecord

_STEP: Final = 64  # offsets that are looked at first
_FURTHEST: Final = 1 << 20  # offsets that are looked at for the record before the position


def check_between(view: PartitionView, bounds: Bounds, offset: int, deadline: float) -> None:
    """Refuse an offset inside a transaction; one that nothing tells of passes.

    Raises:
        ConfigurationError: it is; names where the next transaction begins.
        TransientError: the records do not come by `deadline`.
    """
    before = _change_before(view, bounds, offset, deadline)
    if before is None or before.full_load or before.kind in ENDS:
        return
    following = (r for r in view.records(offset, bounds.end, deadline) if _is_change(r))
    first = next(following, None)
    if first is not None and _begins(first):
        return  # sources leave out a COMMIT now and then
    there = first
    while there is not None and not (_begins(there) or there.kind is EntryKind.COMMIT):
        there = next(following, None)
    ends = "has not come to its end yet"
    if there is not None:
        behind = there.offset + (there.kind is EntryKind.COMMIT)
        ends = f"ends before {behind}: give that offset to leave it out"
    raise ConfigurationError(
        f"the position {offset} is inside a transaction",
        hint=f"It {ends}. To take all of it, give that of its BEGIN (`setl peek --all` shows it)",
    )


def _change_before(
    view: PartitionView, bounds: Bounds, offset: int, deadline: float
) -> SeenRecord | None:
    """The last record before an offset that is no heartbeat, None if none is near."""
    until, step = offset, _STEP
    while until > max(bounds.first, offset - _FURTHEST):
        begin = max(bounds.first, until - step)
        last = None
        for record in view.records(begin, until, deadline):
            if _is_change(record):
                last = record
        if last is not None:
            return last
        until, step = begin, step * 4
    return None


def _is_change(record: SeenRecord) -> bool:
    return record.kind is not EntryKind.HEARTBEAT


def _begins(record: SeenRecord) -> bool:
    return record.full_load or record.kind in (EntryKind.BEGIN, EntryKind.DDL)
