"""Which of a load's tasks writes a row.

Tasks of one load write at the same time, each in transactions of its own. Changes of one key
must therefore meet in one task, whichever task, process or node works it out; and so must
changes of rows that the *target* cannot hold side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from setl.model.change import Row
from setl.model.schema import Column, Kind

# Kinds of which two different values may be one value to a comparison in MySQL.
_LOOSE = frozenset((Kind.TEXT, Kind.FLOAT))


def bucket_of(key: Row, buckets: int) -> int:
    """The bucket, from 0, that a key belongs to.

    The same in every process and on every machine, which `hash` is not. A checksum of the
    key's text as Python writes it: types do not mix, text and bytes are quoted, and a tuple's
    parts cannot run into each other. A remainder of the key itself would put all rows of a
    server with ``auto_increment_increment=2`` into one of two buckets.

    Args:
        key: values of the key columns, in key order; none of them absent.
        buckets: how many there are, at least 1.
    """
    return crc32(repr(key).encode()) % buckets


def spreads(key: Sequence[Column], group: str | None) -> bool:
    """Whether the rows of a table may be shared out among tasks by key.

    Not if the table is in a group, whose changes keep their order. And not if two different
    keys may be one key to the target. With a collation that ignores case, the update
    ``'a' → 'A'`` comes out of compaction as "delete ``a``, upsert ``A``", which to the target
    are the same row: written by two tasks, the delete could come second and remove it. (For
    floating-point keys the pair is ``0.0`` and ``-0.0``.)

    The bucket of a table that does not spread is that of its group's or its target's name,
    as a key of one value.

    Args:
        key: the key columns.
        group: name of the table group, None if there is none.
    """
    return group is None and all(c.kind not in _LOOSE or c.binary_order for c in key)
