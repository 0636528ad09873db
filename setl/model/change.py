"""Row changes: decoded inserts, updates and deletes, before and after any mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from setl.model.document import DocumentForm, DocumentOrigin
from setl.model.schema import Column, RowSchema


class Absent(Enum):
    """The value of a column that the record does not mention; not the same as NULL."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent.ABSENT

Value = int | float | str | bytes | Absent | None
"""A column's value in its normal form; which Python type a column uses says `Kind`."""

Row = tuple[Value, ...]
"""The values of one image, in the order of `RowSchema.columns`."""


class Op(Enum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class RowChange(NamedTuple):
    """One decoded change of one row.

    Attributes:
        op: what happened.
        before: the row before it; None for an insert.
        after: the row after it; None for a delete.
        version: order in the source, as `document_version` makes it.
    """

    op: Op
    before: Row | None
    after: Row | None
    version: int


class DecodedRows(NamedTuple):
    """What a codec makes of one rows entry: all changes of it share operation and schema.

    Attributes:
        schema: the columns, as they were at this position of the stream.
        op: what happened to every row of the entry.
        images: (before, after) of each row; see `RowChange` for which one may be None.
    """

    schema: RowSchema
    op: Op
    images: list[tuple[Row | None, Row | None]]


@dataclass(frozen=True, slots=True)
class TargetChanges:
    """What one Spark task writes to one table or index: one survivor for each key.

    Attributes:
        target: ``schema.table`` parts for MySQL, or ``("", index)`` for Elasticsearch.
        columns: the target's columns, in the order of the values of `upserts`.
        key: indexes of the key columns in `columns`.
        upserts: rows to insert or to replace, in source order: a list, or columns that decode a
            row when it is asked for.
        deletes: keys to delete (values of the key columns, in key order).
        upsert_versions: source order of each upsert.
        delete_versions: source order of each delete.
        group: name of the table group, None if the table is in none.
        document: how rows become documents; None joins the key for the id. Rows of different
            forms are different documents, even if their keys are equal.
        source: ``schema.table`` that the rows come from, "" if they come from several.
        shared: whether other tasks of the load may write rows of the target too.
        partial: whether rows lack columns that their table has, see `Survivors.partial`.
        new: whether the target has most likely none of the rows yet. It may have some, after a
            crash for instance, so it is no more than a hint which way of writing is cheap.
        ids: what the documents' ids are made of; None if that is not known.
        mapped_by: tells the mapping that made the rows from others, see `FaultyRow`.
        unlogged: columns of the target that the rows should fill and of which they say nothing, see
            `RowSchema.unlogged`. They can only be written where the target computes all of these.
        keyless: whether the source's table has no key. Rows are distinguished by all of their
            values then, and may be there several times: `key` has all columns, `deletes` are whole
            rows, and both lists have all that happened, not what is left of it.
    """

    target: tuple[str, str]
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    upserts: Sequence[Row] = field(default_factory=list[Row])
    deletes: list[Row] = field(default_factory=list[Row])
    upsert_versions: list[int] = field(default_factory=list[int])
    delete_versions: list[int] = field(default_factory=list[int])
    group: str | None = None
    document: DocumentForm | None = None
    source: str = ""
    shared: bool = False
    partial: bool = False
    new: bool = False
    ids: DocumentOrigin | None = None
    mapped_by: str = ""
    unlogged: tuple[str, ...] = ()
    keyless: bool = False

    @property
    def own_upserts(self) -> list[Row]:
        """`upserts` as a list to add to. Raises TypeError if they are no list, but columns."""
        if not isinstance(self.upserts, list):
            raise TypeError("rows that are columns cannot be added to")
        return self.upserts

    def with_own_rows(self) -> TargetChanges:
        """The same changes in lists of their own, to which others may be added."""
        return replace(
            self,
            upserts=[*self.upserts],
            deletes=self.deletes[:],
            upsert_versions=self.upsert_versions[:],
            delete_versions=self.delete_versions[:],
        )

    def without_rows(self) -> TargetChanges:
        """Changes for the same target and columns, none yet."""
        return replace(self, upserts=[], deletes=[], upsert_versions=[], delete_versions=[])


def filled(row: Row, other: Row) -> Row:
    """The row, its absent values taken from another image of the same schema."""
    return tuple([o if v is ABSENT else v for v, o in zip(row, other, strict=True)])
