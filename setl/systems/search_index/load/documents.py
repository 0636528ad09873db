"""Rows as documents of an index: pure text, rendered a column at a time.

How values are written (what the index holds of them says `setl.systems.search_index.mapping`):

============================  =======================================================
INTEGER, YEAR, BIT            number, with all its digits
FLOAT                         number; infinity and NaN have no JSON form
DECIMAL                       string, with all its digits
TEXT, ENUM, TIME              string
SET                           list of strings, its labels
DATE                          string ``YYYY-MM-DD``
DATETIME                      string ``YYYY-MM-DDThh:mm:ss.ffffff``
TIMESTAMP                     the same with ``Z``, since rows hold it in UTC
BINARY                        string, base64
GEOMETRY                      string, base64 with the SRID in front, as in rows; or
                              well-known text, if the channel file says so
JSON                          the value itself, inside the document
ROWS                          list of objects, one for each row
NULL                          ``null``, so that an earlier value is cleared
============================  =======================================================

Dates that no calendar has (zero dates, 30 February) are refused, since every way of writing them
would be another value; or they are null, if the channel file says so.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache, partial
from json.encoder import encode_basestring  # text as JSON, other scripts left as they are
from typing import Any

from setl.codec.charset import in_characters
from setl.errors import DataError
from setl.model.change import ABSENT, Row
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind
from setl.systems.search_index.load.wkt import wkt

_Values = Sequence[Any]

_CALENDAR = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_DATE_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9:.]+)?")
_NO_DATE_HINT = (
    "Correct the row, or let such dates be null with `zero_dates: as_null` in the table's mapping"
)


def render_documents(
    columns: tuple[Column, ...], rows: Sequence[Row], form: DocumentForm | None = None
) -> list[str]:
    """The JSON text of each row's document, without line breaks.

    Args:
        columns: what the values are.
        rows: the rows.
        form: how the channel file wants them written; None for the defaults.

    Raises:
        DataError: a value has no such form; names the column, but not the row.
    """
    template = template_of(columns)
    return [template % fields for fields in zip(*rendered(columns, rows, form), strict=True)]


def rendered(
    columns: tuple[Column, ...], rows: Sequence[Row], form: DocumentForm | None
) -> list[list[str]]:
    """The JSON text of each value, a column at a time: what `template_of` has positions for.

    Raises:
        DataError: as `render_documents`.
    """
    return [
        _render(column, values, form)
        for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]


def in_characters_outside(
    key: Sequence[int], columns: tuple[Column, ...], rows: Sequence[Row]
) -> list[Row]:
    """Rows with text as its characters that is carried as its bytes, but for that of the key.

    Two keys that only their encodings distinguish would be one document.
    """
    return [
        tuple(
            value if i in key else _in_characters(column, value)
            for i, (column, value) in enumerate(zip(columns, row, strict=True))
        )
        for row in rows
    ]


def _in_characters(column: Column, value: Any) -> Any:
    if column.kind is Kind.ROWS and value:
        return tuple(in_characters_outside((), column.fields, value))
    return in_characters(value)


@lru_cache(maxsize=256)
def template_of(columns: tuple[Column, ...]) -> str:
    """The text of a document for the ``%`` operator, with a place for each value's JSON text."""
    fields = (f"{_text(c.name)}:".replace("%", "%%") + "%s" for c in columns)
    return "{" + ",".join(fields) + "}"


def _render(column: Column, values: _Values, form: DocumentForm | None) -> list[str]:
    """One column of several rows as JSON values."""
    if column.kind is Kind.ROWS:
        return [_array(column, rows, form) for rows in values]
    one = _RENDER[column.kind] if form is None else _renderer(column.kind, form)
    try:
        return [one(v) for v in values] if None not in values else _with_nulls(one, values)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        value = next(v for v in values if v is not None and _is_refused(one, v))
        if value is ABSENT:
            what = "is missing from a row that needs it"
        else:
            what = f"holds a value that a document cannot: {column.kind.value} {value!r:.100}"
        hint = _NO_DATE_HINT if column.kind in _CALENDAR and value is not ABSENT else ""
        raise DataError(f"column {column.name} {what}", hint=hint) from error


def _array(column: Column, rows: Sequence[Row], form: DocumentForm | None) -> str:
    """Rows of another table, each as an object."""
    try:
        return f"[{','.join(render_documents(column.fields, rows, form))}]" if rows else "[]"
    except DataError as error:
        raise error.at(field=column.name) from None


def _renderer(kind: Kind, form: DocumentForm) -> Callable[[Any], str]:
    if kind is Kind.GEOMETRY and form.geometry == "wkt":
        return _wkt
    one = _RENDER[kind]
    return partial(_or_null, one) if form.no_dates_as_null and kind in _CALENDAR else one


def _or_null(one: Callable[[Any], str], value: Any) -> str:
    """A date, or null if it has the form of a date but no calendar has it."""
    try:
        return one(value)
    except ValueError:
        if _DATE_FORM.fullmatch(value) is None:
            raise
        return "null"


def _with_nulls(one: Callable[[Any], str], values: _Values) -> list[str]:
    return ["null" if v is None else one(v) for v in values]


def _is_refused(one: Callable[[Any], str], value: Any) -> bool:
    try:
        one(value)
    except (TypeError, ValueError, AttributeError, RecursionError):
        return True
    return False


def _text(value: Any) -> str:
    return encode_basestring(value)


def _float(value: Any) -> str:
    if not math.isfinite(value):
        raise ValueError(value)
    return float.__repr__(value)


def _date(value: Any) -> str:
    date.fromisoformat(value)
    return f'"{value}"'


def _datetime(value: Any) -> str:
    date.fromisoformat(value[:10])
    return f'"{value[:10]}T{_clock_time(value)}"'


def _timestamp(value: Any) -> str:
    date.fromisoformat(value[:10])
    return f'"{value[:10]}T{_clock_time(value)}Z"'


def _clock_time(value: str) -> str:
    time = value[11:]
    if not time or not time.isascii() or '"' in time or "\\" in time:
        raise ValueError(value)
    return time


def _set(value: Any) -> str:
    # Labels hold no commas.
    return f"[{','.join(map(encode_basestring, value.split(',')))}]" if value else "[]"


def _wkt(value: Any) -> str:
    return f'"{wkt(value)}"'


def _base64(value: Any) -> str:
    return f'"{b64encode(value).decode("ascii")}"'


def _json(value: Any) -> str:
    # Read to be sure that it is one JSON value, which would otherwise break the lines of all
    # documents after it; sent as it came, since reading and writing again could change numbers.
    json.loads(value, parse_constant=_no_constant)
    # Outside strings a line break is white space, inside them it is always escaped.
    return value.replace("\r", " ").replace("\n", " ")


def _no_constant(name: str) -> None:
    raise ValueError(name)


_RENDER: dict[Kind, Callable[[Any], str]] = {
    Kind.INTEGER: int.__repr__,
    Kind.YEAR: int.__repr__,
    Kind.BIT: int.__repr__,
    Kind.FLOAT: _float,
    Kind.DECIMAL: encode_basestring,
    Kind.TEXT: encode_basestring,
    Kind.ENUM: encode_basestring,
    Kind.SET: _set,
    Kind.TIME: encode_basestring,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _timestamp,
    Kind.BINARY: _base64,
    Kind.GEOMETRY: _base64,
    Kind.JSON: _json,
}
