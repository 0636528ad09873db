"""Rows that are asked for by their keys are found: one that is not counts as deleted."""

from contextlib import closing

import pytest

from setl.bulk.checksums import Formed
from setl.bulk.comparison_plan import common_form
from setl.errors import DataError
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import connect
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.values.conditions import Condition
from tests.integration.pipelines import execute, on_a
from tests.integration.type_catalogue import KEYS, LABELS
from tests.integration.types.test_types_mysql import LENIENT
from tests.loading import endpoint_of

ALL = Condition("TRUE", ())
MORE = {
    "time2": ("TIME(2)", ["'10:00:00.01'", "'-00:00:00.01'", "'838:59:59'"]),
    "time0": ("TIME", ["'10:00:00'", "0"]),
    "dates": ("DATE", ["'0000-00-00'", "'2024-00-10'", "'2023-02-31'"]),
}
KINDS = {**KEYS, **LABELS, **MORE}
_MARIADB = pytest.mark.family("mariadb", why="MySQL has no such type")


schema = on_a("by_key", options="CHARACTER SET utf8mb4")


def reader_of(server, schema, table):
    endpoint = endpoint_of(server)
    with closing(connect(endpoint)) as connection:
        described = read_table(connection, schema, table)
    assert described is not None
    return TableReader(endpoint, described)


def rows_of(reader, parts):
    columns = reader.schema.columns
    return [row for part in parts for rows in reader.read(columns, part) for row in rows]


@pytest.mark.parametrize("beside", ["", ", w"], ids=["alone", "with another column"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=_MARIADB) if n in ("uuid", "inet6") else n for n in KINDS]
)
def test_a_row_is_found_by_its_key(site_a, schema, name, beside):
    definition, values = KINDS[name]
    table = f"v {definition} NOT NULL, w INT NOT NULL, PRIMARY KEY (v{beside})"
    execute(site_a, LENIENT, f"CREATE TABLE {schema}.t ({table})")
    execute(site_a, LENIENT, *(f"INSERT INTO {schema}.t VALUES ({v}, 7)" for v in values))
    reader = reader_of(site_a, schema, "t")
    key = [reader.schema.columns[i] for i in reader.schema.key]
    rows = rows_of(reader, [ALL])
    keys = [row[: len(key)] for row in rows]
    assert len(rows) == len(values)
    for one, row in zip(keys, rows, strict=True):
        assert rows_of(reader, reader.parts_of_keys(key, [one])) == [row]
    found = rows_of(reader, reader.parts_of_keys(key, keys))
    assert sorted(found, key=str) == sorted(rows, key=str)


@pytest.fixture
def small_packets(site_a):
    ((before,),) = execute(site_a, "SELECT @@GLOBAL.max_allowed_packet")
    execute(site_a, f"SET GLOBAL max_allowed_packet = {1 << 20}")
    yield
    execute(site_a, f"SET GLOBAL max_allowed_packet = {before}")


@pytest.mark.family("mysql", why="JSON is text in MariaDB")
@pytest.mark.usefixtures("small_packets")
def test_json_whose_text_is_longer_than_a_packet_is_an_error(site_a, schema):
    """MySQL takes it, since it writes more spaces, and answers with empty text."""
    execute(site_a, f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v JSON)")
    for i, number in enumerate(("1234567890", "2045678901")):
        text = f"[{','.join([number] * 90_000)}]"
        execute(site_a, f"INSERT INTO {schema}.t VALUES ({i}, '{text}')")
    reader = reader_of(site_a, schema, "t")
    with pytest.raises(DataError, match="longer than max_allowed_packet"):
        rows_of(reader, [ALL])
    id_, v = reader.schema.columns
    form = common_form(v, v)
    assert form is not None
    with reader.checksums([Formed(v, form)], [id_]) as checksum:
        (part,) = reader.chunks([id_], 100)
        assert checksum(part) != checksum(part), "else two values that nobody saw would be equal"
