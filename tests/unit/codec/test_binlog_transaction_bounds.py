"""What of a transaction takes effect: its end, its savepoints, what a crash cut off."""

import struct

import pytest

from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import FatalError, TransientError
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_events import (
    SERVER,
    START,
    EventWriter,
    entries_of,
    kinds,
    mysql_transaction,
    names,
    one_row,
)


def test_entries_wait_for_the_end_of_their_transaction():
    writer = EventWriter()
    reader = BinlogHeaderReader(START)
    *body, end = [*writer.opening(), *mysql_transaction(writer, 5, one_row)]
    assert [e for event in body for e in reader.read(event, checksum=True)] == []
    assert kinds(reader.read(end, checksum=True)) == ["BEGIN", "ROWS", "COMMIT"]


def test_a_transaction_beyond_the_limit_comes_out_in_pieces():
    writer = EventWriter()
    events = [writer.gtid(1), writer.query("BEGIN")]
    for _ in range(10):
        events += one_row(writer)
    entries, _ = entries_of([*writer.opening(), *events, writer.xid()], hold_bytes=100)
    whole, _ = entries_of([*EventWriter().opening(), *events, writer.xid()])
    assert kinds(entries) == ["BEGIN", *["ROWS"] * 10, "COMMIT"] == kinds(whole)
    reader = BinlogHeaderReader(START, hold_bytes=100)
    early = [
        e
        for event in [*EventWriter().opening(), *events]
        for e in reader.read(event, checksum=True)
    ]
    assert early
    with pytest.raises(FatalError, match="took back"):
        reader.read(writer.query("ROLLBACK"), checksum=True)


def test_a_rolled_back_transaction_brings_no_rows():
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("BEGIN"),
        *one_row(writer),
        writer.query("DROP TEMPORARY TABLE IF EXISTS tmp"),
        writer.query("ROLLBACK"),
        *mysql_transaction(writer, 2, one_row),
    ]
    entries, _ = entries_of(events)
    assert kinds(entries) == ["BEGIN", "STATEMENT", "COMMIT", "BEGIN", "ROWS", "COMMIT"]
    assert entries[2].transaction == f"{SERVER}:1"
    assert entries[4].transaction == f"{SERVER}:2"


def test_a_transaction_that_a_crash_cut_off_brings_nothing():
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN"), *one_row(writer)]
    _, cut = entries_of(events, hold_bytes=10)
    following = [writer.rotate("binlog.000008", artificial=True), writer.format_description(5)]
    following += mysql_transaction(writer, 2, one_row)
    entries, _ = entries_of([*events, *following])
    assert kinds(entries) == ["HEARTBEAT", "BEGIN", "ROWS", "COMMIT"]
    assert {e.transaction for e in entries[1:]} == {f"{SERVER}:2"}
    with pytest.raises(FatalError, match="ends inside a transaction"):
        cut.read(following[0], checksum=True)


def unfinished(writer, sequence, rows=5):
    """A transaction of MariaDB without its end."""
    events = [writer.mariadb_gtid(sequence, domain=1, server=101)]
    for _ in range(rows):
        events += one_row(writer, kind=23)
    return events


def test_rows_that_a_crash_of_mariadb_cut_off_do_not_come_out_early():
    writer, asked = EventWriter(mariadb=True), []
    opening = writer.opening()
    first = writer.offset
    events = [*opening, *unfinished(writer, 8), writer.xid()]
    cut = writer.offset
    events += [*unfinished(writer, 9), writer.rotate("binlog.000008")]
    events += [writer.format_description(5), *unfinished(writer, 9), writer.xid()]

    def is_whole(begin):
        asked.append((begin.file, begin.offset))
        return asked[-1] != (START.file, cut)

    entries, _ = entries_of(events, hold_bytes=10, is_whole=is_whole)
    whole = ["BEGIN", *["ROWS"] * 5, "COMMIT"]
    assert kinds(entries) == [*whole, "HEARTBEAT", *whole]
    # Once for each of them.
    assert asked[:2] == [(START.file, first), (START.file, cut)]
    assert [file for file, _ in asked[2:]] == ["binlog.000008"]


def test_a_transaction_that_was_thought_to_be_cut_is_read_again_if_it_ends():
    writer = EventWriter(mariadb=True)
    events = [*writer.opening(), *unfinished(writer, 8)]
    _, reader = entries_of(events, hold_bytes=10, is_whole=lambda _: False)
    with pytest.raises(TransientError, match="a moment ago"):
        reader.read(writer.xid(), checksum=True)


def test_rows_after_a_savepoint_go_with_it():
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("BEGIN"),
        *one_row(writer, value=1),
        writer.query("SAVEPOINT `a`"),
        *one_row(writer, value=2),
        writer.query("SAVEPOINT b"),
        *one_row(writer, value=3),
        writer.query("ROLLBACK TO `A`"),
        *one_row(writer, value=4),
        writer.xid(),
    ]
    entries, _ = entries_of(events)
    rows = [struct.unpack_from("<i", e.payload, len(e.payload) - 8)[0] for e in entries[1:-1]]
    assert kinds(entries) == ["BEGIN", "ROWS", "ROWS", "COMMIT"]
    assert rows == [1, 4]


@pytest.mark.parametrize("names", [("é", "e"), ("e", "É"), ("xé", "xè")])
def test_savepoints_that_may_be_the_same_one_to_a_server_are_an_error(names):
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    for name in (*names, "other"):
        events += [*one_row(writer), writer.query(f"SAVEPOINT `{name}`")]
    _, reader = entries_of(events)
    reader.read(writer.query("ROLLBACK TO OTHER"), checksum=True)
    with pytest.raises(FatalError, match="took back"):
        reader.read(writer.query(f"ROLLBACK TO `{names[0]}`"), checksum=True)


def test_a_table_that_was_dropped_stays_so_after_a_rollback():
    writer = EventWriter()
    drop = "DROP TABLE IF EXISTS `d`.`t`/* Generated to handle failed CREATE OR REPLACE */"
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("BEGIN"),
        *one_row(writer),
        writer.query(drop),
        writer.query("ROLLBACK"),
    ]
    entries, _ = entries_of(events)
    assert [(e.kind.name, e.statement) for e in entries] == [
        ("BEGIN", ""),
        ("DDL", drop),
        ("COMMIT", ""),
    ]


def test_going_back_to_rows_that_were_let_go_is_an_error():
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("BEGIN"),
        writer.query("SAVEPOINT a"),
        *one_row(writer),
        *one_row(writer),
    ]
    _, reader = entries_of(events, hold_bytes=10)
    with pytest.raises(FatalError, match="took back"):
        reader.read(writer.query("ROLLBACK TO a"), checksum=True)


def test_two_phase_transactions():
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("XA START X'61',X'',1"),
        *one_row(writer),
        writer.query("XA END X'61',X'',1"),
        writer.xa_prepare(),
        writer.gtid(2),
        writer.query("XA COMMIT X'61',X'',1"),
    ]
    entries, reader = entries_of(events)
    assert kinds(entries) == ["BEGIN", "ROWS", "COMMIT", "COMMIT"]
    with pytest.raises(FatalError, match="took back"):
        reader.read(writer.query("XA ROLLBACK X'61',X'',1"), checksum=True)


SEQUENCE = (
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment",
    "cache_size", "cycle_option", "cycle_count",
)  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "kind", "end", "other", "known", "is_table"),
    [
        (0x08, 23, "COMMIT", False, None, False),
        (0x08, 166, "COMMIT", False, None, False),
        (0x08, 24, "COMMIT", False, None, True),
        (0x0C, 23, "XID", True, False, False),
        (0x0C, 23, "XID", True, True, True),
        (0x0C, 23, "XID", True, None, False),
        (0x0C, 23, "XID", False, False, False),  # INSERT IGNORE of nothing
        (0x0C, 23, "XID", False, True, True),
        (0x0C, 23, "XID", False, None, True),
        (0x0C, 166, "XID", False, None, True),
        (0x28, 23, "XID", False, True, True),  # CREATE TABLE … SELECT
        (None, 30, "XID", False, False, True),  # MySQL has no sequences
    ],
)
def test_rows_of_a_sequence_are_reported_from_those_of_its_copy(
    flags, kind, end, other, known, is_table
):
    writer = EventWriter(mariadb=flags is not None)
    events = [*writer.opening()]
    if flags is None:
        events += [writer.gtid(1), writer.query("BEGIN")]
    else:
        events.append(writer.mariadb_gtid(1, flags=flags))
    columns = [(8, b"")] * 6 + [(1, b""), (8, b"")]
    events.append(
        writer.table_map(columns, table="s", table_id=7, optional=names(*SEQUENCE), nullable=0)
    )
    image = b"\0" + b"\1" * 57
    if kind == 166:
        plain = EventWriter(mariadb=True, checksum=False).rows(23, 8, [image], table_id=7)
        events.append(writer.squeezed(plain))
    else:
        events.append(writer.rows(kind, 8, [image] * (2 if kind == 24 else 1), table_id=7))
    if other:
        events += one_row(writer)
    events.append(writer.xid() if end == "XID" else writer.query(end))
    asked = []
    entries, _ = entries_of(events, is_table=lambda *name: asked.append(name) or known)
    assert asked == ([("shop", "s")] if end == "XID" and flags else [])
    tables = [e.table for e in entries if e.kind is EntryKind.ROWS]
    assert tables == ["orders"] * other + ["s"] * is_table
    offsets = [e.position.offset for e in entries]
    assert offsets == sorted(offsets)
    codec = BinlogRowCodec()
    assert all(codec.decode(e.payload, e.context) for e in entries if e.table == "s")
