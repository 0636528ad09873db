"""Tables whose form only MySQL has: what their binlog says, beside what SELECT says."""

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from tests.integration.every_type import run, sandbox_database, stream
from tests.unit.codec.binlog_server import decoded

pytestmark = pytest.mark.family("mysql", why="MariaDB has none of these")

_SHAPES = {
    "indexes": (
        (
            "id INT PRIMARY KEY, a VARCHAR(9), j JSON, g INT AS (id + 1) VIRTUAL,"
            " s INT AS (id + 2) STORED, h INT DEFAULT 3 INVISIBLE, KEY ((lower(a))),"
            " KEY ((CAST(j->'$.x' AS UNSIGNED ARRAY))), UNIQUE ((id * 2))"
        ),
        "id, a, g, s, h",
    ),
    "no-key": ("id INT, a VARCHAR(9)", "my_row_id, id, a"),
}


@pytest.mark.parametrize("name", _SHAPES)
def test_rows_have_the_columns_that_select_has(site_a, name):
    definition, columns = _SHAPES[name]
    with sandbox_database(site_a) as (connection, schema):
        run(connection, "SET SESSION sql_generate_invisible_primary_key = ON")
        entries = stream(
            site_a,
            connection,
            f"CREATE TABLE {schema}.t ({definition})",
            f"INSERT INTO {schema}.t (id, a) VALUES (1, 'Ü')",
            f"UPDATE {schema}.t SET a = 'z'",
        )
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {schema}.t")
            expected = cursor.fetchone()
    _, last = decoded(BinlogRowCodec(), entries)[-1]
    (_, after), names = last.images[0], last.schema.names
    assert after is not None
    assert tuple(after[names.index(c)] for c in columns.split(", ")) == expected
    assert last.schema.key == (0,)
