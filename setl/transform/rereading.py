"""Takes rows as the source has them now, instead of as its stream says (``read: source``).

Of each change only the keys are used that its row had before and has after it. They are looked up
when the load that holds the change is transformed. A key with a row is an upsert of that row, a
key without one is a delete.

Why it is right
    Let P be the end of a load in the stream. What is read for it shows all before P
    (`RowSource.read`), so a row is never older than the changes that asked for it. It may be newer
    than P. So call T(k) the moment at which key k was read last; the target's row k is the
    source's at T(k), and T(k) is not before the last change of k that was loaded.

    *Nothing is lost.* What changes k after T(k) stands in the stream behind P, and so k is read
    again. Once nothing changes any more, each key has been read after its last change.

    *Repetition (I12).* A load that is applied again reads again, later than before. It ends in the
    same state by the same argument. A row has the version of the last change that asked for it. An
    index refuses it where it has a later one. A late writer of the same version writes a
    row that was read after that change. What has changed the row since has a higher version. Either
    it is yet to come, or it is there already, and then the late row is refused.

    *Compaction (I11).* Each key is read once in a task, under the version of its last change. If
    two tasks of a load have read one key, the one with the higher version counts. It has seen all
    before P as well, though it may have been the earlier of the two.

    *Key changes.* An update of the key names two keys. A row under its new key may be read before
    the load that deletes the old one; then both are there for a while, as two rows of different
    moments are anyway.

    *Unique values.* Rows of two moments may have one unique value. The one in the way is older, and
    its own change stands behind P; or it is newer, and then the change that gave it the value
    stands behind P. Either way it comes again, so it may go, if the source cannot hold both either
    (`setl.systems.mysql.load.exact`, `LoadTicket.catching_up`).

    *Loops (I9).* Dropped transactions never come here. What the other site wrote is not read.
    But a row that one site's clients and the other site's have written is read as a whole.

    *Conditions and expressions* see the row that was read. One for which `where` is not true is
    deleted, as ever.

Where the table has changed since
    Columns are those of the change, since the target has no others at that position of the stream.
    A column that the table has no longer, or with another type, has the value of the change: it is
    the last that the stream knows. What has changed the rest of the row later reads it again. Of a
    table that is gone, the changes count as they are.

Images that are not whole
    Keys are all that is needed of an image, and every ``binlog_row_image`` has them. (But of a
    table that is gone, whole images are needed.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.checkpoint import ShownPosition
from setl.model.schema import RowSchema
from setl.transform.columns import image_key, key_indexes
from setl.transform.compaction import Compactor
from setl.transform.survivors import Survivors


class RowSource(Protocol):
    """Where single rows of a source's tables are looked up. Picklable.

    Used by one thread at a time. Idempotent, and without a state that a crash could leave behind.
    """

    def read(
        self, table: RowSchema, keys: Sequence[Row], position: ShownPosition | None
    ) -> tuple[RowSchema, list[Row]] | None:
        """The rows with these keys as they are now, in any order; fewer if some are gone.

        Args:
            table: the table as the stream knows it; has a key.
            keys: values of its key columns, in key order, each once.
            position: all before this position of the stream is to be seen; None if it does not
                matter.

        Returns:
            The table as it is now, and rows of this shape; None if there is no such table any
            more, or its rows are distinguished by another key.

        Raises:
            SetlError: the source cannot be asked.
        """
        ...


class Lookup(NamedTuple):
    """How the rows of one load are looked up. Picklable.

    Attributes:
        source: where.
        position: the end of the load; None if it does not matter.
    """

    source: RowSource
    position: ShownPosition | None = None


class _Asked(NamedTuple):
    """What asks for a key: the last change that names it."""

    version: int
    schema: RowSchema
    image: Row


class RereadRows:
    """Takes the changes of one table in, and gives its rows as they are at the source.

    In place of a `Compactor`, see there.
    """

    def __init__(self, lookup: Lookup) -> None:
        """Start empty."""
        self._lookup = lookup
        self._asked: dict[Row, _Asked] = {}
        self._taken: list[tuple[DecodedRows, int]] = []

    def add_many(self, decoded: DecodedRows, version: int) -> None:
        """Take the changes of one entry in.

        Raises:
            ConfigurationError: the table has no key.
            DataError: a record does not say which row it is about.
        """
        schema = decoded.schema
        key = key_indexes(schema)
        asked = self._asked
        for before, after in decoded.images:
            for image, other in ((before, after), (after, before)):
                if image is None:
                    continue
                values = image_key(schema, key, image, other, "which row it is about")
                asked.pop(values, None)
                asked[values] = _Asked(version, schema, image)
        self._taken.append((decoded, version))

    def take_null_keys(self) -> list[tuple[RowSchema, Row | None, int, DataError]]:
        """None: the table's own key is never null."""
        return []

    def survivors(self) -> list[Survivors]:
        """The rows as they are now, and the keys of those that are gone.

        Raises:
            SetlError: they cannot be looked up.
        """
        by_schema: dict[RowSchema, dict[Row, _Asked]] = {}
        for values, each in self._asked.items():
            by_schema.setdefault(each.schema, {})[values] = each
        result = Compactor()
        for schema, asked in by_schema.items():
            found = self._lookup.source.read(schema, list(asked), self._lookup.position)
            if found is None:
                return self._as_they_came()
            _take_in(result, schema, asked, *found)
        return result.survivors()

    def _as_they_came(self) -> list[Survivors]:
        compactor = Compactor()
        for decoded, version in self._taken:
            for _, after in decoded.images:
                if after is not None and ABSENT in after:
                    raise DataError(
                        "the table is gone from the source, and a change does not say all that"
                        " its row was",
                        hint="Leave the table out of the channel file",
                        table=decoded.schema.name,
                    )
            compactor.add_many(decoded, version)
        return compactor.survivors()


def _take_in(
    result: Compactor,
    schema: RowSchema,
    asked: dict[Row, _Asked],
    there: RowSchema,
    rows: Sequence[Row],
) -> None:
    """Give a compactor what was found of the keys that are asked for."""
    shaped = _shaping(schema, there)
    key = [there.folded[schema.columns[i].name.lower()] for i in key_indexes(schema)]
    left = dict(asked)
    newest = max(each.version for each in asked.values())
    found: dict[int, list[Row]] = {}
    for row in rows:
        # A collation may take another spelling of a key for the same. The row of this spelling
        # is as new as the newest change that asked for any.
        each = left.pop(tuple(row[i] for i in key), None)
        version = newest if each is None else each.version
        found.setdefault(version, []).append(shaped(row, None if each is None else each.image))
    gone: dict[int, list[Row]] = {}
    for values, each in left.items():
        gone.setdefault(each.version, []).append(_only_key(schema, values))
    for version in sorted(found.keys() | gone.keys()):
        deleted = [(image, None) for image in gone.get(version, ())]
        inserted = [(None, row) for row in found.get(version, ())]
        if deleted:
            result.add_many(DecodedRows(schema, Op.DELETE, [*deleted]), version)
        if inserted:
            result.add_many(DecodedRows(schema, Op.INSERT, [*inserted]), version)


def _shaping(schema: RowSchema, there: RowSchema) -> Callable[[Row, Row | None], Row]:
    """Makes rows of a table as it is now into rows of the table as a change knows it."""
    positions: list[int] = []
    for column in schema.columns:
        position = there.folded.get(column.name.lower(), -1)
        same = position >= 0 and there.columns[position].kind is column.kind
        positions.append(position if same else -1)
    whole = -1 not in positions
    as_it_is = positions == list(range(len(there.columns)))

    def shaped(row: Row, image: Row | None) -> Row:
        if as_it_is:
            return row
        if whole:
            return tuple([row[position] for position in positions])
        values: list[Value] = []
        for i, position in enumerate(positions):
            last = ABSENT if image is None else image[i]
            values.append(row[position] if position >= 0 else last)
        return tuple(values)

    return shaped


def _only_key(schema: RowSchema, values: Row) -> Row:
    by_index = dict(zip(key_indexes(schema), values, strict=True))
    return tuple(by_index.get(i, ABSENT) for i in range(len(schema.columns)))
