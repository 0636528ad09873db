"""Tells whether a column's values fit a field of an index.

Source of what a field takes: Elasticsearch reference 8.15, "Field data types", and there the
parameters ``coerce``, ``ignore_malformed``, ``ignore_above`` and ``format``. OpenSearch's are the
same, but for ``flat_object`` (its ``flattened``) and ``knn_vector`` (its ``dense_vector``):
https://docs.opensearch.org/latest/field-types/supported-field-types/index/
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from setl.model.document import Geometry
from setl.model.schema import Column, Kind

_INTEGERS: Final = {
    "long": (-(2**63), 2**63 - 1),
    "unsigned_long": (0, 2**64 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
}
# Up to here every whole number has a float of its own.
_FLOATS: Final = {"double": 2**53, "float": 2**24, "half_float": 2**11}
_DIGITS: Final = {"float": 6, "half_float": 3}
_TEXTS: Final = frozenset({
    "text", "keyword", "wildcard", "match_only_text", "search_as_you_type", "annotated_text",
    "version", "icu_collation_keyword",
})  # fmt: skip
_OTHERS: Final = frozenset({
    "boolean", "ip", "object", "nested", "flattened", "flat_object", "binary", "date", "date_nanos",
    "geo_point", "geo_shape", "shape", "point", "alias", "join", "percolator", "constant_keyword",
    "completion", "scaled_float", "token_count", "dense_vector", "knn_vector", "integer_range",
    "long_range", "float_range", "double_range", "date_range", "ip_range", *_INTEGERS, *_FLOATS,
})  # fmt: skip
_LONGEST_TERM: Final = 32_766
_DAYS: Final = frozenset({
    "date", "strict_date", "yyyy-MM-dd", "uuuu-MM-dd", "strict_year_month_day", "year_month_day",
    "date_optional_time", "strict_date_optional_time", "strict_date_optional_time_nanos", "iso8601",
    "dateOptionalTime",
})  # fmt: skip
_MOMENTS: Final = frozenset({
    "date_optional_time", "strict_date_optional_time", "strict_date_optional_time_nanos", "iso8601",
    "dateOptionalTime",
})  # fmt: skip
_EXAMPLES: Final = {
    Kind.DATE: "2026-01-02",
    Kind.DATETIME: "2026-01-02T03:04:05.000000",
    Kind.TIMESTAMP: "2026-01-02T03:04:05.000000Z",
}


class Misfit(NamedTuple):
    """Why a column does not fit a field.

    Attributes:
        refused: whether documents may be refused, or searched by a value that is another; else
            the document is kept, but searched less exactly.
        reason: the end of a sentence that begins with the field.
    """

    refused: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Extent:
    """What a source says of a column beyond its kind.

    Attributes:
        whole: the smallest and the largest of its whole numbers; None if that is not known.
        single: whether a FLOAT has four bytes.
        length: bytes of its longest text or binary value, 0 if that is not known.
    """

    whole: tuple[int, int] | None = None
    single: bool = False
    length: int = 0


def misfit(
    column: Column, field: dict[str, Any], extent: Extent, geometry: Geometry = "base64"
) -> Misfit | None:
    """Why a column's values do not fit a field; None if they do, or nothing is known against it.

    Args:
        column: the column.
        field: the field's mapping.
        extent: what else is known of the column.
        geometry: how spatial values are written.
    """
    kind = str(field.get("type", "object"))
    if kind not in _TEXTS | _OTHERS:
        return _inexact(f"is {kind}, of which setl does not know what it takes")
    if column.kind is Kind.GEOMETRY and geometry == "wkt":
        found = _shape(kind, field)
    elif kind in _TEXTS and column.kind is not Kind.JSON:
        found = _text(column, field, extent)
    else:
        judge = _JUDGES.get(column.kind)
        found = judge(column, kind, field, extent) if judge else None
    if found is not None and found.refused and field.get("ignore_malformed") is True:
        return _inexact(f"{found.reason}; what it does not take is left out of the search")
    return found


def whole_numbers(column: Column, bits: int = 0) -> tuple[int, int] | None:
    """The smallest and largest whole number of a column; `bits` is its width, 0 if not known."""
    if column.kind is Kind.YEAR:
        return 0, 2155
    if column.kind is Kind.BIT or (column.kind is Kind.INTEGER and column.unsigned):
        return 0, 2 ** (bits or 64) - 1
    if column.kind is Kind.INTEGER:
        return -(2 ** ((bits or 64) - 1)), 2 ** ((bits or 64) - 1) - 1
    return None


def _refuses(reason: str) -> Misfit:
    return Misfit(refused=True, reason=reason)


def _inexact(reason: str) -> Misfit:
    return Misfit(refused=False, reason=reason)


def _other(column: Column, kind: str) -> Misfit:
    return _refuses(f"is {kind}, which does not take {column.kind.value} values")


def _number(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    lowest, highest = extent.whole or whole_numbers(column) or (0, 0)
    if kind in _INTEGERS:
        low, high = _INTEGERS[kind]
        if low <= lowest and highest <= high:
            return None
        return _refuses(f"is {kind}; the column goes from {lowest} to {highest}")
    exact = _FLOATS.get(kind)
    if kind == "scaled_float":
        exact = int(_FLOATS["double"] / float(field.get("scaling_factor", 1)))
    if exact is None:
        return _other(column, kind)
    if max(-lowest, highest) <= exact:
        return None
    return _inexact(f"is {kind}, which searches numbers beyond {exact} inexactly")


def _decimal(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    del extent
    found = None
    factor = float(field.get("scaling_factor", 1))
    if kind not in {"double", "scaled_float", *_DIGITS, *_INTEGERS}:
        found = _other(column, kind)
    elif field.get("coerce") is False:
        found = _refuses(f"is {kind} with coerce: false, which takes no numbers as text")
    elif kind in _INTEGERS:
        found = _whole_decimal(column, kind)
    elif kind in _DIGITS and not 0 < column.precision <= _DIGITS[kind]:
        found = _inexact(f"is {kind}, which distinguishes only {_DIGITS[kind]} digits in searches")
    elif kind == "scaled_float" and 10**column.scale > factor:
        found = _inexact("is scaled_float, which rounds the column's digits in searches")
    return found


def _whole_decimal(column: Column, kind: str) -> Misfit | None:
    low, high = _INTEGERS[kind]
    largest = 10**column.precision - 1
    if column.scale:
        return _refuses(f"is {kind}, which drops digits after the point in searches")
    if column.precision and low <= -largest and largest <= high:
        return None
    return _refuses(f"is {kind}, which does not take all of the column's numbers")


def _float(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    del field
    if kind == "double" or (kind == "float" and extent.single):
        return None
    if kind in _FLOATS or kind == "scaled_float":
        return _inexact(f"is {kind}, which searches the column's numbers inexactly")
    if kind in _INTEGERS:
        return _refuses(f"is {kind}, which drops digits after the point in searches")
    return _other(column, kind)


def _text(column: Column, field: dict[str, Any], extent: Extent) -> Misfit | None:
    """Whether a field of text takes what is written as text, or as a number."""
    length = extent.length
    if column.kind in {Kind.BINARY, Kind.GEOMETRY}:
        length = length * 4 // 3  # base64
    elif column.kind is not Kind.TEXT:
        return None  # numbers, dates and labels are short
    terms = [field, *field.get("fields", {}).values()]
    unlimited = any(f.get("type") == "keyword" and "ignore_above" not in f for f in terms)
    if unlimited and length > _LONGEST_TERM:
        return _inexact(
            f"is a keyword without ignore_above, which refuses more than {_LONGEST_TERM:,} bytes",
        )
    return None


def _no_text(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    del field, extent
    return _other(column, kind)


def _date(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    del extent
    if kind not in {"date", "date_nanos"}:
        return _other(column, kind)
    written = str(field.get("format", "strict_date_optional_time"))
    taken = _DAYS if column.kind is Kind.DATE else _MOMENTS
    if not taken & set(written.split("||")):
        return _refuses(
            f"is {kind} with the format {written}; setl writes {_EXAMPLES[column.kind]}"
        )
    if kind == "date_nanos":
        return _inexact("is date_nanos, which refuses what is not between 1970 and 2262")
    return None


def _binary(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    del field, extent
    return None if kind == "binary" else _other(column, kind)


def _shape(kind: str, field: dict[str, Any]) -> Misfit | None:
    if kind in _TEXTS:
        return None
    if kind not in {"geo_shape", "shape", "geo_point"}:
        return _refuses(f"is {kind}, which takes no well-known text")
    if field.get("ignore_malformed") is True:
        return None
    refuses = "all but points" if kind == "geo_point" else "what is no valid shape"
    return _inexact(f"is {kind} without ignore_malformed: true, which refuses {refuses}")


def _json(column: Column, kind: str, field: dict[str, Any], extent: Extent) -> Misfit | None:
    del extent
    if kind == "object" and field.get("enabled") is False:
        return None
    if kind in {"flattened", "flat_object"}:
        return _inexact(f"is {kind}, which refuses values that are no objects")
    if kind in {"object", "nested"}:
        return _inexact(
            f"is {kind}, which refuses values that are no objects, and those whose members differ"
            " in type from earlier ones",
        )
    return _other(column, kind)


_Judge = Callable[[Column, str, dict[str, Any], Extent], Misfit | None]
_JUDGES: Final[dict[Kind, _Judge]] = {
    **dict.fromkeys((Kind.INTEGER, Kind.YEAR, Kind.BIT), _number),
    Kind.DECIMAL: _decimal,
    Kind.FLOAT: _float,
    **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET, Kind.TIME), _no_text),
    **dict.fromkeys((Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP), _date),
    **dict.fromkeys((Kind.BINARY, Kind.GEOMETRY), _binary),
    Kind.JSON: _json,
}
