"""Records of Debezium, made as it writes them."""

import json

from setl.codec.debezium.writing.tables import DebeziumTable
from tests.unit.formats.records import SECONDS, written

TYPES = {int: "int32", str: "string", bytes: "bytes"}
OWN = {}, {"prefix": "p", "schemas": True, "decimals": "string"}
READ = {"schemas": True}, "debezium"
ZERO_DATES = False


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
    op, before=None, after=None, *, fields=None, table="orders", seconds=SECONDS, **source
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


def insert(number, table="orders", seconds=SECONDS):
    return key(id=number), debezium("c", after={"id": number}, table=table, seconds=seconds)


def delete(number):
    return key(id=number), debezium("d", before={"id": number})


def truncate():
    return None, debezium("t", before=None, after=None)


def heartbeat():
    return b"{}", json.dumps({"ts_ms": SECONDS * 1000}).encode()


def inserted(value):
    change = json.loads(value or b"{}")
    return [change["after"]["id"]] if change.get("op") == "c" else []


def image(table, value):
    made = DebeziumTable(table, "p", "mysql", schemas=False, exact_decimals=False)
    return json.loads(made.image((1, value)))["v"]
