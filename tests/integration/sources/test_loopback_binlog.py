"""Loopback over the binlog of a real server: marks, cuts and restarts inside a transaction."""

import time
import uuid
from itertools import count

import pytest
from mysql_event_stream import BinlogClient
from pymysql.constants import CLIENT

from setl.channel.routes.routing import Route
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.position import BinlogPosition
from setl.resources import read_text
from tests.mysql_servers import binlog_status

OWN, OTHER = 31, 32
MARK = (
    "INSERT INTO retl.retl_mark (ID, CHANNEL_ID, CHANNEL_INFO) VALUES (%s, %s, %s)"
    " ON DUPLICATE KEY UPDATE CHANNEL_ID = VALUES(CHANNEL_ID), CHANNEL_INFO = VALUES(CHANNEL_INFO)"
)
_server_ids = count(9_100)


class OneSchema:
    def __init__(self, schema):
        self.schema = schema

    def route(self, schema, table):
        return (Route(0, (schema, table)),) if schema == self.schema else ()

    def shadow(self, schema, table):
        return None


class Site:
    """A schema with one table, and a writer that marks transactions as loaders do."""

    def __init__(self, server, connection):
        self.server = server
        self.connection = connection
        self.schema = f"loopback_{uuid.uuid4().hex[:8]}"
        self.nonces = count()
        self.mark_id = 500
        with connection.cursor() as cursor:
            cursor.execute(read_text("sql", "retl.sql"))
            while cursor.nextset():
                pass
            cursor.execute(f"CREATE DATABASE {self.schema}")
            cursor.execute(f"CREATE TABLE {self.schema}.t (id INT PRIMARY KEY, v VARCHAR(20))")
        self.start = self.end()

    def write(self, *, mark=None, insert=(), update=(), rows_a_statement=100, end=False):
        """One transaction; returns the ids that it wrote."""
        insert, update = list(insert), list(update)
        with self.connection.cursor() as cursor:
            cursor.execute("BEGIN")
            if mark is not None:
                cursor.execute(MARK, (self.mark_id, mark, f"1.1.0.{next(self.nonces)}"))
            for i in range(0, len(insert), rows_a_statement):
                rows = ",".join(f"({n},'new')" for n in insert[i : i + rows_a_statement])
                cursor.execute(f"INSERT INTO {self.schema}.t VALUES {rows}")
            for n in update:
                # Another value each time: an unchanged row is not logged.
                v = next(self.nonces)
                cursor.execute(f"UPDATE {self.schema}.t SET v = '{v}' WHERE id = {n}")
            if end:
                cursor.execute(
                    "UPDATE retl.retl_mark SET CHANNEL_ID = 0, CHANNEL_INFO = NULL WHERE ID = %s",
                    (self.mark_id,),
                )
            cursor.execute("COMMIT")
        return insert + update

    def heartbeat(self):
        with self.connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO retl.xdual VALUES (77, NOW(6)) ON DUPLICATE KEY UPDATE X = NOW(6)"
            )
            cursor.execute("SELECT UNIX_TIMESTAMP(X) FROM retl.xdual WHERE ID = 77")
            return float(cursor.fetchone()[0])

    def rotate(self):
        with self.connection.cursor() as cursor:
            cursor.execute("FLUSH BINARY LOGS")

    def end(self):
        return BinlogPosition(*binlog_status(self.connection))

    def entries(self, start, hold_bytes=1 << 25):
        """All entries from a position up to the binlog's present end."""
        end, reader, found = self.end(), BinlogHeaderReader(start, hold_bytes=hold_bytes), []
        client = BinlogClient(
            host=self.server.host,
            port=self.server.port,
            user=self.server.user,
            password=self.server.password,
            server_id=next(_server_ids),
            start_binlog_file=start.file,
            start_binlog_position=start.offset,
        )
        deadline = time.monotonic() + 60
        with client:
            client.connect()
            client.start()
            while reader.position.order < end.order:
                assert time.monotonic() < deadline, f"at {reader.position}, not yet at {end}"
                for event in client.poll_batch(256):
                    if event.data is not None:
                        found += reader.read(event.data, checksum=event.checksum_enabled)
        return found

    def extractor(self, mark_id=OWN):
        return Extractor(OneSchema(self.schema), MarkIdentity(mark_id), BinlogRowCodec())


@pytest.fixture
def site(site_a):
    with site_a.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection:
        site = Site(site_a, connection)
        yield site
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {site.schema}")


def ids(extracted):
    codec = BinlogRowCodec()
    found = []
    for entry, _ in extracted.rows:
        images = codec.decode(entry.payload, entry.context).images
        found += [row[0] for before, after in images if (row := after or before)]
    return found


def batches(entries, start, size):
    tracker = CheckpointTracker(start)
    for i in range(0, len(entries), size):
        part = entries[i : i + size]
        yield Batch(i + 1, 1, part, tracker.advance_all(part), sum(e.rows for e in part), 0)


def test_marked_transactions_are_dropped_however_they_are_cut(site):
    expected = site.write(insert=range(50))
    site.write(mark=OWN, insert=range(1_000, 21_000))
    expected += site.write(mark=OTHER, insert=range(100, 110))
    # The same row of the mark table, changed from the other channel's back to ours.
    site.write(mark=OWN, update=range(100))
    written_at = site.heartbeat()
    expected += site.write(update=range(20))
    # As Otter does it: cleared at the end.
    site.write(mark=OWN, update=range(20), end=True)
    expected += site.write(update=range(30, 40))

    entries, start = site.entries(site.start), Checkpoint(site.start)
    for size in (1, 7, 100, len(entries)):
        extractor = site.extractor()
        parts = [extractor.extract(batch) for batch in batches(entries, start, size)]
        assert [n for part in parts for n in ids(part)] == expected, size
        empty = [part for part in parts if not part.rows and part.counts.loopback_rows]
        assert size > 7 or len(empty) > 10, "the marked transaction was to be cut"
        [seen] = [seen for part in parts for seen in part.heartbeats if seen.id == 77]
        assert abs(seen.written_at - written_at) < 0.001
        # Estimates, since events are not decoded.
        dropped = sum(part.counts.loopback_rows for part in parts)
        assert 0.9 * 20_120 < dropped < 1.1 * 20_120


def test_whose_mark_it_is_decides(site):
    own = site.write(mark=OWN, insert=range(10))
    other = site.write(mark=OTHER, insert=range(100, 110))
    none = site.write(insert=range(200, 210))
    entries, start = site.entries(site.start), Checkpoint(site.start)
    [batch] = batches(entries, start, len(entries))
    assert ids(site.extractor(OWN).extract(batch)) == other + none
    assert ids(site.extractor(OTHER).extract(batch)) == own + none
    assert ids(site.extractor(None).extract(batch)) == own + other + none


@pytest.mark.parametrize("mark", [None, OTHER, OWN])
def test_a_restart_inside_a_large_transaction_repeats_and_loses_nothing(site, mark):
    expected = site.write(insert=range(10))
    large = site.write(mark=mark, insert=range(1_000, 21_000))
    expected += [] if mark == OWN else large
    expected += site.write(insert=range(100, 110))
    # A file that is full ends by itself, too: there is more to read then, and no entry in it.
    site.rotate()

    applied, checkpoint, restarts = [], Checkpoint(site.start), 0
    # Let go early, as with transactions larger than memory.
    while entries := site.entries(checkpoint.resume, hold_bytes=1):
        extractor = site.extractor()
        extractor.reset(checkpoint)
        # This leader applies some batches, selects one more, and dies.
        for batch in list(batches(entries, checkpoint, 30))[: 2 + restarts]:
            applied += ids(extractor.extract(batch))
            checkpoint = batch.checkpoint
        restarts += 1
        if checkpoint.applied is not None:
            assert checkpoint.applied.order > checkpoint.resume.order
    assert applied == expected
    assert restarts > 2
