"""Rows with null in a column that their mapping names as key.

No two of them are one row, although their keys look alike: each is faulty on its own. So they are
kept here, beside what a `Compactor` keeps by key. Of a row only its image tells which it is. One
that comes and goes in one load, or gets a key, has never been at the target, and nothing is left
of it.

Changes may be taken in twice (`setl.transform.isolating.faults_one_by_one`): the second time
changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from setl.errors import DataError
from setl.model.change import Op, Row, filled
from setl.model.schema import RowSchema

Images = list[tuple[Row | None, Row | None]]
"""See `DecodedRows.images`."""


class NullKeyed(NamedTuple):
    """A change of a row whose key is null.

    Attributes:
        schema: its columns.
        row: the row; None if it goes, and came by an earlier load.
        version: of the change.
        key: its key, which has null in it.
    """

    schema: RowSchema
    row: Row | None
    version: int
    key: Row


class NullKeys:
    """What is known of such rows in one load, in stream order."""

    def __init__(self, columns: int) -> None:
        """Start empty.

        Args:
            columns: how many columns the mapping names as key; 0 for none, and then no key is null.
        """
        self._columns = columns
        # The image that a change brings or takes away, and its version, tell changes apart.
        self._pending: dict[tuple[Row, int], NullKeyed] = {}
        self._taken_back: set[tuple[Row, int]] = set()

    def concern(self, key: Sequence[int], images: Images) -> bool:
        """Whether any of these rows has such a key.

        Args:
            key: indexes of the columns that identify a row; behind the key one may stand that
                routes documents, and may be null.
            images: the rows before and after their changes.
        """
        if not self._columns:
            return False
        return any(self._is_null(key, image) for both in images for image in both)

    def rest(
        self,
        schema: RowSchema,
        key: Sequence[int],
        op: Op,
        image: tuple[Row | None, Row | None],
        version: int,
    ) -> tuple[Op, Images, int]:
        """Take one change in; returns what is left of it for the rows that have a key."""
        before, after = image
        if before is not None and after is not None:
            before, after = filled(before, after), filled(after, before)
        gone, come = self._is_null(key, before), self._is_null(key, after)
        if not (gone or come):
            return op, [image], version
        if before is not None and gone:
            there = NullKeyed(schema, None, version, self._key_of(key, before))
            self._go(before, there, lasts=come)
        if after is not None and come:
            there = NullKeyed(schema, after, version, self._key_of(key, after))
            self._pending[after, version] = there
        if gone and come:
            return op, [], version
        if op is Op.UPDATE:
            return (
                (Op.INSERT, [(None, after)], version)
                if gone
                else (Op.DELETE, [(before, None)], version)
            )
        return op, [], version

    def take(self) -> list[tuple[NullKeyed, DataError]]:
        """Take out what is left, with what is wrong with it."""
        taken, self._pending = self._pending, {}
        return [(each, _error(each)) for each in taken.values()]

    def _is_null(self, key: Sequence[int], image: Row | None) -> bool:
        return image is not None and None in self._key_of(key, image)

    def _key_of(self, key: Sequence[int], image: Row) -> Row:
        return tuple(image[i] for i in key[: self._columns])

    def _go(self, before: Row, there: NullKeyed, *, lasts: bool) -> None:
        """A row is deleted, or changed, and then has no key after it either if it `lasts`."""
        version = there.version
        if (before, version) in self._taken_back:
            return
        same = [
            position
            for position in self._pending
            if position[0] == before and position[1] <= version
        ]
        if same:
            del self._pending[same[-1]]
            self._taken_back.add((before, version))
        elif not lasts:
            self._pending[before, version] = there


def _error(found: NullKeyed) -> DataError:
    name = found.schema.name
    return DataError(
        f"a row of {name} has null in a column that its mapping names as key",
        hint="Name columns under `key` that are unique and never null",
        table=name,
        key=found.key,
        version=found.version,
    )
