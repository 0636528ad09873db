"""Records of Debezium and of Canal, made as these write them."""

import json

TYPES = {int: "int32", str: "string", bytes: "bytes"}


def written(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def schema_of(fields):
    """A row's fields: each a Kafka Connect type, or its type, name, parameters and default."""
    listed = []
    for name, given in fields.items():
        type_, *more = given if isinstance(given, tuple) else (given,)
        field = {"type": type_, "optional": True, "field": name}
        if more:
            field["name"] = more[0]
        if len(more) > 1:
            field["parameters"] = more[1]
        if len(more) > 2:
            field["default"] = more[2]
        listed.append(field)
    return listed


def key(**columns):
    fields = schema_of({name: TYPES[type(value)] for name, value in columns.items()})
    return written({"schema": {"type": "struct", "fields": fields}, "payload": columns})


def debezium(
    op, before=None, after=None, *, fields=None, table="orders", seconds=1_700_000_000, **source
):
    """A change event with its schema; fields are taken from the row if none are given."""
    row = after or before or {}
    fields = fields or {name: TYPES.get(type(value), "int32") for name, value in row.items()}
    images = [
        {"type": "struct", "fields": schema_of(fields), "optional": True, "field": side}
        for side in ("before", "after")
    ]
    source = {"connector": "mysql", "ts_ms": seconds * 1000, "db": "shop", "table": table, **source}
    said = {"before": before, "after": after, "source": source, "transaction": None, "op": op}
    schema = {"type": "struct", "fields": images, "name": f"p.shop.{table}.Envelope"}
    return written({"schema": schema, "payload": said})


def canal(type_, data, old=None, *, types=None, keys=("id",), sql="", ddl=False, table="orders"):
    """A flat message."""
    message = {
        "data": data,
        "database": "shop",
        "es": 1_700_000_000_000,
        "id": 3,
        "isDdl": ddl,
        "mysqlType": types or {"id": "int(11)"},
        "old": old,
        "pkNames": list(keys) or None,
        "sql": sql,
        "sqlType": {},
        "table": table,
        "ts": 1_700_000_000_500,
        "type": type_,
    }
    return written(message)
