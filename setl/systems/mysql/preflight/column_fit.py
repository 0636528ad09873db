"""Checks that every value of a source column fits the target column unchanged (I13)."""

from __future__ import annotations

from setl.systems.mysql.table_facts import ColumnFacts

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_TIMES = {"time", "datetime", "timestamp"}
_LABELS = {"enum", "set"}
_GEOMETRIES = {
    "geometry", "point", "linestring", "polygon",
    "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection",
}  # fmt: skip
# MariaDB's JSON is a LONGTEXT.
_WIDER = {"json": "longtext", "float": "double"}
_UNICODE = {"utf8mb4", "utf16", "utf32"}


def misfit(source: ColumnFacts, target: ColumnFacts) -> str:
    """Why a value may not fit, the end of a sentence that begins with the target column.

    "" if all fit, or if nothing is known against it.
    """
    kind = source.data_type
    reason = ""
    if kind in _INTEGER_BITS:
        reason = _integer(source, target)
    elif kind in _TEXT:
        reason = _text(source, target)
    elif kind in _BINARY:
        reason = _binary(source, target)
    elif kind in _LABELS:
        reason = _labels(source, target)
    elif kind in _TIMES or kind == "date":
        reason = _time(source, target)
    elif kind in _GEOMETRIES:
        same = target.data_type in {kind, "geometry"}
        same = same or {kind, target.data_type} == {"geometrycollection", "geomcollection"}
        reason = "" if same else _other_type(source, target)
    else:
        reason = _number_or_other(source, target)
    return reason


def _other_type(source: ColumnFacts, target: ColumnFacts) -> str:
    return f"is {target.column_type}, the source's is {source.column_type}"


def _smaller(source: ColumnFacts, target: ColumnFacts) -> str:
    return f"is {target.column_type}, too small for the source's {source.column_type}"


def _integer(source: ColumnFacts, target: ColumnFacts) -> str:
    if target.data_type not in _INTEGER_BITS:
        return _other_type(source, target)
    have, need = _INTEGER_BITS[target.data_type], _INTEGER_BITS[source.data_type]
    if target.unsigned and not source.unsigned:
        return f"is {target.column_type}, which takes no negative numbers"
    # An unsigned number needs one bit more in a signed column.
    need += source.unsigned and not target.unsigned
    return "" if have >= need else _smaller(source, target)


def _text(source: ColumnFacts, target: ColumnFacts) -> str:
    if target.data_type == "json" and source.data_type == "longtext":
        return ""  # what MariaDB calls JSON is a LONGTEXT
    if target.data_type not in _TEXT:
        return _other_type(source, target)
    if target.data_type == "char" and source.data_type != "char":
        return f"is {target.column_type}, which cuts spaces at the end of values off"
    if target.charset not in {source.charset, *_UNICODE} and source.charset != "ascii":
        return f"is in {target.charset}, which does not hold all of the source's {source.charset}"
    return "" if target.length >= source.length else _smaller(source, target)


def _binary(source: ColumnFacts, target: ColumnFacts) -> str:
    if target.data_type not in _BINARY:
        return _other_type(source, target)
    if target.data_type == "binary" and (source.data_type, source.length) != (
        "binary",
        target.length,
    ):
        return f"is {target.column_type}, which would fill values up with zero bytes"
    return "" if target.length >= source.length else _smaller(source, target)


def _labels(source: ColumnFacts, target: ColumnFacts) -> str:
    if target.data_type in _TEXT:
        return "" if target.length >= source.length else _smaller(source, target)
    if target.data_type != source.data_type:
        return _other_type(source, target)
    # A server takes a label in any case, and makes its own spelling of it.
    lacking = [label for label in source.labels if label not in target.labels]
    return f"lacks the labels {', '.join(lacking)}" if lacking else ""


def _time(source: ColumnFacts, target: ColumnFacts) -> str:
    if target.data_type != source.data_type:
        return _other_type(source, target)
    return "" if target.fraction >= source.fraction else _smaller(source, target)


def _number_or_other(source: ColumnFacts, target: ColumnFacts) -> str:
    kind = source.data_type
    if target.data_type not in {kind, _WIDER.get(kind)}:
        return _other_type(source, target)
    if kind in {"decimal", "float", "double"} and target.unsigned and not source.unsigned:
        return f"is {target.column_type}, which takes no negative numbers"
    fits = True
    if kind == "decimal":
        whole = target.precision - target.scale >= source.precision - source.scale
        fits = whole and target.scale >= source.scale
    elif kind in {"float", "double"} and "," in target.column_type:
        # FLOAT(7,2) rounds.
        fits = source.column_type == target.column_type
    elif kind == "bit":
        fits = target.precision >= source.precision
    return "" if fits else _smaller(source, target)
