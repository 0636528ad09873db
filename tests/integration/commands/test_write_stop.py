"""A server that is made read-only for a cut-over, with accounts that may do only so much."""

from contextlib import contextmanager

import pymysql
import pytest

from setl.errors import ConfigurationError
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.write_stop import MysqlWriteStop
from tests.integration.pipelines import execute, fresh_name


def is_mariadb(server):
    return "mariadb" in execute(server, "SELECT VERSION()")[0][0].lower()


def read_only(server):
    return str(execute(server, "SELECT @@GLOBAL.read_only")[0][0]) in {"1", "ON"}


@pytest.fixture
def server(servers):
    """It takes writes again at the end, whatever a test does."""
    try:
        yield servers[0]
    finally:
        execute(servers[0], "SET GLOBAL read_only = OFF")


@pytest.fixture
def schema(server):
    name = fresh_name("stop")
    execute(server, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    yield name
    execute(server, "SET GLOBAL read_only = OFF", f"DROP DATABASE {name}")


@pytest.fixture
def account(server, schema):
    made = []

    def make(*privileges):
        name = fresh_name("u")
        made.append(name)
        execute(
            server,
            f"CREATE USER '{name}'@'%' IDENTIFIED BY 'secret'",
            f"GRANT INSERT, SELECT ON {schema}.* TO '{name}'@'%'",
            *(f"GRANT {p} ON *.* TO '{name}'@'%'" for p in privileges),
        )
        return MysqlEndpoint(server.host, server.port, name, "secret")

    yield make
    for name in made:
        execute(server, f"DROP USER '{name}'@'%'")


@contextmanager
def session(endpoint):
    connection = pymysql.connect(
        host=endpoint.host,
        port=endpoint.port,
        user=endpoint.user,
        password=endpoint.password,
        autocommit=True,
    )
    try:
        yield connection.cursor()
    finally:
        connection.close()


def may_write(endpoint, schema, number):
    with session(endpoint) as cursor:
        try:
            cursor.execute(f"INSERT INTO {schema}.t VALUES ({number})")
        except pymysql.MySQLError as error:
            if error.args[0] != 1290:
                raise
            return False
        return True


def ddl_context(server):
    return ["READ ONLY ADMIN"] if is_mariadb(server) else ["CONNECTION_ADMIN"]


def setting(server):
    more = [] if is_mariadb(server) else ["SYSTEM_VARIABLES_ADMIN"]
    return [*ddl_context(server), *more]


def test_who_may_stop_writes_stops_those_of_others(server, schema, account):
    own, application = account(*setting(server)), account()
    stop = MysqlWriteStop(own)
    before = stop.look()
    assert (before.stopped, before.lacking, before.passes) == (False, "", True)
    assert may_write(application, schema, 1)
    stop.stop()
    stop.stop()
    assert stop.look().stopped
    assert read_only(server)
    assert not may_write(application, schema, 2)
    assert may_write(own, schema, 3), "heartbeats and the way back go on"
    stop.restore(before.settings)
    stop.restore(before.settings)
    assert not stop.look().stopped
    assert may_write(application, schema, 4)


def test_the_grant_that_is_named_is_enough(server, schema, account):
    own = account()
    stop = MysqlWriteStop(own)
    lacking = stop.look().lacking
    assert lacking.startswith("GRANT ")
    with pytest.raises(ConfigurationError):
        stop.stop()
    assert not read_only(server)
    execute(server, lacking)
    assert stop.look().lacking == ""
    stop.stop()
    assert read_only(server)


def test_the_grant_for_the_way_back_is_enough(server, schema, account):
    own = account()
    stop = MysqlWriteStop(own)
    execute(server, "SET GLOBAL read_only = ON")
    look = stop.look()
    assert (look.stopped, look.passes) == (True, False)
    assert not may_write(own, schema, 1)
    execute(server, look.bypass_grant)
    assert stop.look().passes
    assert may_write(own, schema, 1)


def test_a_transaction_that_is_open_does_not_end_after_the_stop(server, schema, account):
    own, application = account(*setting(server)), account()
    with session(application) as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {schema}.t VALUES (1)")
        MysqlWriteStop(own).stop()
        with pytest.raises(pymysql.MySQLError, match="read-only"):
            cursor.execute("COMMIT")
    assert execute(server, f"SELECT COUNT(*) FROM {schema}.t")[0][0] == 0


def test_who_is_connected_and_may_write_all_the_same_is_named(server, schema, account):
    execute(server, "SELECT 1")
    look = MysqlWriteStop(MysqlEndpoint(server.host, server.port, server.user, server.password))
    other = account(*ddl_context(server))
    with session(other):
        assert other.user in look.look().others
    assert server.user not in look.look().others


def test_a_strict_stop_of_mysql_lets_nobody_write(server, schema):
    if is_mariadb(server):
        return
    own = MysqlEndpoint(server.host, server.port, server.user, server.password)
    stop = MysqlWriteStop(own)
    before = stop.look()
    try:
        execute(server, "SET GLOBAL super_read_only = ON")
        look = stop.look()
        assert (look.stopped, look.passes) == (True, False)
        stop.restore(before.settings)
        assert not stop.look().stopped
        stop.restore(look.settings)
        assert stop.look().settings == look.settings
    finally:
        execute(server, "SET GLOBAL super_read_only = OFF")
