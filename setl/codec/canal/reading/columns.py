"""The columns of a table as Canal's flat messages describe them, by MySQL's own types."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from setl.codec.canal.reading import values
from setl.codec.canal.reading.values import Read
from setl.codec.sql.tokens import TokenKind, text_of, tokenize
from setl.errors import DataError
from setl.model.schema import Column, Kind

_NAME: Final = re.compile(r"\s*([a-z0-9]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE)

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "integer", "bigint"})
_DECIMALS: Final = frozenset({"decimal", "numeric", "dec", "fixed"})
_FLOATS: Final = {"float": 4, "double": 8, "real": 8}
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES: Final = frozenset(
    {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"}
)
_SHAPES: Final = frozenset(
    {
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
        *("multipolygon", "geometrycollection", "geomcollection"),
    }
)
_LABELS: Final = {"enum": Kind.ENUM, "set": Kind.SET}


class MessageColumn(NamedTuple):
    """One column.

    Attributes:
        column: what it is.
        read: makes the value of text.
    """

    column: Column
    read: Read


def message_column(name: str, type_: str, zone: str) -> MessageColumn:  # noqa: PLR0911 - a list of types
    """A column by its name and MySQL's type.

    Args:
        name: its name.
        type_: such as ``int(10) unsigned``, in any case.
        zone: see `setl.codec.canal.reading.values.timestamp_reader`.

    Raises:
        DataError: there is no such type.
    """
    found = _NAME.match(type_)
    base = found[1].lower() if found is not None else ""
    size, scale = (int(found[i] or 0) for i in (2, 3)) if found is not None else (0, 0)
    if base in _INTEGERS:
        unsigned = "unsigned" in type_.lower() or "zerofill" in type_.lower()
        column = Column(name, Kind.INTEGER, unsigned=unsigned, binary_order=True)
        return MessageColumn(column, values.whole)
    if base in _DECIMALS:
        column = Column(name, Kind.DECIMAL, precision=size or 10, scale=scale, binary_order=True)
        return MessageColumn(column, values.decimal)
    if base in _FLOATS:
        return MessageColumn(Column(name, Kind.FLOAT, width=_FLOATS[base]), values.floating)
    if base in _TEXTS:
        return MessageColumn(Column(name, Kind.TEXT), values.plain)
    if base in _BYTES:
        # BINARY is BINARY(1), and BINARY(0) holds nothing.
        fixed = 0 if base != "binary" else size if found is not None and found[2] else 1
        column = Column(name, Kind.BINARY, binary_order=True, width=-1)
        return MessageColumn(column, values.binary_reader(fixed))
    if base in _SHAPES:
        return MessageColumn(
            Column(name, Kind.GEOMETRY, binary_order=True), values.binary_reader(0)
        )
    if base in _LABELS:
        return _labelled(name, _LABELS[base], type_)
    if base == "timestamp":
        column = Column(name, Kind.TIMESTAMP, binary_order=True)
        return MessageColumn(column, values.timestamp_reader(zone))
    if base in _OTHERS:
        kind, read = _OTHERS[base]
        return MessageColumn(Column(name, kind, binary_order=True), read)
    raise DataError(
        f"a flat message of Canal has the type {type_[:60]!r}, which is not read",
        hint="A message without `mysqlType` does not say what its values are",
        column=name,
    )


def _labelled(name: str, kind: Kind, type_: str) -> MessageColumn:
    labels = tuple([text_of(t) for t in tokenize(type_) if t.kind is TokenKind.TEXT])
    return MessageColumn(Column(name, kind, binary_order=True), values.label_reader(kind, labels))


_OTHERS: Final[dict[str, tuple[Kind, Read]]] = {
    "bit": (Kind.BIT, values.whole),
    "year": (Kind.YEAR, values.whole),
    "date": (Kind.DATE, values.date),
    "time": (Kind.TIME, values.time),
    "datetime": (Kind.DATETIME, values.moment),
    "json": (Kind.JSON, values.plain),
}
