"""Faulty rows: changes that cannot be applied now, with all that a later attempt needs."""

from __future__ import annotations

from dataclasses import dataclass

from setl.errors import DataError
from setl.model.change import Op, Row
from setl.model.document import DocumentForm
from setl.model.schema import Column, RowSchema


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A rows entry that could not be decoded.

    Attributes:
        codec: name of the codec that could not.
        payload: see `Entry.payload`.
        context: see `Entry.context`.
        table: schema and table.
    """

    codec: str
    payload: bytes
    context: tuple[bytes, ...]
    table: tuple[str, str]


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A decoded change that could not be transformed.

    Attributes:
        schema: the source's columns.
        op: what happened.
        before: see `RowChange`.
        after: see `RowChange`.
        partial: whether `schema` has only the columns that the record mentioned.
        number: see `FaultyRow`.
    """

    schema: RowSchema
    op: Op
    before: Row | None
    after: Row | None
    partial: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A row, or the key of one to delete, that the target does not take.

    Attributes:
        target: see `TargetChanges`.
        columns: the target's columns, see `TargetChanges`.
        key: indexes of the key columns.
        values: values of all columns; of the key columns, in key order, for a delete.
        delete: whether it is a delete.
        group: see `TargetChanges`.
        document: see `TargetChanges`.
        unlogged: see `TargetChanges`.
    """

    target: tuple[str, str]
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    values: Row
    delete: bool = False
    group: str | None = None
    document: DocumentForm | None = None
    unlogged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultyRow:
    """One change that cannot be applied.

    Attributes:
        target: where it was meant to go, see `TargetChanges.target`.
        source: ``schema.table`` that it comes from, "" if not known.
        version: its order in the source, see `document_version`.
        content: the change, in the form that it had when it failed.
        error: why it cannot be applied.
        key: values by which the target knows its row, in key order; None if they are not known,
            or if the change concerns more than one key.
        key_columns: the columns of these values.
        document: how the row becomes a document, see `TargetChanges`; it is known by key and form.
        mapped_by: a digest of the mapping by which it goes to its target; "" if it is not known.
    """

    target: tuple[str, str]
    source: str
    version: int
    content: RawRecord | SourceChange | TargetRow
    error: DataError
    key: Row | None = None
    key_columns: tuple[Column, ...] = ()
    document: DocumentForm | None = None
    mapped_by: str = ""

    @property
    def number(self) -> int:
        """Tells changes of one record apart whose keys do not."""
        return self.content.number if isinstance(self.content, SourceChange) else 0

    @property
    def operation(self) -> str:
        """What it does: an `Op`, ``upsert``, or ``record`` if it was not decoded."""
        content = self.content
        if isinstance(content, RawRecord):
            return "record"
        if isinstance(content, SourceChange):
            return content.op.value
        return "delete" if content.delete else "upsert"
