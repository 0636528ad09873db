"""Chooses the partition of the topic for each row.

With ``order`` there is one partition that matters, and it has all that the source did, in its
order and in its transactions. Everything else buys speed, since partitions are written and read
side by side, and costs some of this:

* Rows of different partitions have no order among each other. A subscriber may see an order's
  item before the order, so foreign keys have to be off at its target; and with ``key`` it may
  see a unique value at its new owner before the former owner gives it up.
* A transaction is one in each partition, not across them: every partition that gets rows of it
  has a BEGIN and a COMMIT, and one may be applied long before the other.
* DDL goes to all partitions. It stands at its position in each of them, but a subscriber comes to
  the copies at different times.
* With ``key``, an update that moves a row to a key of another partition is written as a DELETE
  in the old key's partition and an INSERT in the new one's.
* Another number of partitions, another table group or, with ``key``, another primary key moves
  rows to other partitions, where their next change may overtake the last one in the old
  partition. Let subscribers come to the end before such a change.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, filled
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.placement import bucket_of

PartitionBy = Literal["order", "table", "key"]

_MAX_TABLES: Final = 10_000
FULL_IMAGES: Final = "SET GLOBAL binlog_row_image=FULL on the source, then start after that"
"""What makes a source tell all of a row."""


class Partitioned(NamedTuple):
    """Which partition each row of an entry goes to.

    Attributes:
        to: the partition of each row.
        moved: for rows that have come from another partition: index → that partition.
    """

    to: list[int]
    moved: dict[int, int]


class Partitioner:
    """Deals rows out to partitions: those of a key, or of a table, always to the same one.

    A table's or a table group's name, or the values of a key, become a number by CRC-32, see
    `setl.transform.placement.bucket_of`: the same in every process and release.
    """

    def __init__(self, by: PartitionBy, partitions: int) -> None:
        """Distribute to `partitions` partitions, at least 1.

        Args:
            by: what keeps its order. ``order``: everything. ``table``: each table, or table
                group. ``key``: the rows of one primary key; tables without one are distributed
                as with ``table``, and so are those in a group, and those of which two keys
                may be equal though their values differ.
            partitions: of the topic.
        """
        self.partitions = partitions
        self._by: PartitionBy = by
        self._tables: dict[tuple[str, str], tuple[RowSchema, int | None]] = {}

    def partition(self, changes: DecodedRows, group: str | None) -> Partitioned:
        """The partition of each row of an entry.

        Raises:
            DataError: an image is without its key.
        """
        schema, op, images = changes
        known = self._tables.get((schema.schema, schema.table))
        # A codec gives the same object as long as the table does not change.
        fixed = known[1] if known and known[0] is schema else self._learn(schema, group)
        if fixed is not None:
            return Partitioned([fixed] * len(images), {})
        if op is Op.UPDATE:
            return self._updates(schema, images)
        side = 0 if op is Op.DELETE else 1
        return Partitioned(
            [self._bucket(schema, _key(schema, image[side])) for image in images], {}
        )

    def _updates(
        self, schema: RowSchema, images: list[tuple[Row | None, Row | None]]
    ) -> Partitioned:
        to: list[int] = []
        moved: dict[int, int] = {}
        for i, (before, after) in enumerate(images):
            old = _key(schema, before)
            # An after image may leave out what did not change.
            new = _key(schema, completed(before, after))
            bucket = self._bucket(schema, new)
            to.append(bucket)
            if new != old and (former := self._bucket(schema, old)) != bucket:
                moved[i] = former
        return Partitioned(to, moved)

    def _bucket(self, schema: RowSchema, key: Row) -> int:
        if ABSENT in key:
            raise DataError(
                "a row arrives without its key",
                hint=FULL_IMAGES,
                schema=schema.schema,
                table=schema.table,
            )
        return bucket_of(key, self.partitions)

    def _learn(self, schema: RowSchema, group: str | None) -> int | None:
        """The partition of all rows of a table; None if it depends on the row."""
        key = [schema.columns[i] for i in schema.key]
        if self._by == "order":
            fixed = 0
        elif self._by == "key" and key and group is None and all(map(_distinct, key)):
            fixed = None
        else:
            fixed = bucket_of((group or schema.name,), self.partitions)
        if len(self._tables) >= _MAX_TABLES:
            self._tables.clear()
        self._tables[schema.schema, schema.table] = schema, fixed
        return fixed


def completed(before: Row | None, after: Row | None) -> Row:
    """The after image of an update, with what it leaves out taken from the before image."""
    if after is None:
        return ()
    if before is None or ABSENT not in after:
        return after
    return filled(after, before)


def _distinct(column: Column) -> bool:
    """Whether two values of a key column are surely two to the server.

    Otherwise an update such as ``'a' → 'A'``, or one behind the prefix that a key ends with,
    could become a DELETE and an INSERT of one and the same row in two partitions. (With
    floating-point keys the pair is ``0.0`` and ``-0.0``.)
    """
    return column.binary_order and column.kind is not Kind.FLOAT


def _key(schema: RowSchema, row: Row | None) -> Row:
    return tuple([(row or ())[i] for i in schema.key])
