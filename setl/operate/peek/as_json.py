"""A record as one JSON object: the shape that programs rely on.

Always there:

- ``position``: as text, ``topic[partition]@offset`` or ``file:offset``; its parts are ``topic``,
  ``partition`` and ``offset``, or ``file`` and ``offset`` (the position behind the event).
- ``operation``, ``timestamp`` (seconds since 1970 UTC, null if unknown), ``time`` (the same in
  ISO 8601), ``schema`` and ``table`` (null where there is none), ``transaction`` (GTID or null)
  and ``size`` in bytes (null if unknown).

Of rows: ``before`` and ``after`` (column → value; null where there is no image), ``changed`` (names
of the columns that the change touched), ``kinds`` (column → kind) and ``key`` (primary key's
columns). Of DDL: ``statement``. Of what cannot be read: ``problem``, and its bytes as ``payload``.

Of Kafka records: ``written`` (when Kafka took it) and ``headers`` (pairs of name and value).

Of DTS records, in ``record``: ``id``, ``version``, ``source_type``, ``source_version``,
``position``, ``safe_position``, ``transaction_id``, ``object_name`` (as it is written; ``schema``
and ``table`` are the logical ones of sharded sources), ``tags``, ``process_timestamps`` and
``born`` (null in records of 14 fields).

Values: integers and floats are numbers, whatever their size; decimals, text, JSON, dates and times
are text; binary and spatial values are ``{"hex": …}``; NULL is null; a column that the record does
not mention is left out. Nothing is cut.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from setl.codec.dts.envelope import FILLER, Envelope
from setl.codec.sql.redaction import redacted
from setl.model.change import ABSENT, Value
from setl.model.position import BinlogPosition
from setl.model.typed import TypedChange, TypedRow
from setl.operate.units import iso_time
from setl.systems.seen_record import SeenRecord


def json_line(record: SeenRecord) -> str:
    """The record as JSON in one line, without a line end."""
    return json.dumps(json_object(record), separators=(",", ":"))


def json_object(record: SeenRecord) -> dict[str, Any]:
    """The record as plain JSON values."""
    shown: dict[str, Any] = {
        **_position(record),
        "operation": record.operation,
        "timestamp": int(record.timestamp) or None,
        "time": iso_time(record.timestamp) or None,
        "schema": record.schema or None,
        "table": record.table or None,
        "transaction": record.transaction or None,
        "size": record.size or None,
    }
    if record.change is not None:
        shown |= _row(record.change)
    if record.statement:
        shown["statement"] = redacted(record.statement)
    if record.problem:
        shown |= {"problem": record.problem, "payload": _value(record.payload)}
    if record.envelope is not None and record.envelope.operation != FILLER:
        shown["record"] = _envelope(record.envelope)
    return shown


def _position(record: SeenRecord) -> dict[str, Any]:
    position = record.position
    if isinstance(position, BinlogPosition):
        return {"position": str(position), "file": position.file, "offset": position.offset}
    return {
        "position": str(position),
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
        "written": iso_time(record.written) or None,
        "headers": [[name, _text_or_hex(value)] for name, value in record.headers],
    }


def _row(change: TypedChange) -> dict[str, Any]:
    schema = change.schema
    return {
        "before": _image(change.before),
        "after": _image(change.after),
        "changed": list(change.changed_columns),
        "kinds": {column.name: column.kind.value for column in schema.columns},
        "key": [schema.names[index] for index in schema.key],
    }


def _image(row: TypedRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    values = ((name, row.value(index)) for index, name in enumerate(row.schema.names))
    return {name: _value(value) for name, value in values if value is not ABSENT}


def _value(value: Value) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # JSON has no number for it, and neither has MySQL
    return value


def _envelope(envelope: Envelope) -> dict[str, Any]:
    return {
        "id": envelope.id,
        "version": envelope.version,
        "source_type": envelope.source_type,
        "source_version": envelope.source_version,
        "position": envelope.position,
        "safe_position": envelope.safe_position,
        "transaction_id": envelope.transaction_id,
        "object_name": envelope.object_name or None,
        "tags": envelope.tags,
        "process_timestamps": list(envelope.process_timestamps),
        "born": envelope.born,
    }


def _text_or_hex(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}
