"""Row events that are joined when they are read, in front of real servers."""

import random

import pytest

from setl.channel.routes.routing import Route
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.row_codec import single_entries
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.select.identity import temporary_server_id
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from tests.integration.pipelines import execute, fresh_name, mysql, on_a, one_way, rows
from tests.loading import endpoint_of
from tests.waiting import eventually

CODEC = BinlogRowCodec()


class Tables:
    """Maps the table `t` of every schema."""

    def route(self, schema, table):
        return (Route(index=0, target=(schema, table)),) if table == "t" else ()

    def shadow(self, schema, table):
        return None


def start_of(server):
    return MysqlBinlogSource(endpoint_of(server), temporary_server_id()).initial()


def read_from(server, position, until, **limits):
    """Entries from a position up to the binlog's end as it was at `until`."""
    source, found = (
        MysqlBinlogSource(
            endpoint_of(server), temporary_server_id(), limits=StreamLimits(**limits)
        ),
        [],
    )

    def read_on():
        found.extend(source.read(5000, 0.2))
        return found and found[-1].position.order >= until.order

    source.open(position)
    try:
        eventually(read_on, 60)
    finally:
        source.close()
    return found


def single(entries):
    """Entries of one record each; a stream's context and estimates are its own."""
    found = []
    for entry in entries:
        apart = single_entries(CODEC, entry) if entry.kind is EntryKind.ROWS else (entry,)
        found += [each._replace(rows=0, context=()) for each in apart]
    return found


TABLES = [f"CREATE TABLE {{db}}.{name} (id INT PRIMARY KEY, n INT, v TEXT)" for name in "tu"]
schema = on_a("runs", *TABLES)


def write(server, schema, statements=600, seed=3):
    """One transaction of statements of a row each: two tables, all kinds, savepoints taken back."""
    chance = random.Random(seed)
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for n in range(statements):
            table = f"{schema}.{'u' if chance.random() < 0.05 else 't'}"
            cursor.execute(f"INSERT INTO {table} VALUES ({n}, 0, 'row {n}')")
            if chance.random() < 0.3:
                cursor.execute(f"UPDATE {table} SET n = n + 1, v = REPEAT('é', {n}) WHERE id = {n}")
            if chance.random() < 0.05:
                cursor.execute("SAVEPOINT s")
                cursor.execute(f"DELETE FROM {table} WHERE id = {n}")
                cursor.execute("ROLLBACK TO SAVEPOINT s")
        connection.commit()


@pytest.mark.parametrize(
    "limits", [{"chunk_events": 1000}, {"chunk_events": 7}, {"chunk_bytes": 2000}]
)
def test_a_stream_of_runs_has_the_records_of_the_stream(site_a, schema, limits):
    position = start_of(site_a)
    write(site_a, schema)
    write(site_a, schema, statements=0)
    end = start_of(site_a)
    alone = read_from(site_a, position, end)
    joined = read_from(site_a, position, end, **{"chunk_events": 1000, **limits})
    assert single(joined) == single(alone)
    count = sum(e.kind is EntryKind.ROWS for e in joined)
    assert count < sum(e.kind is EntryKind.ROWS for e in alone) / 2


def test_a_checkpoint_at_any_position_inside_a_run_leaves_exactly_the_rest(site_a, schema):
    position = start_of(site_a)
    write(site_a, schema, statements=150)
    end = start_of(site_a)
    alone = read_from(site_a, position, end)
    wanted = [e for e in single(alone) if e.kind is EntryKind.ROWS and e.table == "t"]
    for chunk_events in (4, 1000):
        entries = read_from(site_a, position, end, chunk_events=chunk_events)
        for entry in (e for e in alone if e.kind is EntryKind.ROWS):
            checkpoint = Checkpoint(position, applied=entry.position)
            extractor = Extractor(Tables(), MarkIdentity(7), CODEC)
            extractor.reset(checkpoint)
            found = extractor.extract(Batch(1, 1, entries, checkpoint, 0, 0))
            rest = [e for e in wanted if e.position.order > entry.position.order]
            assert single(r.entry for r in found.rows) == rest


@pytest.mark.parametrize(("first_rows", "then_rows"), [(300, 1000), (1000, 170)])
def test_a_leader_that_joins_otherwise_goes_on_inside_a_run(
    servers, db, position, first_rows, then_rows
):
    a, b = servers
    name, changes = fresh_name("channel"), 12_000
    tables = [{"from": f"{db}.orders"}]
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    execute(b, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    files = [
        one_way(a, mysql(b), tables, name, batch_rows=count, window=1)
        for count in (first_rows, then_rows)
    ]
    with a.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for n in range(changes):
            cursor.execute(
                f"UPDATE {db}.orders SET amount = {n}, name = 'n{n}' WHERE id = {n % 3 + 1}"
            )
        connection.commit()
    done = position.lead(files[0], dies_when=lambda f: f.rows_total > 0).dies().rows_total
    assert 0 < done < changes, "the first leader was to be stopped inside the transaction"
    second = position.lead(files[1], nid="n2")
    figures = second.applied(changes)
    assert figures.rows_total == changes
    assert figures.rows_applied < changes, "the second leader began at the start again"
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")
