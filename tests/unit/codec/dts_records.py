"""Makes DTS records as a subscription delivers them, and reads those of the fixtures."""

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro
from fastavro import parse_schema

from setl.codec.dts.wire import published_schema
from setl.model.change import ABSENT
from setl.model.position import KafkaPosition

DATA = Path(__file__).parent.parent / "data" / "dts"
AT = KafkaPosition("orders", 0, 101)

*_named, _record = published_schema()
_known = {}
for _declared in _named:
    parse_schema(_declared, named_schemas=_known)
_LONG = parse_schema(_record, named_schemas=dict(_known))
_SHORT = parse_schema({**_record, "fields": _record["fields"][:14]}, named_schemas=dict(_known))

_NAMESPACE = "com.alibaba.dts.formats.avro."


def branch(name, **members):
    """One value of an image, in the branch of that name."""
    return (_NAMESPACE + name, members)


def integer(value, precision=8):
    return branch("Integer", precision=precision, value=str(value))


def character(value, charset="utf8mb4"):
    return branch("Character", charset=charset, value=value)


def moment(*parts):
    names = ("year", "month", "day", "hour", "minute", "second", "millis")
    return branch("DateTime", **dict(zip(names, parts, strict=True)))


def absent():
    return (_NAMESPACE + "EmptyObject", "NONE")


def empty_null():
    return (_NAMESPACE + "EmptyObject", "NULL")


def record(operation="HEARTBEAT", *, length=14, **values):
    """The bytes of a record with 14 or 15 fields; what is not given has an ordinary value."""
    datum = {
        "version": 0,
        "id": 1,
        "sourceTimestamp": 1_700_000_000,
        "sourcePosition": "72469@78",
        "safeSourcePosition": "72000@78",
        "sourceTxid": "0",
        "source": {"sourceType": "MySQL", "version": "8.0.28"},
        "operation": operation,
        "objectName": None,
        "processTimestamps": None,
        "tags": {},
        "fields": None,
        "beforeImages": None,
        "afterImages": None,
        "bornTimestamp": 1_700_000_001,
        **values,
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _LONG if length == 15 else _SHORT, datum)
    return out.getvalue()


def row_record(
    operation, columns, *, before=None, after=None, name: str | None = "shop.orders", **values
):
    """A record of a row: `columns` are (name, type number) pairs."""
    return record(
        operation,
        objectName=name,
        fields=[{"name": n, "dataTypeNumber": t} for n, t in columns],
        beforeImages=before,
        afterImages=after,
        **values,
    )


def as_published(value, *, length=15) -> Any:
    """A record as a reader made from the public schema has it, branches named.

    That reader comes to the end of the bytes, and writes the same bytes back.
    """
    schema = _LONG if length == 15 else _SHORT
    stream = io.BytesIO(value)
    datum = fastavro.schemaless_reader(stream, schema, None, return_named_type=True)
    assert stream.tell() == len(value)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, datum)
    assert out.getvalue() == value
    return datum


def fixture_records():
    """(bytes, what they say) of every record of the fixture."""
    data = (DATA / "orders.bin").read_bytes()
    values = []
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        values.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    meanings = json.loads((DATA / "orders.json").read_text(encoding="utf-8"))
    assert len(values) == len(meanings) > 50
    return list(zip(values, meanings, strict=True))


def as_json(schema, row):
    """A row the way the fixture's JSON writes it."""
    if row is None:
        return None
    return {
        name: {"hex": value.hex()} if isinstance(value, bytes) else value
        for name, value in zip(schema.names, row, strict=True)
        if value is not ABSENT
    }


def inserted(rows):
    """The row that one decoded INSERT made."""
    ((before, after),) = rows.images
    assert before is None
    assert after is not None
    return after
