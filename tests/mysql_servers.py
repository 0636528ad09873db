"""The two database servers of a test run: embedded MariaDBs, or servers given by address.

``SETL_TEST_MYSQL="host:port,user,password host2:port2,user,password"`` names two servers, MySQL or
MariaDB, with accounts that have all privileges. They may hold other data and stay as they are, but
for global settings that reading a row binlog needs, which are set if they are not; databases that
tests make for themselves are dropped at the end. Tests that stop or configure a server start a
MariaDB of their own all the same.
"""

import re
from contextlib import contextmanager

import pymysql
import pytest

from tests.families import VARIABLE

# Name → value that tests rely on; whatever can be changed in a running server is.
_SETTINGS = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_row_value_options": "",
}
_OF_A_TEST = re.compile(r".+_[0-9a-f]{8,12}")  # how tests name databases of their own


class GivenServer:
    """A server that somebody else runs, with the attributes of an embedded one."""

    def __init__(self, host, port, user, password):
        self.host = host
        self.port = port
        self.user = user
        self.password = password

    def connect(self, **options):
        given = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 10,
            "ssl_disabled": True,  # see setl_embedded.database
        }
        return pymysql.connect(**{**given, **options})

    @property
    def server_id(self):
        return self._value("server_id")

    @property
    def gtid_domain_id(self):
        """MariaDB's; MySQL's GTIDs begin with a UUID."""
        return self._value("gtid_domain_id")

    def _value(self, name):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT @@GLOBAL.{name}")
            return cursor.fetchone()[0]

    def __repr__(self):
        return f"<{self.host}:{self.port}>"


def given_servers(text):
    """The servers that an address names; none for an empty one."""
    parts = re.split(r"[\s;]+", text.strip()) if text.strip() else []
    if not parts:
        return ()
    if len(parts) != 2:
        raise pytest.UsageError(f"{VARIABLE} names {len(parts)} servers; the tests need two")
    return tuple(_parsed(part) for part in parts)


def _parsed(part):
    fields = part.split(",", 2)
    host, _, port = fields[0].rpartition(":")
    if len(fields) != 3 or not host or not port.isdigit():
        raise pytest.UsageError(f"{VARIABLE}: expected host:port,user,password, twice")
    return GivenServer(host.strip("[]"), int(port), fields[1], fields[2])


def prepare(server):
    """See that a given server has the settings that tests rely on; returns its databases."""
    try:
        connection = server.connect()
    except pymysql.MySQLError as error:
        raise pytest.UsageError(f"{VARIABLE}: {server} refuses the account: {error}") from error
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES")
        have = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        if have["log_bin"] not in ("ON", "1"):
            raise pytest.UsageError(f"{VARIABLE}: {server} writes no binlog (log_bin)")
        for name, value in _SETTINGS.items():
            if name in have and have[name].upper() != value:
                try:
                    cursor.execute(f"SET GLOBAL {name} = %s", (value,))
                except pymysql.MySQLError as error:
                    needed = f"{name}={value!r}, and the account may not set it: {error}"
                    raise pytest.UsageError(f"{VARIABLE}: {server} needs {needed}") from error
        return databases(cursor)


def databases(cursor):
    cursor.execute("SHOW DATABASES")
    return {str(row[0]) for row in cursor.fetchall()}


def drop_new_databases(server, before):
    """Drop the databases that this run's tests have left; setl's own stays."""
    with server.connect() as connection, connection.cursor() as cursor:
        for name in filter(_OF_A_TEST.fullmatch, databases(cursor) - before):
            cursor.execute(f"DROP DATABASE `{name.replace('`', '``')}`")


def is_mariadb(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return "mariadb" in cursor.fetchone()[0].lower()


def mariadb_version(connection):
    """A MariaDB's version as numbers; None for a MySQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        text = cursor.fetchone()[0]
    return tuple(map(int, re.findall(r"\d+", text)[:3])) if "MariaDB" in text else None


def needs_mariadb(connection, *version, what):
    """Skip a test if the MariaDB is older than what the test is about."""
    found = mariadb_version(connection)
    if found is not None and found < version:
        pytest.skip(f"MariaDB before {'.'.join(map(str, version))} has no {what}")


def logs_no_generated(connection):
    """Whether a server logs no generated columns with an update, as MariaDB 11.8."""
    version = mariadb_version(connection)
    return version is not None and version >= (11,)


def binlog_status(connection):
    """File and offset of the end of a server's binlog."""
    with connection.cursor() as cursor:
        try:
            cursor.execute("SHOW BINARY LOG STATUS")
        except pymysql.err.ProgrammingError:  # before MySQL 8.2, and MariaDB
            cursor.execute("SHOW MASTER STATUS")
        file, offset = cursor.fetchone()[:2]
    return str(file), int(offset)


def reset_binlogs(connection):
    """Delete all binlogs of a server and restart."""
    with connection.cursor() as cursor:
        cursor.execute("RESET MASTER" if is_mariadb(connection) else "RESET BINARY LOGS AND GTIDS")


@contextmanager
def compressed_binlog(connection):
    """Let a server compress what it logs: MariaDB each event, MySQL whole transactions.

    The setting is global, but no two tests of a run write at the same time.
    """
    if is_mariadb(connection):
        on = ["SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10"]
        off = ["SET GLOBAL log_bin_compress = OFF, GLOBAL log_bin_compress_min_len = 256"]
    else:
        name = "binlog_transaction_compression"
        on = [f"SET GLOBAL {name} = ON", f"SET SESSION {name} = ON"]
        off = [f"SET GLOBAL {name} = OFF", f"SET SESSION {name} = OFF"]
    with connection.cursor() as cursor:
        try:
            for statement in on:
                cursor.execute(statement)
            yield
        finally:
            for statement in off:
                cursor.execute(statement)


def dump_threads(server):
    """The ids of the connections that stream a server's binlog."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        )
        return [number for (number,) in cursor.fetchall()]
