"""Recognises transactions that this channel wrote itself, by their marks (I9).

Every transaction that a loader writes begins with a row of ``retl.retl_mark``. Whoever reads
the binlog of that server drops a transaction whose mark is its own channel's; without that, a
change would go round between two sites for ever. The verdict belongs to the transaction, not to
the batch: it is a value that the caller hands from one entry, and so from one batch, to the
next, and a transaction is dropped whole however many batches it is cut into. (Otter decides
batch by batch and lets the middle of a large transaction pass: otter#986.)

Where a transaction ends is not always written in the stream, since DTS leaves out a begin or a
commit now and then:

* A begin ends the transaction before it. Rows after a commit, or after DDL, begin one.
* A mark that is not the first row is still the *start* of a loader's transaction, because
  loaders write it nowhere else. So a mark in the middle means that a commit and a begin are
  missing, and that a new transaction starts with it: from there on its verdict holds. The same
  is true of the mark of another channel that follows our own transaction.
* Otter also writes a mark at the *end* of a transaction, which clears the row. What follows it
  can only be another transaction.
* A heartbeat of the stream says nothing.

One case is left that nothing in the stream can tell: an own transaction, followed without a
commit and without a begin by one that has no mark at all. It would be dropped. A source that
leaves both records out at the same position cannot be used in both directions.

Echoes are counted, those that are dropped and those that are not. Two things count as not
dropped. A mark comes after rows of its transaction that were let through already. Or a mark has
another number, though it is in the row of the mark table that only this channel's writer uses: so
something at the server changes marks. A loader writes neither, so this counter stays 0. It cannot
see a mark that is not in the stream at all; `setl check` looks for what keeps marks out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from setl.channel.relations.mark_ids import WRITER_BITS
from setl.model.change import ABSENT, Op, Row, Value
from setl.model.entry import EntryKind
from setl.model.schema import RowSchema

SYNC_SUFFIX = "_sync"
"""A ``CHANNEL_INFO`` that ends so, in any case, is dropped by every channel (Otter's rule)."""


@dataclass(frozen=True, slots=True)
class MarkIdentity:
    """What tells a channel its own marks.

    Attributes:
        mark_id: its ``CHANNEL_ID`` in ``retl.retl_mark``; None for a channel that marks nothing,
            to which no mark is its own.
        info: the ``CHANNEL_INFO`` that Otter nodes of the same channel write, "" if there are
            none. setl's own text there changes with every transaction (I10), so it identifies
            nothing.
        writers: the numbers of the channel's own writers, see
        `setl.channel.relations.mark_ids.writer_number`.
    """

    mark_id: int | None
    info: str = ""
    writers: frozenset[int] = frozenset()


class Mark(Enum):
    """What one row of the mark table says about the transaction it stands in."""

    LOOPBACK = "loopback"  # this channel wrote it, or nobody is to have it (_SYNC)
    LOOPBACK_END = "loopback end"  # as before, and it is the last row of it
    FOREIGN = "foreign"  # another channel wrote it
    NONE = "none"  # nothing: the row is being cleared, prepared or removed


@dataclass(frozen=True, slots=True)
class LoopbackState:
    """The state of the open transaction: what happens to its rows.

    Attributes:
        inside: whether a transaction is open.
        loopback: whether its rows are to be dropped.
        passed: whether rows of it were let through.
    """

    inside: bool
    loopback: bool
    passed: bool = field(default=False, compare=False)


OUTSIDE = LoopbackState(inside=False, loopback=False)
"""Between two transactions. Checkpoints resume only here, so this is the state to start in."""

PASSING = LoopbackState(inside=True, loopback=False)
PASSED = LoopbackState(inside=True, loopback=False, passed=True)
DROPPING = LoopbackState(inside=True, loopback=True)


def after_entry(state: LoopbackState, kind: EntryKind) -> LoopbackState:
    """The state after an entry that is no mark; rows are ruled by the state after them."""
    if kind is EntryKind.ROWS or kind is EntryKind.STATEMENT:
        return state if state.inside else PASSING
    if kind is EntryKind.HEARTBEAT:
        return state
    return PASSING if kind is EntryKind.BEGIN else OUTSIDE


def after_mark(state: LoopbackState, mark: Mark) -> LoopbackState:
    """The state after a row of the mark table."""
    if mark is Mark.NONE:
        return state if state.inside else PASSING
    if mark is Mark.FOREIGN:
        return PASSING
    if mark is Mark.LOOPBACK_END and state.loopback:
        return OUTSIDE
    return DROPPING


class Echo(Enum):
    """What became of a transaction that is to be dropped."""

    DROPPED = "dropped"  # whole
    PASSED = "passed"  # not, or not whole


def echo_of(
    identity: MarkIdentity, state: LoopbackState, mark: Mark, schema: RowSchema, after: Row | None
) -> Echo | None:
    """What a row of the mark table tells of an echo; None if of none, or of a known one.

    Args:
        identity: by what the channel knows its own marks.
        state: before the row.
        mark: what `read_mark` says of it.
        schema: the row's columns.
        after: its after image.
    """
    if state.loopback:
        return None
    if mark in {Mark.LOOPBACK, Mark.LOOPBACK_END}:
        return Echo.PASSED if state.passed else Echo.DROPPED
    number = _number(_column(schema, after, "id"))
    return Echo.PASSED if number >> WRITER_BITS in identity.writers else None


def read_mark(
    identity: MarkIdentity, schema: RowSchema, op: Op, before: Row | None, after: Row | None
) -> Mark:
    """What a row of ``retl.retl_mark`` says.

    The after image counts. The before image is only asked for what the after image does not
    say, that is at Otter's end mark, which sets ``CHANNEL_ID`` to 0 and ``CHANNEL_INFO`` to
    NULL: otherwise the last transaction under this number would speak for the present one.
    A removed row says nothing: that is an operator who tidies up, no loader.

    Columns are found by name, in any case, and columns that are not Otter's are ignored.
    ``CHANNEL_ID`` may be 0, NULL, absent or missing. The source must log full images of this
    table: where neither image has the id, the row says nothing.
    """
    if op is Op.DELETE or after is None:
        return Mark.NONE
    before_id, before_info = _id_and_info(schema, before)
    after_id, after_info = _id_and_info(schema, after)
    if after_id is ABSENT:
        after_id = before_id
    if after_info is ABSENT:
        after_info = before_info
    channel = _number(after_id)
    if _drops(identity, after_info):
        return Mark.LOOPBACK
    if not after_info and _drops(identity, before_info):
        return Mark.LOOPBACK if channel else Mark.LOOPBACK_END
    if channel:
        return Mark.LOOPBACK if channel == identity.mark_id else Mark.FOREIGN
    former = _number(before_id)
    return Mark.LOOPBACK_END if former and former == identity.mark_id else Mark.NONE


def _id_and_info(schema: RowSchema, row: Row | None) -> tuple[Value, Value]:
    return _column(schema, row, "channel_id"), _column(schema, row, "channel_info")


def _column(schema: RowSchema, row: Row | None, name: str) -> Value:
    index = schema.folded.get(name, -1)
    return None if row is None or index < 0 else row[index]


def _number(value: Value) -> int:
    """A channel's number; 0 for everything that is none."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else 0
    return value if isinstance(value, int) else 0


def _drops(identity: MarkIdentity, info: Value) -> bool:
    if not isinstance(info, str) or not info:
        return False
    return info == identity.info or info.lower().endswith(SYNC_SUFFIX)
