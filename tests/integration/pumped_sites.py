"""Two real servers, and both directions of a channel pumped by hand: real codec, extractor, sink.

Nothing runs by itself: a test says when which direction takes in how much, so it can say for
every client's write what its site had taken in by then.
"""

from typing import Any

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.position import document_version
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
from setl.transform.history import separated
from setl.transform.work import TransformPlan, WorkItem
from tests.loading import (
    MARK,
    create_system_tables,
    endpoint_of,
    execute,
    fence_for,
    nonces,
    rows_of,
    ticket_for,
    unique,
)
from tests.unit.codec.binlog_server import end_of, entries_between


class Direction:
    """One pipeline: from one server to the other."""

    def __init__(self, pipeline, servers, table, *, from_home):
        self.source, self.target = servers
        self.table = table
        self.router = Router(pipeline, from_home=from_home)
        # The sites of one channel have one mark, and marks of their own.
        self.ticket = ticket_for(unique(pipeline.name))
        fence_for(self.target, self.ticket).raise_to(1, "n1")
        with self.source.connect() as connection:
            self.at = end_of(connection)
        self.items = []  # what was read and can be taken in
        self.taken = 0  # of these, how many were
        self.writes = 0  # of clients, how many of these were taken in
        self.conflicts = 0
        self.sink: Any = None
        self.restart()

    def restart(self):
        """Another process goes on."""
        if self.sink is not None:
            self.sink.close()
        settings = MysqlSinkSettings(endpoint_of(self.target), MARK)
        self.sink = MysqlSink(settings, nonces(unique("n")))
        self.extractor = Extractor(self.router, MarkIdentity(MARK), BinlogRowCodec(), agrees=True)

    def read(self):
        """Read on to the end of the source; between two transactions, as this is."""
        with self.source.connect() as connection:
            end = end_of(connection)
        if end == self.at:
            return
        entries = entries_between(self.source, self.at, end)
        self.at = end
        got = self.extractor.extract(Batch(1, 1, entries, Checkpoint(end), 0, 0))
        for row in got.rows:
            entry = row.entry
            routes = tuple(route.index for route in row.routes)
            version = document_version(1, entry.position)
            names = (entry.schema, entry.table)
            self.items.append(WorkItem(routes, version, entry.context, entry.payload, names))

    def take(self, count, again=0):
        """Take in the next `count` entries of what was read, after the last `again` once more."""
        batch = self.items[max(0, self.taken - again) : self.taken + count]
        new = self.items[self.taken : self.taken + count]
        if not new:
            return
        histories = separated(TransformPlan("binlog", self.router), batch).histories
        loaded = self.sink.resolve_conflicts(self.ticket, histories)
        self.conflicts += loaded.conflicts_source + loaded.conflicts_target
        self.taken += len(new)
        self.writes += sum(item.table == self.table for item in new)

    @property
    def left(self):
        """How much is read and not taken in."""
        return len(self.items) - self.taken


class PumpedSites:
    """A table on two servers, `{t}` in statements, and both directions between them."""

    def __init__(self, servers, definition, policy, home="ab"):
        self.servers = servers
        self.schema = unique("pumped")
        self.table = (self.schema, "t")
        for server in servers:
            create_system_tables(server)
            execute(
                server, f"CREATE DATABASE {self.schema}", f"CREATE TABLE {self.name} {definition}"
            )
        ends = [{"type": "mysql", "host": host, "user": "u"} for host in "ab"]
        tables = [{"from": self.name, "conflict": policy}]
        self.file = parse_channel(
            {
                "channel": "shop",
                "home": home,
                "pipelines": [
                    {"name": name, "source": ends[i], "target": ends[1 - i], "tables": tables}
                    for i, name in enumerate(("ab", "ba"))
                ],
            }
        )
        ab, ba = self.file.pipelines
        at_home = self.file.from_home
        # By the site where they write.
        self.into = [
            Direction(ba, servers[::-1], self.table, from_home=at_home("ba")),
            Direction(ab, servers, self.table, from_home=at_home("ab")),
        ]

    @property
    def name(self):
        return ".".join(self.table)

    def write(self, site, *statements):
        """Statements of a client of a site, each a transaction."""
        execute(self.servers[site], *(s.format(t=self.name) for s in statements))

    def rows(self, site):
        return rows_of(self.servers[site], f"SELECT * FROM {self.name} ORDER BY 1")

    def exchange(self, most=50):
        """Take in all there is, until there is nothing more."""
        for _ in range(most):
            for one in self.into:
                one.read()
            if not any(one.left for one in self.into):
                return
            for one in self.into:
                one.take(one.left)
        raise AssertionError("the sites go on telling each other")

    def stored(self):
        """How many rows of what is kept for the other site are left."""
        of = " OR ".join(f"pipeline = '{one.ticket.pipeline_key}'" for one in self.into)
        count = f"SELECT COUNT(*) FROM retl.setl_recent WHERE kept IS NOT NULL AND ({of})"
        return sum(rows_of(server, count)[0][0] for server in self.servers)

    def close(self):
        for one in self.into:
            one.sink.close()
        for server in self.servers:
            execute(server, f"DROP DATABASE {self.schema}")
