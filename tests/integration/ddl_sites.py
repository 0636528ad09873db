"""Two servers of which one gets the other's schema changes, without a run around it."""

from difflib import unified_diff

import pytest

from setl.channel.routes.routing import Router
from setl.codec.sql.created_table import without_next_number
from setl.errors import FatalError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.entry import EntryKind
from setl.model.leadership import Leadership
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.ddl.replicating import MysqlDdl
from setl.systems.mysql.load.fence import MysqlFence
from tests.integration.pipelines import execute, fresh_name, mysql, one_way
from tests.mysql_servers import is_mariadb
from tests.unit.codec.binlog_server import end_of, entries_between

TABLES = (
    "CREATE TABLE {db}.t (id INT PRIMARY KEY, at TIMESTAMP(6) NULL, d DATETIME(6), n INT NULL)",
    "INSERT INTO {db}.t VALUES (5, '2020-01-02 03:04:05.678901', '2020-06-30 23:59:59.999999', 0)",
    "INSERT INTO {db}.t VALUES (3, '2021-01-02 23:30:05.5', '2021-06-30 12:00:00.5', NULL)",
    "INSERT INTO {db}.t VALUES (9, NULL, NULL, 7)",
    "CREATE TABLE {db}.nokey (v INT NOT NULL UNIQUE)",
    "INSERT INTO {db}.nokey VALUES (30), (10), (20)",
)


class TwoSites:
    """A source whose statements are read from its binlog and replicated to a target."""

    def __init__(self, a, b, db):
        self.a, self.b, self.db = a, b, db
        self.key = fresh_name("p")
        self.number = 0
        file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
        self.router = Router(file.pipelines[0])
        MysqlFence(self.endpoint(b), f"c/{self.key}", 1.0).raise_to(5, "n")
        self.ddl = self.ddl_context(marked_drops=False)

    def endpoint(self, server):
        return MysqlEndpoint(server.host, server.port, server.user, server.password)

    def ddl_context(self, *, marked_drops, source=True, mark=17, accept=()):
        nonces = iter(range(10_000))
        return MysqlDdl(
            self.endpoint(self.b),
            mark,
            self.router,
            lambda: f"{self.key}{next(nonces)}",
            marked_drops=marked_drops,
            source=self.endpoint(self.a) if source else None,
            accept=accept,
        )

    def entries(self, *statements):
        """The DDL that the source logs of statements."""
        with self.a.connect(database=self.db) as connection, connection.cursor() as cursor:
            start = end_of(connection)
            for statement in statements:
                cursor.execute(statement)
            found = entries_between(self.a, start, end_of(connection))
        return [entry for entry in found if entry.kind is EntryKind.DDL]

    def apply(
        self, entry, ddl=None, session=None, unread=lambda _: False, number=None, generation=1
    ):
        """Pass an entry on; `number` if it was tried before."""
        self.number += number is None
        number = number or self.number
        ticket = LoadTicket(Leadership("c", self.key, "n", 5), 1, 0, through=5)
        change = SchemaChange(
            f"{number}",
            entry.statement,
            session or entry.session,
            generation,
            number,
            position=entry.position,
            unread=unread,
        )
        return (ddl or self.ddl).apply(ticket, change)

    def refused(self, *applied, why, hint="state = 'done'", **more):
        """See that what is to be applied is refused, with a hint that has these words."""
        with pytest.raises(FatalError, match=why) as caught:
            self.apply(*applied, **more)
        assert hint in caught.value.hint

    def run(self, *statements):
        for entry in self.entries(*statements):
            assert self.apply(entry)

    def rows(self, server, table="t"):
        with server.connect(database=self.db) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
            return cursor.fetchall()

    def shape(self, server, table="t"):
        return execute(server, f"SHOW CREATE TABLE {self.db}.{table}")

    def assert_same(self, table="t"):
        assert self.rows(self.a, table) == self.rows(self.b, table)
        with self.a.connect() as a, self.b.connect() as b:
            alike = is_mariadb(a) == is_mariadb(b)
        if alike:
            shapes = (self.shape(server, table)[0][1] for server in (self.a, self.b))
            a, b = (without_next_number(shape).splitlines() for shape in shapes)
            assert a == b, "\n".join(unified_diff(a, b, "source", "target", lineterm=""))
