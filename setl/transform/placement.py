"""Chooses the task of a load that writes a row.

Tasks of one load write at the same time, each in transactions of its own. So changes of one key
must meet in one task, whichever task, process or node works that out. So must changes of rows
that the *target* cannot hold side by side. Either the two are one row to it, or one of them still
has the unique value that the other is to get.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.column_rows import ColumnRows
from setl.model.change import Row, TargetChanges
from setl.model.schema import Column, Kind
from setl.transform.row_sequences import taken

_ODD: Final = 0x9E37_79B9_7F4A_7C15  # 2**64 divided by the golden ratio
_WORD: Final = (1 << 64) - 1
_HALF: Final = 1 << 32


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


def homes_of(rows: Sequence[Row], key: Sequence[int], buckets: int) -> list[int]:
    """Which task of a load writes each of these rows, given the key's places in a row.

    As `bucket_of`, but for keys that are one integer a number that costs a tenth: the upper bits
    of its product with an odd number without a pattern (Knuth's multiplicative hashing). Only
    tasks of one load have to agree on it, while what `bucket_of` says stays in topics.
    """
    if isinstance(rows, ColumnRows):
        numbers = _products(rows, key)
        if numbers is not None:
            return (numbers // np.uint64(_HALF) % np.uint64(buckets)).tolist()
        rows, key = rows.keys(key), range(len(key))
    if len(key) > 1:
        return [bucket_of(tuple([row[i] for i in key]), buckets) for row in rows]
    position = key[0]
    return [
        (value * _ODD & _WORD) // _HALF % buckets
        if isinstance(value, int)
        else bucket_of((value,), buckets)
        for value in [row[position] for row in rows]
    ]


def key_hashes(rows: Sequence[Row], key: Sequence[int]) -> bytes:
    """A number of 8 bytes for the key of each row, the same in every process.

    Keys that are one integer have different numbers if they differ; others nearly always.

    Args:
        rows: the rows.
        key: the key's places in a row.
    """
    if isinstance(rows, ColumnRows):
        products = _products(rows, key)
        if products is not None:
            return products.tobytes()
        rows, key = rows.keys(key), range(len(key))
    one = key[0] if len(key) == 1 else None
    numbers = array("Q")
    for row in rows:
        value = None if one is None else row[one]
        if isinstance(value, int):
            numbers.append(value * _ODD & _WORD)
        else:
            text = repr(tuple([row[i] for i in key])).encode()
            numbers.append(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))
    return numbers.tobytes()


def _products(rows: ColumnRows, key: Sequence[int]) -> NDArray[np.uint64] | None:
    """For keys that are one integer, its product with `_ODD`; None for others."""
    integers = rows.integers(key[0]) if len(key) == 1 else None
    return None if integers is None else integers.astype(np.uint64) * np.uint64(_ODD)


def spreads(key: Sequence[Column], group: str | None, *, single_writer: bool = False) -> bool:
    """Whether the rows of a table may be shared out among tasks by key.

    Not if the table is in a group, whose changes keep their order.

    Not if unique values can move from row to row. The row that takes a value needs the row that
    gives it up out of the way. Where two tasks write these rows, each locks what the other waits
    for, until the server ends one of them; and between their commits a reader misses a row that
    was never deleted. Which rows share a value is not known either: compaction keeps of a row
    the last image alone, and of a load that is applied again the target may hold later rows. So
    such a table has one task. (It costs nothing there: tasks that write into one unique index
    wait for each other.)

    And not if two different keys may be one key to the target. With a collation that ignores
    case, the update ``'a' → 'A'`` comes out of compaction as "delete ``a``, upsert ``A``", which
    to the target are the same row: written by two tasks, the delete could come second and remove
    it. (For floating-point keys the pair is ``0.0`` and ``-0.0``.)

    The bucket of a table that does not spread is that of its group's or its target's name,
    as a key of one value.

    Args:
        key: the key columns.
        group: name of the table group, None if there is none.
        single_writer: whether rows of the target can be in each other's way, see
            `setl.systems.mysql.sink.single_writer`.
    """
    return group is None and not single_writer and not any(map(_loose, key))


def _loose(column: Column) -> bool:
    """Whether two different values may be one value to a comparison in MySQL."""
    return column.kind is Kind.FLOAT or (column.kind is Kind.TEXT and not column.binary_order)


def split(
    changes: TargetChanges, group: str | None, buckets: int, *, single_writer: bool = False
) -> dict[int, TargetChanges]:
    """Deal one target's changes out to `buckets` tasks, each key to one of them."""
    key_columns = [changes.columns[i] for i in changes.key]
    if buckets == 1 or not spreads(key_columns, group, single_writer=single_writer):
        home = bucket_of((group or ".".join(changes.target),), buckets)
        # Rows of another source table may go to the same target by another way.
        alone = buckets == 1 or single_writer
        return {home: changes if alone else replace(changes, shared=True)}
    # A document that is routed again is written, and deleted where it was, by one task.
    form, positions = changes.document, range(len(changes.key))
    if form is not None:
        positions = [i for i in positions if i in form.values or i != form.routing]
    key = [changes.key[i] for i in positions]
    upserts = _numbers(homes_of(changes.upserts, key, buckets))
    deletes = _numbers(homes_of(changes.deletes, positions, buckets))
    return {
        home: replace(
            changes,
            shared=True,
            upserts=taken(changes.upserts, upserts[home]),
            upsert_versions=[changes.upsert_versions[i] for i in upserts[home]],
            deletes=[changes.deletes[i] for i in deletes[home]],
            delete_versions=[changes.delete_versions[i] for i in deletes[home]],
        )
        for home in sorted({*upserts, *deletes})
    }


def _numbers(homes: Sequence[int]) -> defaultdict[int, list[int]]:
    """The numbers of the rows of each task."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for number, home in enumerate(homes):
        found[home].append(number)
    return found
