import contextlib
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.event import has_checksums
from setl.codec.binlog.transactions.prepared import Xid
from setl.errors import FatalError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.model.session import StatementSession
from tests.unit.codec.binlog_events import (
    INT,
    SERVER,
    VARCHAR,
    EventWriter,
    entries_of,
    kinds,
    mysql_transaction,
    names,
    one_deleted,
    one_row,
    statement,
)


def test_a_mysql_transaction():
    writer = EventWriter()
    events = [*writer.opening(), *mysql_transaction(writer, 5, one_row)]
    entries, reader = entries_of(events)
    assert kinds(entries) == ["BEGIN", "ROWS", "COMMIT"]
    assert {entry.transaction for entry in entries} == {f"{SERVER}:5"}
    rows = entries[1]
    assert (rows.schema, rows.table, rows.rows) == ("shop", "orders", 1)
    assert rows.payload == events[-2]
    assert rows.context == (events[1], events[-3])
    assert rows.timestamp == 1_700_000_000
    assert entries[-1].position == BinlogPosition("binlog.000007", writer.offset)
    assert reader.position == entries[-1].position


def test_positions_lie_behind_each_event():
    writer = EventWriter()
    opening = writer.opening()
    ends = []
    for event in mysql_transaction(writer, 1, one_row):
        opening.append(event)
        ends.append(struct.unpack_from("<I", event, 13)[0])
    entries, _ = entries_of(opening)
    begin, rows, commit = (entry.position.offset for entry in entries)
    assert [begin, rows, commit] == [ends[1], ends[3], ends[4]]


def test_positions_are_added_up_where_events_do_not_say_where_they_end():
    """MariaDB from 11.7 on, without annotations, which are not asked for."""
    writer = EventWriter(mariadb=True, without_position=(160, 19, 23, 24, 25, 2))
    events = [*writer.opening(), writer.mariadb_gtid(8)]
    begin = writer.offset
    writer.event(160, b"INSERT INTO orders VALUES (1), (2)")
    rows = [*one_row(writer, kind=23), *one_row(writer, kind=23, value=2)]
    entries, reader = entries_of([*events, *rows, writer.xid()])
    assert kinds(entries) == ["BEGIN", "ROWS", "ROWS", "COMMIT"]
    sizes = [len(event) for event in rows]
    assert [entry.position.offset for entry in entries] == [
        begin, begin + sum(sizes[:2]), begin + sum(sizes), writer.offset,
    ]  # fmt: skip
    assert reader.position.offset == writer.offset


def test_a_mariadb_transaction_begins_with_its_gtid():
    writer = EventWriter(mariadb=True)
    events = [
        *writer.opening(),
        writer.mariadb_gtid(8, domain=1, server=101),
        writer.event(160, b"INSERT INTO orders VALUES (1)"),
        *one_row(writer, kind=23),
        writer.xid(),
        writer.mariadb_gtid(9, domain=1, server=101, flags=1),
        writer.query("CREATE TABLE t (id INT)"),
    ]
    entries, _ = entries_of(events, BinlogPosition("binlog.000007", 4, "1-101-7,2-5-3"))
    assert kinds(entries) == ["BEGIN", "ROWS", "COMMIT", "DDL"]
    assert [e.transaction for e in entries] == ["1-101-8"] * 3 + ["1-101-9"]
    assert [e.position.gtid for e in entries] == [
        "1-101-7,2-5-3",
        "1-101-7,2-5-3",
        "1-101-8,2-5-3",
        "1-101-9,2-5-3",
    ]


def test_mysql_gtids_are_followed_from_a_known_start():
    writer = EventWriter()
    other = "00000000-0000-0000-0000-000000000001"
    events = writer.opening()
    for number in (5, 7, 6):
        events += mysql_transaction(writer, number)
    events += [writer.gtid(1, other), writer.query("DROP TABLE t")]
    start = BinlogPosition("binlog.000007", 4, f"{SERVER.upper()}:1-4")
    entries, _ = entries_of(events, start)
    commits = [e.position.gtid for e in entries if e.kind in (EntryKind.COMMIT, EntryKind.DDL)]
    assert commits == [
        f"{SERVER}:1-5",
        f"{SERVER}:1-5:7",
        f"{SERVER}:1-7",
        f"{other}:1,{SERVER}:1-7",
    ]


def test_gtids_are_unknown_until_a_file_says_which_were_executed():
    writer = EventWriter(offset=500)
    first = mysql_transaction(writer, 9)
    events = [
        *EventWriter(offset=500).opening(),
        *first,
        writer.rotate("binlog.000008"),
        writer.rotate("binlog.000008", artificial=True),
        writer.format_description(created=5),
        writer.previous_gtids(**{SERVER: [(1, 10), (12, 13)]}),
        *mysql_transaction(writer, 10),
    ]
    entries, _ = entries_of(events, BinlogPosition("binlog.000007", 500))
    assert kinds(entries) == ["BEGIN", "COMMIT", "HEARTBEAT", "HEARTBEAT", "BEGIN", "COMMIT"]
    assert [e.position.gtid for e in entries] == [
        "",
        "",
        "",
        f"{SERVER}:1-9:12",
        f"{SERVER}:1-9:12",
        f"{SERVER}:1-10:12",
    ]


def test_gtid_lists_of_mariadb_replace_what_was_known():
    writer = EventWriter(mariadb=True)
    events = [
        *writer.opening(),
        writer.gtid_list((1, 101, 3), (1, 102, 4), (2, 5, 6)),
        writer.mariadb_gtid(5, domain=1, server=101),
        writer.query("COMMIT"),
        writer.gtid_list((9, 9, 9), artificial=True),
        writer.mariadb_gtid(6, domain=1, server=101),
        writer.query("COMMIT"),
    ]
    entries, _ = entries_of(events)
    assert entries[-1].position.gtid == "1-101-6,2-5-6"


def test_rotation_moves_the_position_to_the_new_file():
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.rotate("binlog.000008"),
        writer.rotate("binlog.000008", artificial=True),
        writer.format_description(created=9),
    ]
    entries, reader = entries_of(events)
    assert kinds(entries) == ["HEARTBEAT"]
    assert entries[0].position == BinlogPosition("binlog.000008", 4)
    assert reader.position.file == "binlog.000008"
    assert reader.position.offset == writer.offset


def test_the_end_of_a_binlog_is_reached_behind_events_without_a_transaction():
    """Nothing may follow for long, and who waits for the end waits for this position."""
    mysql = EventWriter()
    events = [*mysql.opening(), mysql.previous_gtids(**{SERVER: [(1, 10)]})]
    entries, _ = entries_of(events)
    assert kinds(entries) == ["HEARTBEAT"]
    assert entries[0].position == BinlogPosition("binlog.000007", mysql.offset, f"{SERVER}:1-9")

    mariadb = EventWriter(mariadb=True)
    ends, events = [], mariadb.opening()
    for event in (lambda: mariadb.gtid_list((1, 101, 3)), lambda: mariadb.event(161, b"\0" * 20)):
        events.append(event())
        ends.append(BinlogPosition("binlog.000007", mariadb.offset, "1-101-3"))
    entries, _ = entries_of(events)
    assert [entry.position for entry in entries] == ends
    assert kinds(entries) == ["HEARTBEAT"] * 2


def test_no_position_is_reported_between_a_gtid_and_its_transaction():
    writer = EventWriter(mariadb=True)
    opening, gtid = writer.opening(), writer.mariadb_gtid(8, domain=1, server=101)
    checkpoint = writer.event(161, b"\0" * 20)
    entries, _ = entries_of([*opening, gtid, checkpoint, writer.xid()])
    assert kinds(entries) == ["BEGIN", "COMMIT"]


def test_context_stays_one_object_over_statements_and_files():
    writer = EventWriter()
    events = [*writer.opening(), *mysql_transaction(writer, 1, one_row)]
    writer.seconds += 5
    events += mysql_transaction(writer, 2, one_deleted)
    events += [writer.rotate("binlog.000008"), writer.format_description(created=77)]
    events += mysql_transaction(writer, 3, one_row)
    entries, _ = entries_of(events)
    rows = [e for e in entries if e.kind is EntryKind.ROWS]
    assert len(rows) == 3
    assert len({id(e.context) for e in rows}) == 1


def test_a_changed_table_or_format_has_a_context_of_its_own():
    writer = EventWriter()
    events = [*writer.opening(), *mysql_transaction(writer, 1, one_row)]

    def changed(writer):
        return [
            writer.table_map([INT, INT], optional=names("id", "n")),
            writer.rows(30, 2, [b"\0" + b"\1" * 8]),
        ]

    events += mysql_transaction(writer, 2, changed)
    writer.checksum = False
    entries, reader = entries_of(events)
    rows = [e for e in entries if e.kind is EntryKind.ROWS]
    assert rows[0].context[0] is rows[1].context[0]
    assert rows[0].context[1] != rows[1].context[1]
    restarted = [writer.rotate("binlog.000008"), writer.format_description()]
    restarted += mysql_transaction(writer, 3, one_row)
    later = [e for event in restarted for e in reader.read(event, checksum=False)]
    assert has_checksums(rows[0].context[0])
    assert not has_checksums(later[2].context[0])


@pytest.mark.parametrize("checksum", [True, False])
def test_checksums_are_not_taken_for_text(checksum):
    writer = EventWriter(checksum=checksum)
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("ALTER TABLE t ADD c INT"),
        writer.rotate("binlog.000008"),
    ]
    entries, _ = entries_of(events, checksum=checksum)
    assert entries[0].statement == "ALTER TABLE t ADD c INT"
    assert entries[1].position.file == "binlog.000008"


@pytest.mark.parametrize(("flags", "front"), [(1, b""), (3, b"\xff" * 8)])
@pytest.mark.parametrize(
    ("extra", "kind"), [(0, "DDL"), (1, "DDL"), (2, "HEARTBEAT"), (4, "DDL"), (8, "HEARTBEAT")]
)
def test_an_alter_that_begins_or_fails_changes_nothing(flags, front, extra, kind):
    writer = EventWriter(mariadb=True)
    body = struct.pack("<QIB", 8, 1, flags) + front + bytes([extra]) + b"\0" * 8
    events = [*writer.opening(), writer.event(162, body), writer.query("ALTER TABLE t ADD n INT")]
    events += [writer.mariadb_gtid(9, domain=1, flags=1), writer.query("ALTER TABLE t ADD m INT")]
    entries, _ = entries_of(events, BinlogPosition("binlog.000007", 4, "1-1-7"))
    assert kinds(entries) == [kind, "DDL"]
    assert [e.position.gtid for e in entries] == ["1-1-8", "1-1-9"]


def test_ddl():
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("/* why */ ALTER TABLE orders ADD c INT"),
        writer.anonymous_gtid(),
        writer.query("RENAME TABLE other.a TO b"),
    ]
    first, second = entries_of(events)[0]
    assert (first.kind, first.schema, first.table) == (EntryKind.DDL, "shop", "orders")
    assert first.statement == "/* why */ ALTER TABLE orders ADD c INT"
    assert first.transaction == f"{SERVER}:1"
    assert (second.schema, second.table, second.transaction) == ("other", "a", "")
    assert second.session is not None
    assert second.session == StatementSession(
        "shop",
        0,
        foreign_keys=True,
        at=writer.seconds * 1_000_000,
        mariadb=False,
        unique_checks=True,
        collation=45,
        server_collation=8,
        thread=7,
    )
    assert second.default_schema == "shop"


def test_ddl_text_is_decoded_in_the_charset_of_its_session():
    writer = EventWriter()
    text = "CREATE TABLE `größe` (id INT)"
    events = [
        *writer.opening(),
        writer.query(text.encode("latin-1"), collation=8),
        writer.query(text),
        writer.query(text.encode("gbk", "ignore"), collation=28),
        writer.query(text.encode("latin-1"), collation=4242),
    ]
    entries, _ = entries_of(events)
    assert [e.table for e in entries] == ["größe", "größe", "gre", "gr\ufffd\ufffde"]


def test_create_select_is_ddl_inside_a_transaction():
    writer = EventWriter()
    events = [
        *writer.opening(),
        *mysql_transaction(
            writer, 4, statement("CREATE TABLE t (id INT) START TRANSACTION"), one_row
        ),
    ]
    entries, _ = entries_of(events, BinlogPosition("binlog.000007", 4, f"{SERVER}:1-3"))
    assert kinds(entries) == ["BEGIN", "DDL", "ROWS", "COMMIT"]
    before, inside = f"{SERVER}:1-3", ""  # reading on after the DDL is inside the transaction
    assert [e.position.gtid for e in entries] == [before, inside, before, f"{SERVER}:1-4"]


def test_positions_say_which_file_they_are_of():
    writer = EventWriter()
    known = BinlogOrigin("201")
    events = [
        *writer.opening(),
        *mysql_transaction(writer, 4, one_row),
        writer.rotate("binlog.000008"),
        writer.rotate("binlog.000008", artificial=True),
        writer.format_description(created=9),
        *mysql_transaction(writer, 5, one_row),
    ]
    entries, reader = entries_of(events, BinlogPosition("binlog.000007", 4, origin=known))
    origins = [e.position.origin for e in entries]
    first = entries[0].position.origin
    assert first == BinlogOrigin("201", 1, 1_700_000_000)
    # Between two files, before the new one has said what it is, only the server is known.
    assert origins == [first] * 3 + [known] + [reader.position.origin] * 3


@pytest.mark.parametrize("other", [{"writer": 2}, {"created": 9}])
def test_a_file_that_is_another_than_was_meant_is_refused_before_any_entry(other):
    writer = EventWriter()
    events = [*writer.opening(), *mysql_transaction(writer, 4, one_row)]
    start = BinlogPosition("binlog.000007", 4, origin=BinlogOrigin("201"))
    origin = entries_of(events, start)[0][0].position.origin
    entries_of(events, replace(start, origin=origin))
    with pytest.raises(TransientError, match="is not the file of this name"):
        entries_of(events, replace(start, origin=origin._replace(**other)))


@pytest.mark.parametrize("text", ["GRANT ALL ON *.* TO a", "CREATE USER a", "FLUSH TABLES"])
def test_statements_that_change_no_table_only_move_the_position(text):
    writer = EventWriter()
    entries, _ = entries_of([*writer.opening(), writer.gtid(1), writer.query(text)])
    assert kinds(entries) == ["HEARTBEAT"]
    assert entries[0].position.offset == writer.offset


@pytest.mark.parametrize(
    ("tables", "passes"), [((), True), (("a",), True), (("a", "mapped"), False)]
)
@pytest.mark.parametrize("earlier", [False, True])
def test_a_prepared_transaction_without_rows_that_go_anywhere_may_be_rolled_back(
    tables, passes, earlier
):
    writer = EventWriter()
    events = [writer.gtid(1), writer.query("XA START X'61',X'',1")]
    for table in tables:
        events += one_row(writer, table=table)
    events += [writer.query("XA END X'61',X'',1"), writer.xa_prepare()]
    events += [writer.gtid(2), writer.query("BEGIN"), *one_row(writer, table="mapped")]
    events += [writer.xid(), writer.gtid(3)]
    asked = []

    def look_up(xid, position):
        asked.append((xid, position.offset))
        return not passes

    _, reader = entries_of(
        [*writer.opening(), *(() if earlier else events)],
        matters=lambda schema, table: (schema, table) == ("shop", "mapped"),
        earlier=look_up,
    )
    rollback = writer.query("XA ROLLBACK X'61',X'',1")
    if passes:
        (entry,) = reader.read(rollback, checksum=True)
        assert (entry.kind, entry.position) == (EntryKind.COMMIT, reader.boundary)
    else:
        with pytest.raises(FatalError, match="took back"):
            reader.read(rollback, checksum=True)
    assert asked == ([(Xid(1, b"a", b""), reader.position.offset)] if earlier else [])


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)",
        "/* c */ update t set a=1",
        "DELETE FROM t",
        "REPLACE INTO t SELECT 1",
    ],
)
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_statement_instead_of_rows_is_reported_however_its_transaction_ends(text, end):
    """A table without transactions keeps what it did."""
    writer = EventWriter()
    before = [*writer.opening(), writer.gtid(1), writer.query("BEGIN"), writer.query("SAVEPOINT a")]
    after = [writer.query("ROLLBACK TO a"), writer.query(end)]
    entries, _ = entries_of([*before, writer.query(text), *one_row(writer), *after])
    assert kinds(entries) == ["BEGIN", "STATEMENT", "COMMIT"]
    reported = entries[1]
    assert (reported.statement, reported.schema, reported.transaction) == (
        text,
        "shop",
        f"{SERVER}:1",
    )


def test_a_statement_by_itself_is_a_transaction():
    writer = EventWriter()
    entries, reader = entries_of([*writer.opening(), writer.gtid(1), writer.query("DELETE FROM t")])
    assert kinds(entries) == ["STATEMENT", "COMMIT"]
    assert entries[-1].position == reader.boundary


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (20, "Upgrade"),
        (26, "Load the tables again"),
        (172, "binlog_row_event_fragment_threshold"),
        (99, "too new"),
    ],
)
def test_events_that_cannot_be_replicated_stop_the_stream(kind, hint):
    writer = EventWriter()
    _, reader = entries_of(writer.opening())
    with pytest.raises(FatalError, match=hint) as caught:
        reader.read(writer.event(kind, b"\0" * 20), checksum=True)
    assert caught.value.where["position"].startswith("binlog.000007:")


@pytest.mark.parametrize("kind", [3, 5, 13, 14, 27, 28, 29, 36, 37, 41, 160, 164])
def test_events_without_changes_are_passed_over(kind):
    writer = EventWriter()
    entries, reader = entries_of([*writer.opening(), writer.event(kind, b"\0" * 20)])
    assert entries == []
    assert reader.position.offset == writer.offset


def test_unknown_events_that_may_be_ignored_are():
    writer = EventWriter()
    entries, _ = entries_of([*writer.opening(), writer.event(99, b"\0", flags=0x80)])
    assert entries == []


def test_rows_without_a_table_map_are_damage():
    writer = EventWriter()
    _, reader = entries_of(writer.opening())
    with pytest.raises(FatalError, match="damaged"):
        reader.read(writer.rows(30, 1, [b"\0\1\0\0\0"]), checksum=True)


def test_the_row_event_that_only_ends_a_statement_is_passed_over():
    writer = EventWriter()
    entries, _ = entries_of([*writer.opening(), writer.rows(30, 0, [], table_id=0xFFFFFF)])
    assert entries == []


def test_offsets_go_on_beyond_four_gibibytes():
    writer = EventWriter(offset=(1 << 32) - 10)
    events = [*writer.opening(), *mysql_transaction(writer, 1, one_row)]
    entries, _ = entries_of(events, BinlogPosition("binlog.000007", (1 << 32) - 10))
    assert entries[-1].position.offset == writer.offset > 1 << 32


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.booleans())
def test_rows_of_equal_size_are_counted_exactly(counts, update):
    writer = EventWriter()
    kind = 31 if update else 30
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    for count in counts:
        images = [b"\0" + struct.pack("<i", 1) + struct.pack("<H", 5) + b"abcde"] * count
        events.append(writer.table_map([INT, VARCHAR], optional=names("a", "b")))
        events.append(writer.rows(kind, 2, images * (2 if update else 1)))
    entries, _ = entries_of([*events, writer.xid()])
    assert [e.rows for e in entries if e.kind is EntryKind.ROWS] == counts


@given(at=st.integers(0, 300), bit=st.integers(0, 7), cut=st.integers(0, 30))
def test_damage_gives_a_fatal_error_or_entries(at, bit, cut):
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.previous_gtids(**{SERVER: [(1, 3)]}),
        *mysql_transaction(writer, 1, one_row, statement("ALTER TABLE t ADD é INT")),
        writer.rotate("binlog.000008"),
    ]
    for damaged in range(len(events)):
        event = bytearray(events[damaged])
        event[at % len(event)] ^= 1 << bit
        stream = [*events[:damaged], bytes(event[: len(event) - cut]), *events[damaged + 1 :]]
        with contextlib.suppress(FatalError):
            entries_of(stream)


@pytest.mark.parametrize("text", [
    b"SELECT `d`.`f`(1)",
    b"--\n-- Dump\n--\n\nINSERT INTO t VALUES (1)",
    b"/*" + b"x" * 5000 + b"*/ INSERT INTO t VALUES (1)",
    b"ANALYZE INSERT INTO t VALUES (1)",
    b"CREATE TABLE c AS SELECT 1 a",
])  # fmt: skip
@pytest.mark.parametrize("inside", [False, True])
def test_a_statement_that_may_change_rows_is_reported(text, inside):
    writer = EventWriter()
    begin, end = ([writer.query("BEGIN")], [writer.xid()]) if inside else ([], [])
    entries, _ = entries_of([*writer.opening(), *begin, writer.query(text), *end])
    assert [entry.statement for entry in entries if entry.statement] == [text.decode()]


def test_a_statement_that_is_not_known_stops_the_stream():
    writer = EventWriter()
    with pytest.raises(FatalError, match="logged a statement"):
        entries_of([*writer.opening(), writer.query("MERGE INTO t USING u")])
