"""Target tables that setl creates: they are as the source's, and a load makes them equal."""

import re

import pytest

from setl.codec.sql.created_table import definitions_of
from setl.operate.check import check_channel
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.test_table_load import loading, wait_until_loaded
from tests.integration.test_types_mysql import (
    LENIENT,
    Writer,
    columns,
    fill_types,
    known,
    on_all,
    quoted,
    same,
)
from tests.integration.type_catalogue import KEYS

COLUMNS = 12
UNSURE = re.compile("[\U00010000-\U0010ffff?]")  # what servers cannot show in labels


@pytest.fixture
def source_db(servers):
    """A database that only the source has; its name."""
    name = fresh_name("created")
    execute(servers[0], f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    for server in servers:
        execute(server, f"DROP DATABASE IF EXISTS {name}")


def one_family(servers):
    return type(servers[0]) is type(servers[1])


def creating(source, target, tables, **options):
    return loading(source, mysql(target), tables, **{"create": True, **options})


def errors_of(file):
    return [(f.where, f.what) for f in check_channel(file) if f.level == "error"]


def text_of(server, table):
    text = execute(server, f"SHOW CREATE TABLE {table}")[0][1]
    found = list(definitions_of(text))
    kept = [d.text for d in found if not d.is_foreign_key]
    # Keys that come after the rows stand behind those that came before.
    keys = sorted(k for k in kept if not k.startswith("`"))
    rest = " ".join(w for w in text[found[-1].end :].split() if "AUTO_INCREMENT=" not in w)
    return [k for k in kept if k.startswith("`")], keys, rest


def keys_of(server, schema, table):
    return execute(
        server,
        "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, SUB_PART, NON_UNIQUE FROM"
        f" information_schema.STATISTICS WHERE TABLE_SCHEMA = '{schema}' AND"
        f" TABLE_NAME = '{table}' ORDER BY 1, 2",
    )


def test_every_type_and_key(servers, source_db, place):
    a, b = servers
    found = [
        (name, (definition, values))
        for name, (definition, values) in on_all(servers, columns).items()
        if not (definition.startswith(("ENUM", "SET")) and UNSURE.search(definition))
    ]
    keys = on_all(servers, lambda connection: known(KEYS, connection))
    writer = Writer(a)
    tables = {}
    for first in range(0, len(found), COLUMNS):
        some = found[first : first + COLUMNS]
        table = quoted(source_db, f"from_{some[0][0]}")
        text = ", ".join(f"`{name}` {definition}" for name, (definition, _) in some)
        execute(a, LENIENT, f"CREATE TABLE {table} (id INT PRIMARY KEY, {text})")
        tables[table] = {name: values for name, (_, values) in some}
    fill_types(tables, writer)
    for name, (definition, values) in keys.items():
        table = quoted(source_db, f"key_{name}")
        execute(a, LENIENT, f"CREATE TABLE {table} (k {definition} PRIMARY KEY, v INT)")
        for i, value in enumerate(values):
            writer.change(f"INSERT INTO {table} VALUES ({value}, {i})")
    writer.connection.close()
    file = creating(a, b, [{"from": f"{source_db}.*"}])
    assert errors_of(file) == []
    running = place.lead(file)
    wait_until_loaded(running, 180)
    for table in (*tables, *(quoted(source_db, f"key_{name}") for name in keys)):
        same(servers, table)
        if one_family(servers):
            assert text_of(b, table) == text_of(a, table)
    assert errors_of(file) == []
