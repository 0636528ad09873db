"""What describes Debezium's keys and values, where each record has its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = Mapping[str, Any]

_SNAPSHOTS: Final = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)


def field(name: str, kind: str, /, *, optional: bool = True, **more: Any) -> Json:
    """A field of a struct."""
    return {"type": kind, "optional": optional, **more, "field": name}


def struct(fields: Sequence[Json], /, *, optional: bool = False, **more: Any) -> Json:
    """A struct."""
    return {"type": "struct", "fields": fields, "optional": optional, **more}


def source(connector: str) -> Json:
    """The block that says where an event is from."""
    fields = [
        field("version", "string", optional=False),
        field("connector", "string", optional=False),
        field("name", "string", optional=False),
        field("ts_ms", "int64", optional=False),
        field(
            "snapshot",
            "string",
            name="io.debezium.data.Enum",
            version=1,
            parameters={"allowed": _SNAPSHOTS},
            default="false",
        ),
        field("db", "string", optional=False),
        field("sequence", "string"),
        field("ts_us", "int64"),
        field("ts_ns", "int64"),
        field("table", "string"),
        field("server_id", "int64", optional=False),
        field("gtid", "string"),
        field("file", "string", optional=False),
        field("pos", "int64", optional=False),
        field("row", "int32", optional=False),
        field("thread", "int64"),
        field("query", "string"),
    ]
    name = f"io.debezium.connector.{connector}.Source"
    return struct(fields, name=name, version=1, field="source")


def envelope(table: str, connector: str, columns: Sequence[Json]) -> Json:
    """A value with a row before and after its change.

    Args:
        table: the name of the table, behind the prefix.
        connector: ``mysql`` or ``mariadb``.
        columns: its columns.
    """
    transaction = struct(
        [
            field("id", "string", optional=False),
            field("total_order", "int64", optional=False),
            field("data_collection_order", "int64", optional=False),
        ],
        optional=True,
        name="event.block",
        version=1,
        field="transaction",
    )
    return struct(
        [
            struct(columns, optional=True, name=f"{table}.Value", field="before"),
            struct(columns, optional=True, name=f"{table}.Value", field="after"),
            source(connector),
            transaction,
            field("op", "string", optional=False),
            field("ts_ms", "int64"),
            field("ts_us", "int64"),
            field("ts_ns", "int64"),
        ],
        name=f"{table}.Envelope",
        version=2,
    )


def schema_change_key(connector: str) -> Json:
    """The key of a schema change."""
    name = f"io.debezium.connector.{connector}.SchemaChangeKey"
    return struct([field("databaseName", "string", optional=False)], name=name, version=1)


def schema_change(connector: str) -> Json:
    """The value of a schema change."""
    texts: Json = {"type": "string", "optional": False}
    column = struct(
        [
            field("name", "string", optional=False),
            field("jdbcType", "int32", optional=False),
            field("nativeType", "int32"),
            field("typeName", "string", optional=False),
            field("typeExpression", "string"),
            field("charsetName", "string"),
            field("length", "int32"),
            field("scale", "int32"),
            field("position", "int32", optional=False),
            field("optional", "boolean"),
            field("autoIncremented", "boolean"),
            field("generated", "boolean"),
            field("comment", "string"),
            field("defaultValueExpression", "string"),
            field("enumValues", "array", items=texts),
        ],
        name="io.debezium.connector.schema.Column",
        version=1,
    )
    table = struct(
        [
            field("defaultCharsetName", "string"),
            field("primaryKeyColumnNames", "array", items=texts),
            field("columns", "array", optional=False, items=column),
            field("comment", "string"),
        ],
        optional=True,
        name="io.debezium.connector.schema.Table",
        version=1,
        field="table",
    )
    change = struct(
        [
            field("type", "string", optional=False),
            field("id", "string", optional=False),
            table,
        ],
        name="io.debezium.connector.schema.Change",
        version=1,
    )
    return struct(
        [
            source(connector),
            field("ts_ms", "int64", optional=False),
            field("databaseName", "string"),
            field("schemaName", "string"),
            field("ddl", "string"),
            field("tableChanges", "array", optional=False, items=change),
        ],
        name=f"io.debezium.connector.{connector}.SchemaChangeValue",
        version=1,
    )


def wrapping(schema: Json) -> tuple[bytes, bytes]:
    """What stands before and behind a payload that has its schema."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return b'{"schema":' + text.encode() + b',"payload":', b"}"
