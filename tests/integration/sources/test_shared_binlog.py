"""Several readers of one server share a connection: a fast, a slow, a stuck and a closed one."""

import threading
import time
from contextlib import contextmanager

import pytest

from setl.errors import TransientError
from setl.model.entry import EntryKind
from setl.select.identity import temporary_server_id
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from tests.integration.pipelines import execute, fresh_name
from tests.loading import endpoint_of
from tests.mysql_servers import binlog_status, dump_threads
from tests.waiting import eventually

pytestmark = pytest.mark.servers

KEPT = 64 * 1024


@pytest.fixture(scope="module")
def own(another_server, tmp_path_factory):
    with another_server(tmp_path_factory.mktemp("own"), "own", 207) as server:
        yield server


@pytest.fixture
def server(own):
    """A server that nobody else reads; each test leaves it without readers."""
    yield own
    eventually(lambda: not dump_threads(own), 60)


@pytest.fixture
def table(server):
    name = fresh_name("shared")
    execute(
        server,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))",
    )
    return f"{name}.t"


class Pipeline:
    """Reads in a thread, and begins again at the last transaction that it has taken."""

    def __init__(self, server, position, shared, pause=0.0):
        limits = StreamLimits(entries=50)  # so that a slow one is seen to be slow
        self.source = MysqlBinlogSource(
            endpoint_of(server), temporary_server_id(), limits=limits, shared=shared
        )
        self.position, self.pause = position, pause
        self.going = threading.Event()
        self.going.set()
        self.ended = self.quiet = False
        self.offered = 0
        self.errors, self.entries, self.pending, self.was_alone = [], [], [], 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        opened = False
        while not self.ended:
            self.going.wait()
            try:
                if not opened:
                    self.pending = []
                    self.source.open(self.position)
                    opened = True
                for entry in self.source.read(100, 0.2, self.absorb):
                    self.take(entry)
            except TransientError as error:
                opened = False
                if not self.ended:
                    self.errors.append(error)
            time.sleep(self.pause)

    def absorb(self, entries):
        """Where it is quiet, four of five are absorbed: they are taken by whoever receives them."""
        self.offered += 1
        if not self.quiet or self.offered % 5 == 0:
            return False
        for entry in entries:
            self.take(entry)
        return True

    def take(self, entry):
        if entry.kind is EntryKind.ROWS:
            self.pending.append((entry.position.file, entry.position.offset, entry.payload))
        elif entry.kind is EntryKind.COMMIT:
            self.entries += self.pending
            self.pending, self.position = [], entry.position
        elif entry.kind is EntryKind.DDL:
            self.entries.append((entry.position.file, entry.position.offset, entry.statement))
            self.position = entry.position

    def end(self):
        self.ended = True
        self.going.set()
        self.source.close()
        self.thread.join(30)
        assert not self.thread.is_alive()


@contextmanager
def pipelines(server, count, shared, **options):
    position = MysqlBinlogSource(endpoint_of(server), temporary_server_id()).initial()
    made = [Pipeline(server, position, shared, **options) for _ in range(count)]
    try:
        yield made
    finally:
        for each in made:
            each.end()


def write(server, table, transactions):
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for _ in range(transactions):
            cursor.execute(f"INSERT INTO {table} (v) VALUES (REPEAT('x', 150)), (UUID())")
            connection.commit()


def share(server, table, readers, threads=1):
    """Whether all read together; a position is needed, so something is written."""
    write(server, table, 1)
    shared = all(each.source.shared() for each in readers)
    return shared and len(dump_threads(server)) == threads


def rest(server, table, readers):
    """Until all read together."""
    eventually(lambda: share(server, table, readers), 60, interval=0.3)


@pytest.mark.family("mariadb", why="who waits for whom; where each goes on is looked at below")
def test_readers_of_different_speed_partition_one_connection(server, table):
    with pipelines(server, 5, SharedReaders(KEPT)) as readers:
        rest(server, table, readers)
        slow, stuck, closed, *_ = readers
        slow.pause = 0.3
        stuck.going.clear()
        closed.end()
        others = readers[3:]
        for _ in range(25):
            # Nobody waits for the one that is stuck. More at once than is kept would be too
            # much for the others, too, on a machine that gives them no time.
            write(server, table, 40)
            all_came(server, table, others)
        assert not any(each.errors for each in others)
        # It lost its subscription, so that it needs a connection to itself.
        assert len(stuck.entries) < len(others[0].entries)
        stuck.going.set()
        slow.pause = 0.0
        left = [slow, stuck, *others]
        eventually(lambda: len({len(each.entries) for each in left}) == 1, 90)
        rest(server, table, left)

        # The connection is killed: everybody is told, and goes on behind what it has.
        reported = [len(each.errors) for each in left]
        execute(server, f"KILL {dump_threads(server)[0]}")
        write(server, table, 20)
        eventually(lambda: all(len(e.errors) > n for e, n in zip(left, reported, strict=True)), 60)
        rest(server, table, left)
        assert execute(server, f"SELECT MAX(id) = COUNT(*) FROM {table}") == ((1,),)
        all_came(server, table, left)
        positions = [entry[:2] for entry in left[0].entries]
        assert positions == sorted(set(positions))


def test_files_end_and_schemas_change_and_old_files_go_while_all_partition(server, table):
    with pipelines(server, 3, SharedReaders()) as together, pipelines(server, 1, None) as (alone,):
        readers = [*together, alone]
        for each in (*together[:2], alone):
            each.quiet = True
        eventually(lambda: share(server, table, together, threads=2), 60, interval=0.3)
        before, files = [len(each.errors) for each in readers], []
        for number in range(6):
            write(server, table, 30)
            one_by_one(server, table, readers, 10)
            execute(server, f"ALTER TABLE {table} ADD COLUMN c{number} INT DEFAULT {number}")
            execute(server, "FLUSH BINARY LOGS")
            write(server, table, 5)
            with server.connect() as connection:
                files.append(binlog_status(connection)[0])
        all_came(server, table, readers)
        assert {file for file, *_ in alone.entries} > set(files)
        assert sum("ADD COLUMN" in str(entry[2]) for entry in alone.entries) == 6
        execute(server, f"PURGE BINARY LOGS TO '{files[-1]}'")
        write(server, table, 10)
        all_came(server, table, readers)
        # Nobody had to restart, and there are two connections still.
        assert [len(each.errors) for each in readers] == before
        assert all(each.source.shared() for each in together)
        assert len(dump_threads(server)) == 2


def test_all_go_on_where_they_were_when_the_server_starts_again(server, table):
    with pipelines(server, 3, SharedReaders()) as readers:
        rest(server, table, readers)
        for each in readers:
            each.quiet = True
        one_by_one(server, table, readers, 10)
        server.stop()
        server.start()
        write(server, table, 50)
        rest(server, table, readers)
        all_came(server, table, readers)


def one_by_one(server, table, readers, transactions):
    """Write when all have what was written before, so that they may rest meanwhile."""
    for _ in range(transactions):
        write(server, table, 1)
        all_came(server, table, readers)


def all_came(server, table, readers):
    """Wait until everybody has each change once, and the same."""
    rows = execute(server, f"SELECT COUNT(*) FROM {table}")[0][0]
    eventually(lambda: all(rows_of(each) == rows for each in readers), 60)
    assert all(each.entries == readers[0].entries for each in readers)


def rows_of(reader):
    """Rows, each transaction has two of them in one event."""
    return 2 * sum(isinstance(what, bytes) for *_, what in reader.entries)
