"""Flat messages of Canal, made as it writes them."""

import json

from setl.codec.canal.writing.messages import CanalTable
from tests.unit.formats.records import SECONDS, written

OWN = {"time_zone": "+08:00"}, {}
READ = {}, "canal UTC"
ZERO_DATES = True


def canal(
    type_,
    data,
    old=None,
    *,
    types=None,
    keys=("id",),
    sql="",
    ddl=False,
    table="orders",
    seconds=SECONDS,
):
    """A flat message."""
    message = {
        "data": data,
        "database": "shop",
        "es": seconds * 1000,
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


def insert(number, table="orders", seconds=SECONDS):
    return None, canal("INSERT", [{"id": str(number)}], table=table, seconds=seconds)


def delete(number):
    return None, canal("DELETE", [{"id": str(number)}])


def truncate():
    return None, canal("TRUNCATE", None, sql="TRUNCATE TABLE `orders`", ddl=True, keys=())


def heartbeat():
    return None, canal("QUERY", None)


def inserted(value):
    message = json.loads(value or b"{}")
    return [row["id"] for row in message["data"]] if message.get("type") == "INSERT" else []


def image(table, value):
    made = CanalTable(table)
    return json.loads(made.image(made.texts((1, value))))["v"]
