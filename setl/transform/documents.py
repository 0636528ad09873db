"""Rebuilds documents of several tables' rows from the source when one of the rows changes.

The stream says *which* documents change; what they hold is looked up. Row by row there is no
other way: a change of an item does not say what the order's other items are. So of each change
only the keys of the documents are kept that its row belongs to, or belonged to before.

Why looking up late is right
    A document is read after the change that asked for it was committed, so it has that change,
    and perhaps later ones. It is written under the version of the change. Each later change
    comes along the stream too, and writes the document again under a higher version; so once
    nothing changes any more, the last write has read the last state. What is applied again
    after a crash reads a newer state under an older version, and the index refuses it where it
    holds a newer version (I12). The same is true of a document whose row is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from setl.errors import DataError
from setl.model.change import DecodedRows, Row
from setl.model.nesting import Documents
from setl.model.schema import RowSchema
from setl.transform.columns import image_key, key_indexes
from setl.transform.survivors import Survivors

_BELONGS = "which document its row belongs to"

_Looks = tuple[str | bytes, ...]
"""A key's values as text, which tells documents apart."""


class DocumentSource(Protocol):
    """Where the rows of documents are looked up. Picklable; used by one thread at a time.

    Idempotent, and without a state that a crash could leave behind.
    """

    def schema(self, documents: Documents, seen: RowSchema | None = None) -> RowSchema:
        """The documents' columns: those of their table, then one of `Kind.ROWS` for each array.

        Args:
            documents: which.
            seen: one of their tables as the stream has it; if it has columns that were not there
                when the source was asked last, the source is asked again.

        Raises:
            ConfigurationError: a table or column is missing, or `on` is not the whole key.
            TransientError: the source does not answer.
        """
        ...

    def read(self, documents: Documents, keys: Sequence[Row], schema: RowSchema) -> list[Row]:
        """The documents with these keys, as rows of a schema, in any order; fewer if some are gone.

        Whatever was committed when the call began is in them.

        Args:
            documents: which.
            keys: values of `Documents.key`, each once.
            schema: what `schema` has returned.

        Raises:
            TransientError: the tables have other columns by now, so that values would be taken for
                those of another one. Or the source does not answer.
            SetlError: as for `schema`.
        """
        ...


class DocumentKeys:
    """Takes the changes of one table, and gives the documents that they change.

    In place of a `Compactor`, see there.
    """

    def __init__(
        self, documents: Documents, table: tuple[str, str], source: DocumentSource
    ) -> None:
        """Start empty.

        Args:
            documents: the documents.
            table: schema and name of the table whose changes come: the documents' own or nested.
            source: where documents are looked up.
        """
        self._documents = documents
        self._source = source
        # A table may be nested twice, such as under "billed" and "shipped".
        self._columns = [
            tuple(column for column, _ in nested.on)
            for nested in documents.nested
            if (nested.schema, nested.table) == table
        ]
        if (documents.schema, documents.table) == table:
            self._columns.append(documents.key)
        # By what keys look like: a document's id is made of the text of its key, and a column of
        # another type may name the same document, as the text '1' does for the number 1.
        self._asked: dict[_Looks, tuple[Row, int]] = {}
        self._seen: RowSchema | None = None

    def add_many(self, decoded: DecodedRows, version: int) -> None:
        """Take the changes of one entry in.

        Raises:
            DataError: a record does not say which document its row belongs to.
        """
        schema = self._seen = decoded.schema
        for columns in self._columns:
            positions = _positions(schema, columns)
            for before, after in decoded.images:
                for image, other in ((before, after), (after, before)):
                    if image is None:
                        continue
                    key = image_key(schema, positions, image, other, _BELONGS)
                    if None not in key:  # else it belongs to none
                        looks = _identity(key)
                        self._asked.pop(looks, None)
                        self._asked[looks] = (key, version)

    def take_null_keys(self) -> list[tuple[RowSchema, Row | None, int, DataError]]:
        """None: a row whose key is null belongs to no document."""
        return []

    def survivors(self) -> list[Survivors]:
        """The documents as they are now, and the keys of those that are gone.

        Raises:
            SetlError: they cannot be looked up.
        """
        if not self._asked:
            return []
        schema = self._source.schema(self._documents, self._seen)
        key = key_indexes(schema, ())
        by_name = {name.lower(): i for i, name in enumerate(self._documents.key)}
        order = [by_name[schema.names[i].lower()] for i in key]
        asked = [(tuple(k[i] for i in order), version) for k, version in self._asked.values()]
        versions = {_identity(k): version for k, version in asked}
        gone = {_identity(k): k for k, _ in asked}
        newest = max(versions.values())
        result = Survivors(schema, key)
        keys = [k for k, _ in self._asked.values()]
        for row in self._source.read(self._documents, keys, schema):
            looks = _identity(tuple(row[i] for i in key))
            gone.pop(looks, None)
            result.own_upserts.append(row)
            # A collation may take another spelling of the key for the same. The document of this
            # spelling is as new as the newest that asked for it.
            result.upsert_versions.append(versions.get(looks, newest))
        result.deletes.extend(gone.values())
        result.delete_versions.extend(versions[looks] for looks in gone)
        return [result]


def _positions(schema: RowSchema, columns: Sequence[str]) -> list[int]:
    positions = [schema.folded.get(column.lower(), -1) for column in columns]
    if -1 in positions:
        lacking = [c for c, position in zip(columns, positions, strict=True) if position < 0]
        raise DataError(
            f"a record of {schema.name} lacks the column {', '.join(lacking)}, by which its row"
            " belongs to a document",
            hint="Fix `nested` in the channel file",
            table=schema.name,
        )
    return positions


def _identity(key: Row) -> _Looks:
    return tuple(value if isinstance(value, (str, bytes)) else repr(value) for value in key)
