"""Ranges of a source's key as queries over an index.

A range is asked as: the key lies above one limit, and not above the other. The limits follow each
other from none to none, so each document is in one range at least, whatever it holds: of the first
limit that it does not lie above, it is in the range before. A document without the key's field
lies above no limit, and is in the first range.

If an index sorts keys in another way than the source, a document may be in another range than its
row. Then both look as if the other were not there, until the key is looked at by itself. So the
order only has to be right for most keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from setl.bulk.chunks import Chunk
from setl.model.change import Row, Value
from setl.model.schema import Column, Kind
from setl.systems.search_index.mapping import mapped_field

_WHOLE: Final = frozenset({"long", "integer", "short", "byte", "unsigned_long"})
_MOMENTS: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})

# Collations that sort by code points, as a `keyword` does: ascii_bin, utf8mb4_bin, utf8mb3_bin,
# utf8mb4_0900_bin. Those that pad with spaces differ in keys with control characters only.
_BY_CODE_POINT: Final = frozenset({65, 46, 83, 309})
_FORMAT: Final = "strict_date_optional_time"
_NO_DATE: Final = "0001-01-01T00:00:00.000Z"


def ordered_field(properties: Mapping[str, Any], name: str, source: Column) -> Column | None:
    """The field by whose order documents lie as the rows of their source do.

    Args:
        properties: of the index's mapping.
        name: the field that the column fills.
        source: the source's column.

    Returns:
        The column under the field's full name; None if no field has that order, or can be asked
        for ranges.
    """
    found = mapped_field(dict(properties), name)
    if found is None:
        return None
    if source.kind is Kind.TEXT:
        sub = _keyword_in(found)
        alike = source.collation in _BY_CODE_POINT
        return replace(source, name=name + sub) if alike and sub is not None else None
    type_, searched = found.get("type"), found.get("index", True) is True
    if source.kind in {Kind.INTEGER, Kind.YEAR}:
        fits = type_ in _WHOLE and (type_ == "unsigned_long" or not _may_exceed(source))
    else:
        fits = source.kind in _MOMENTS and type_ == "date"
    return replace(source, name=name) if fits and searched else None


def _keyword_in(field: Mapping[str, Any]) -> str | None:
    """What to add to a text field's name so that it is a keyword; None if it has none."""
    if _is_plain_keyword(field):
        return ""
    subs: Mapping[str, Any] = field.get("fields", {})
    return next((f".{name}" for name, sub in subs.items() if _is_plain_keyword(sub)), None)


def _is_plain_keyword(field: Mapping[str, Any]) -> bool:
    stored = field.get("index", True) is True and "normalizer" not in field
    return field.get("type") == "keyword" and stored


def _may_exceed(column: Column) -> bool:
    """Whether a value may be greater than a `long` can be, which is no limit of a range then."""
    return column.unsigned and (column.capacity is None or column.capacity.type == "bigint")


def chunk_query(fields: Sequence[Column], chunk: Chunk) -> dict[str, Any]:
    """A query for the documents of a chunk.

    Args:
        fields: what `ordered_field` gave for the columns of the chunk's limits.
        chunk: the limits.
    """
    low, high = chunk
    above: list[dict[str, Any]] = [] if low is None else [_beyond(fields, low)]
    if low is not None and high is not None:
        # What is in the chunk is within these limits of the first field, and an index finds them.
        above = [_range(fields[0], gte=low[0], lte=high[0]), *above]
    return {"bool": {"filter": above, "must_not": [] if high is None else [_beyond(fields, high)]}}


def _beyond(fields: Sequence[Column], limit: Row) -> dict[str, Any]:
    """Keys greater than a limit, field by field."""
    first, value = fields[0], limit[0]
    if len(limit) == 1:
        return _range(first, gt=value)
    rest = [_range(first, gte=value, lte=value), _beyond(fields[1:], limit[1:])]
    either = [_range(first, gt=value), {"bool": {"filter": rest}}]
    return {"bool": {"should": either, "minimum_should_match": 1}}


def _range(field: Column, **limits: Value) -> dict[str, Any]:
    if field.kind not in _MOMENTS:
        return {"range": {field.name: limits}}
    moments = {how: _moment(str(value)) for how, value in limits.items()}
    return {"range": {field.name: {**moments, "format": _FORMAT}}}


def _moment(text: str) -> str:
    """A date, or a time in UTC, with all that a `date` holds of it: milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _NO_DATE  # such as 2026-02-30: no document has it
    return f"{moment.isoformat(timespec='milliseconds')}Z"
