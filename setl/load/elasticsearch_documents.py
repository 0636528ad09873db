"""Rows as Elasticsearch documents: pure text, rendered a column at a time.

How values are written (what the index holds of them says `setl.load.elasticsearch_index`):

============================  =======================================================
INTEGER, YEAR, BIT            number
FLOAT                         number; infinity and NaN have no JSON form
DECIMAL                       string, with all its digits
TEXT, ENUM, SET, TIME         string
DATE                          string ``YYYY-MM-DD``
DATETIME                      string ``YYYY-MM-DDThh:mm:ss.ffffff``
TIMESTAMP                     the same with ``Z``, since rows hold it in UTC
BINARY, GEOMETRY              string, base64; GEOMETRY with the SRID in front, as in rows
JSON                          the value itself, inside the document
NULL                          ``null``, so that an earlier value is cleared
============================  =======================================================

Dates that no calendar has (zero dates, 30 February) are refused: every way of writing them
would be another value.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from json.encoder import encode_basestring  # text as JSON, other scripts left as they are
from typing import Any

from setl.errors import DataError
from setl.model.change import ABSENT, Row, TargetChanges, Value
from setl.model.schema import Column, Kind

MAX_ID_BYTES = 512
"""Elasticsearch takes no longer document ids."""

_Values = Sequence[Any]


def document_id(key: Row) -> str:
    """The ``_id`` of the document for a row with this key.

    A key of one column is its text. Several are joined with commas, and a comma or backslash
    inside one of them gets a backslash in front, so that different keys have different ids.
    Numbers are written in decimal, bytes in base64, times as rows hold them.

    Raises:
        DataError: a key value is NULL or missing, or the id is empty or longer than
            Elasticsearch allows.
    """
    parts = [_id_part(value) for value in key]
    if len(parts) > 1:
        parts = [p.replace("\\", "\\\\").replace(",", "\\,") for p in parts]
    text = ",".join(parts)
    if not text or len(text.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        size = "is empty" if not text else f"has more than {MAX_ID_BYTES} bytes"
        raise DataError(
            f"a document's id {size}", hint="Choose another `key` for the table", key=text[:100]
        )
    return text


def _id_part(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if value is None or value is ABSENT:
        raise DataError("a column that identifies the document is NULL or missing")
    return repr(value)


def render_document(columns: tuple[Column, ...], row: Row) -> str:
    """A row as the JSON text of its document.

    Raises:
        DataError: a value has no such form; names the column.
    """
    return render_documents(columns, (row,))[0]


def render_documents(columns: tuple[Column, ...], rows: Sequence[Row]) -> list[str]:
    """The JSON text of each row's document, without line breaks.

    Raises:
        DataError: a value has no such form; names the column, but not the row.
    """
    template = _template(columns)
    rendered = [
        _render(column, values)
        for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    return [template % fields for fields in zip(*rendered, strict=True)]


def render_actions(changes: TargetChanges) -> list[bytes]:
    """The bulk actions for changes of one index: deletes, then documents.

    Each is one action with its document, in lines that end: what ``_bulk`` reads. Versions are
    external, ``external_gte``: the server refuses what is older than what it holds and takes
    the same again (I12).

    Raises:
        DataError: a row has no such form; names index and key.
    """
    index = _text(changes.target[1])
    deletes = [
        f'{{"delete":{{"_index":{index},"_id":{_text(_id_of(changes, key))},'
        f'"version":{version:d},"version_type":"external_gte"}}}}\n'
        for key, version in zip(changes.deletes, changes.delete_versions, strict=True)
    ]
    if not changes.upserts:
        return _encoded(changes, deletes, ())
    ids = [_id_of(changes, tuple(row[i] for i in changes.key)) for row in changes.upserts]
    try:
        documents = render_documents(changes.columns, changes.upserts)
    except DataError:
        _name_row(changes)
        raise
    upserts = [
        f'{{"index":{{"_index":{index},"_id":{_text(id_)},'
        f'"version":{version:d},"version_type":"external_gte"}}}}\n{document}\n'
        for id_, version, document in zip(ids, changes.upsert_versions, documents, strict=True)
    ]
    return _encoded(changes, deletes, upserts)


def _id_of(changes: TargetChanges, key: Row) -> str:
    try:
        return document_id(key)
    except DataError as error:
        raise error.at(index=changes.target[1], key=", ".join(map(str, key))[:200]) from None


def _encoded(changes: TargetChanges, deletes: Sequence[str], upserts: Sequence[str]) -> list[bytes]:
    try:
        return [line.encode("utf-8") for line in (*deletes, *upserts)]
    except UnicodeEncodeError as error:
        where = _lone_surrogate(changes)
        raise DataError(
            "text is not valid in its character set",
            hint="Correct the text at the source",
            index=changes.target[1],
            **where,
        ) from error


def _lone_surrogate(changes: TargetChanges) -> dict[str, str]:
    """Where text is that has no UTF-8 form."""
    keys = [tuple(row[i] for i in changes.key) for row in changes.upserts]
    key_columns = tuple(changes.columns[i] for i in changes.key)
    for columns, key, row in (
        *((changes.columns, key, row) for key, row in zip(keys, changes.upserts, strict=True)),
        *((key_columns, key, key) for key in changes.deletes),
    ):
        for column, value in zip(columns, row, strict=True):
            if isinstance(value, str) and value.encode("utf-8", "ignore").decode() != value:
                shown = ", ".join(map(str, key)).encode("utf-8", "backslashreplace").decode()
                return {"column": column.name, "key": shown}
    return {}


def _name_row(changes: TargetChanges) -> None:
    for row in changes.upserts:
        try:
            render_documents(changes.columns, (row,))
        except DataError as error:
            key = document_id(tuple(row[i] for i in changes.key))
            raise error.at(index=changes.target[1], key=key) from None


@lru_cache(maxsize=256)
def _template(columns: tuple[Column, ...]) -> str:
    fields = (f"{_text(c.name)}:".replace("%", "%%") + "%s" for c in columns)
    return "{" + ",".join(fields) + "}"


def _render(column: Column, values: _Values) -> list[str]:
    """One column of several rows as JSON values."""
    one = _RENDER[column.kind]
    try:
        return [one(v) for v in values] if None not in values else _with_nulls(one, values)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        value = next(v for v in values if v is not None and _is_refused(one, v))
        if value is ABSENT:
            what = "is missing from a row that needs it"
        else:
            what = f"holds a value that Elasticsearch cannot: {column.kind.value} {value!r:.100}"
        raise DataError(f"column {column.name} {what}") from error


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
    Kind.SET: encode_basestring,
    Kind.TIME: encode_basestring,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _timestamp,
    Kind.BINARY: _base64,
    Kind.GEOMETRY: _base64,
    Kind.JSON: _json,
}
