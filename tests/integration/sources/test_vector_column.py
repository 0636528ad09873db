"""VECTOR of MySQL, read from the table itself."""

import pytest

from setl.systems.mysql.connection import MysqlEndpoint, connect
from tests.integration.every_type import run, sandbox_database

pytestmark = pytest.mark.family("mysql", why="MariaDB sends its VECTOR as a string type")


def test_a_vector_is_read_as_its_bytes(site_a):
    with sandbox_database(site_a) as (connection, schema):
        run(
            connection,
            f"CREATE TABLE {schema}.v (id INT PRIMARY KEY, v VECTOR(2))",
            f"INSERT INTO {schema}.v VALUES (1, TO_VECTOR('[0.41,0.27]')), (2, NULL)",
        )
        server = site_a
        own = connect(MysqlEndpoint(server.host, server.port, server.user, server.password))
        with own, own.cursor() as cursor:
            cursor.execute(f"SELECT v, HEX(v) FROM {schema}.v ORDER BY id")
            (value, expected), empty = cursor.fetchall()
    assert value.hex().upper() == expected
    assert empty == (None, None)
