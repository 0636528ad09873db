"""The columns of a table as Canal's flat messages describe them, by MySQL's own types."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from setl.codec.canal.reading import values
from setl.codec.canal.reading.values import Read
from setl.codec.sql.tokens import TokenKind, text_of, tokenize
from setl.errors import DataError
from setl.model.schema import Column, Kind

BLOB: Final = 2004
"""What `sqlType` of a message has for bytes: a number of `java.sql.Types`."""

_NAME: Final = re.compile(r"\s*([a-z0-9]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE)

# With `tsdb`, Canal names a type as the CREATE or ALTER TABLE that it read in the binlog does.
_INTEGERS: Final = {
    **dict.fromkeys(("tinyint", "int1", "bool", "boolean"), 8),
    **dict.fromkeys(("smallint", "int2"), 16),
    **dict.fromkeys(("mediumint", "int3", "middleint"), 24),
    **dict.fromkeys(("int", "integer", "int4"), 32),
    **dict.fromkeys(("bigint", "int8", "serial"), 64),
}
"""Types of whole numbers, and their bits."""

_DECIMALS: Final = frozenset({"decimal", "numeric", "dec", "fixed"})
_FLOATS: Final = {"float": 4, "float4": 4, "double": 8, "float8": 8, "real": 8}
_SINGLE: Final = 24  # digits up to which a FLOAT has four bytes
_LONG_TEXTS: Final = frozenset({"tinytext", "text", "mediumtext", "longtext"})
_TEXTS: Final = _LONG_TEXTS | {"char", "varchar", "character", "nchar", "nvarchar", "national"}
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


def message_column(  # noqa: PLR0911 - a list of types
    name: str, type_: str, zone: str, *, as_blob: bool = False
) -> MessageColumn:
    """A column by its name and MySQL's type.

    Args:
        name: its name.
        type_: such as ``int(10) unsigned``, in any case.
        zone: see `setl.codec.canal.reading.values.timestamp_reader`.
        as_blob: whether Canal read it as a `BLOB`, whatever the type is.

    Raises:
        DataError: there is no such type.
    """
    found = _NAME.match(type_)
    base = found[1].lower() if found is not None else ""
    size, scale = (int(found[i] or 0) for i in (2, 3)) if found is not None else (0, 0)
    if base in _INTEGERS:
        unsigned = base == "serial" or any(w in type_.lower() for w in ("unsigned", "zerofill"))
        column = Column(name, Kind.INTEGER, unsigned=unsigned, binary_order=True)
        return MessageColumn(
            column, values.unsigned_reader(_INTEGERS[base]) if unsigned else values.whole
        )
    if base in _DECIMALS:
        column = Column(name, Kind.DECIMAL, precision=size or 10, scale=scale, binary_order=True)
        return MessageColumn(column, values.decimal)
    if base in _FLOATS:
        width = 8 if base == "float" and size > _SINGLE and not scale else _FLOATS[base]
        return MessageColumn(Column(name, Kind.FLOAT, width=width), values.floating)
    if base in _TEXTS:
        # Canal knows a long text only by a type without a size, and takes others for a BLOB.
        lost = as_blob and base in _LONG_TEXTS
        return MessageColumn(Column(name, Kind.TEXT), values.ascii_text if lost else values.plain)
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
    "json": (Kind.JSON, values.json_text),
}
