"""One table of a DTS subscription: what its records say of it, and its images as rows."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from setl.codec.dts.avro_bytes import long_bytes
from setl.codec.dts.columns.form import DtsForm
from setl.codec.dts.columns.offsets import WALKED
from setl.codec.dts.image import Form, ImageColumn
from setl.codec.dts.image_reader import ReadValue, read_image, value_reader
from setl.codec.dts.scan import ARRAY, Misread, raw_at
from setl.codec.dts.table_identity import KEYS_TAG, TableIdentity
from setl.errors import DataError
from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, RowSchema

_MAX_SCHEMAS: Final = 64  # of one table; each thing learned about a column makes another one


class DtsTable:
    """One table as its records describe it, for one list of columns."""

    def __init__(self, identity: TableIdentity) -> None:
        """Nothing is known of its values yet."""
        name, keys, columns = identity
        self._identity = identity
        self._schema, self._table = name
        self._columns = tuple([ImageColumn(name, number) for name, number in columns])
        self._key, self._unique = _keys(keys, [name for name, _ in columns], ".".join(name))
        self._listed = bytes([ARRAY]) + long_bytes(len(columns))
        self._forms: list[Form] = [column.form for column in self._columns]
        self._readers = [self._reader(i) for i in range(len(columns))]
        self._form: DtsForm | None = None
        self._learned = -1
        self._known: dict[tuple[Column, ...], RowSchema] = {}
        self._current = RowSchema(self._schema, self._table, ())

    def schema(self) -> RowSchema:
        """The schema as far as it is known now; the same object as long as it is the same."""
        learned = sum([column.changes for column in self._columns])
        if learned != self._learned:
            self._learned = learned
            columns = tuple([column.column for column in self._columns])
            if len(self._known) >= _MAX_SCHEMAS:
                self._known.clear()
            self._current = self._known.setdefault(
                columns, RowSchema(self._schema, self._table, columns, self._key, self._unique)
            )
        return self._current

    def form(self) -> DtsForm | None:
        """How images lie, as far as it is known; None if they are not read by column.

        The same object as long as it is the same.
        """
        schema = self.schema()
        known = tuple([column.known() for column in self._columns])
        if not any(column.member for column in known) or any(
            column.member and column.member not in WALKED for column in known
        ):
            return None
        if self._form is None or self._form.columns != known or self._form.schema is not schema:
            self._form = DtsForm(self._identity, schema, self._listed, known)
        return self._form

    def read_image(self, data: bytes, at: int) -> tuple[Row, int]:
        """The image at an offset, and the offset behind it; raises one of `MISREADS`."""
        return read_image(self._readers, self._listed, data, at)

    def _reader(self, index: int) -> ReadValue:
        """What reads the values of a column as far as is known now."""

        def learned(data: bytes, at: int) -> tuple[Value, int]:
            return self._learned_value(data, at, index)

        return value_reader(self._forms[index], learned)

    def _learned_value(self, data: bytes, at: int, index: int) -> tuple[Value, int]:
        """A value that is absent, or not of its column's form, which is then made again."""
        raw, at = raw_at(data, at)
        if raw is None or isinstance(raw, str):
            return ABSENT if raw == "NONE" else None, at
        try:
            return self._columns[index].read(raw), at
        except (LookupError, OverflowError) as error:
            raise Misread from error
        finally:
            self._follow()

    def _follow(self) -> None:
        """See to it that images are read as far as is known now: a form may be another one."""
        for i, column in enumerate(self._columns):
            if self._forms[i] != column.form:
                self._forms[i] = column.form
                self._readers[i] = self._reader(i)

    def row(self, image: object, side: str) -> Row:
        """One image: a value for each column, or a DataError that names the column."""
        if not isinstance(image, list):
            raise self._error(f"a DTS record has no {side} image")
        raws = cast("list[dict[str, Any] | str | None]", image)
        if len(raws) != len(self._columns):
            raise self._error(
                f"a DTS record has {len(raws)} values in its {side} image "
                f"for {len(self._columns)} columns"
            )
        try:
            return self._row(raws)
        finally:
            self._follow()

    def _row(self, raws: list[dict[str, Any] | str | None]) -> Row:
        row: list[Value] = []
        for raw, column in zip(raws, self._columns, strict=True):
            if raw is None:
                row.append(None)
            elif isinstance(raw, str):
                row.append(ABSENT if raw == "NONE" else None)
            else:
                try:
                    row.append(column.read(raw))
                except (LookupError, ValueError, OverflowError) as error:
                    name = column.column.name
                    raise self._error(f"a value cannot be decoded: {error}").at(
                        column=name
                    ) from error
        return tuple(row)

    def _error(self, message: str) -> DataError:
        return DataError(message, schema=self._schema, table=self._table)


def _keys(
    text: str, names: list[str], table: str
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Indexes of the primary key's columns, and of those of every other unique key.

    The tag is JSON: key name → column names, the primary key under ``PRIMARY``.
    """
    if not text:
        return (), ()
    try:
        keys: dict[str, list[str]] = json.loads(text)
        by_name = {name: i for i, name in enumerate(names)}
        folded = {name.casefold(): i for i, name in enumerate(names)}
        indexes = {
            key: tuple(by_name.get(c, folded[c.casefold()]) for c in columns)
            for key, columns in keys.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(
            f"the tag {KEYS_TAG} of a DTS record does not fit its columns: {text[:200]!r}",
            table=table,
        ) from error
    primary = indexes.pop("PRIMARY", ())
    return primary, tuple(indexes.values())
