import contextlib
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.author import NOBODY, Author, author_of
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.query import parse_session
from setl.codec.sql.statement import tables_of
from setl.errors import FatalError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.model.session import StatementSession
from tests.unit.codec.binlog_events import START, EventWriter, entries_of, names

SERVER = "9d437549-9a4c-11ea-9659-9efc635af2ae"
INT = (3, b"")
VARCHAR = (15, struct.pack("<H", 300))


def mysql_transaction(writer, number, *steps):
    """Steps make events, so that these are written in order."""
    events = [writer.gtid(number), writer.query("BEGIN")]
    for step in steps:
        events += step(writer)
    return [*events, writer.xid()]


def one_row(writer, kind=30, value=1):
    image = b"\0" + struct.pack("<i", value)
    return [
        writer.table_map([INT], optional=names("id")),
        writer.rows(kind, 1, [image, image] if kind in (24, 31) else [image]),
    ]


def one_deleted(writer):
    return one_row(writer, kind=32)


def statement(text):
    return lambda writer: [writer.query(text)]


def kinds(entries):
    return [entry.kind.name for entry in entries]


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
    writer = EventWriter(mariadb=True, placeless=(160, 19, 23, 24, 25, 2))
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
    assert kinds(entries) == ["BEGIN", "COMMIT", "HEARTBEAT", "BEGIN", "COMMIT"]
    assert [e.position.gtid for e in entries] == [
        "",
        "",
        "",
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
    assert later[2].context[0] == restarted[1]


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
    ("extra", "kind"),
    [(0, "DDL"), (1, "DDL"), (2, "HEARTBEAT"), (4, "DDL"), (8, "HEARTBEAT")],
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


@pytest.mark.parametrize(
    "text",
    ["GRANT ALL ON *.* TO a", "CREATE USER a", "FLUSH TABLES", "DROP TEMPORARY TABLE IF EXISTS t"],
)
def test_statements_that_change_no_table_only_move_the_position(text):
    writer = EventWriter()
    entries, _ = entries_of([*writer.opening(), writer.gtid(1), writer.query(text)])
    assert kinds(entries) == ["HEARTBEAT"]
    assert entries[0].position.offset == writer.offset


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
    assert kinds(entries) == ["BEGIN", "COMMIT", "BEGIN", "ROWS", "COMMIT"]
    assert entries[1].transaction == f"{SERVER}:1"
    assert entries[3].transaction == f"{SERVER}:2"


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


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)",
        "/* c */ update t set a=1",
        "DELETE FROM t",
        "REPLACE INTO t SELECT 1",
    ],
)
def test_statement_format_is_refused_with_the_setting_to_change(text):
    writer = EventWriter()
    _, reader = entries_of([*writer.opening(), writer.gtid(1), writer.query("BEGIN")])
    with pytest.raises(FatalError, match="binlog_format='ROW'"):
        reader.read(writer.query(text), checksum=True)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (18, "binlog_format"),
        (20, "Upgrade"),
        (26, "Load the tables again"),
        (99, "too new"),
    ],
)
def test_events_that_cannot_be_replicated_stop_the_stream(kind, hint):
    writer = EventWriter()
    _, reader = entries_of(writer.opening())
    with pytest.raises(FatalError, match=hint) as caught:
        reader.read(writer.event(kind, b"\0" * 20), checksum=True)
    assert caught.value.where["position"].startswith("binlog.000007:")


@pytest.mark.parametrize("kind", [3, 5, 13, 14, 27, 28, 29, 36, 37, 41, 160, 161, 164])
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


def test_a_begin_tells_who_wrote_its_transaction():
    writer = EventWriter()
    (begin, *_), _ = entries_of([*writer.opening(), *mysql_transaction(writer, 5, one_row)])
    assert author_of(begin.payload) == Author(server_id=1, thread_id=7)


def test_mariadb_does_not_tell_the_connection():
    writer = EventWriter(mariadb=True)
    events = [*writer.opening(), writer.mariadb_gtid(5, server=3), *one_row(writer), writer.xid()]
    (begin, *_), _ = entries_of(events)
    assert author_of(begin.payload) == Author(server_id=3)


def test_what_does_not_begin_a_transaction_has_no_author():
    assert author_of(b"") == NOBODY


def query_event(status, text=b"TRUNCATE t", *, flags=0, error=0, writer=None):
    body = struct.pack("<IIBHH", 7, 0, 4, error, len(status)) + status + b"shop\0" + text
    return (writer or EventWriter(checksum=False)).event(2, body, flags=flags)


# As MySQL 9.7 and MariaDB 10.11 write them, in one order each.
STATUS = (
    b"\0" + struct.pack("<I", 1 << 26 | 1 << 27) + b"\1" + struct.pack("<Q", 1 << 20 | 4)
    + b"\6\3std" + b"\3" + b"\3\0\2\0" + b"\4" + struct.pack("<HHH", 45, 47, 8) + b"\5\6+02:00"
    + b"\7\4\0" + b"\x0b\1u\2h1"
)  # fmt: skip
MYSQL_STATUS = STATUS + b"\x0c\2a\0bc\0" + b"\x0d\x57\x3c\4" + b"\x10\1" + b"\x11" + b"\1" * 8
MYSQL_STATUS += b"\x12\x2d\0" + b"\x13\0" + b"\x14\0"


def test_the_session_of_a_statement():
    session = parse_session(query_event(MYSQL_STATUS), mariadb=False)
    assert session == StatementSession(
        "shop",
        1 << 20 | 4,
        foreign_keys=False,
        time_zone="+02:00",
        at=1_700_000_000_277_591,
        mariadb=False,
        unique_checks=False,
        explicit_timestamps=True,
        increment=3,
        offset=2,
        collation=47,
        utf8mb4=45,
        month_names=4,
    )
    assert session.has_mode("NO_BACKSLASH_ESCAPES")
    assert session.has_mode("ANSI_QUOTES")
    assert not session.has_mode("NO_ZERO_DATE")


def test_the_session_of_a_statement_of_mariadb():
    status = STATUS + b"\x80\x58\x1c\x0c" + b"\x81" + b"\1" * 8 + b"\x82\4" + b"\1" * 8
    status += b"\x83\1" + struct.pack("<HH", 45, 46)
    session = parse_session(query_event(status, flags=4, error=1005), mariadb=True)
    assert (session.at, session.collations) == (1_700_000_000_793_688, ((45, 46),))
    assert (session.mariadb, session.explicit_timestamps) == (True, False)
    assert (session.error, session.temporary) == (1005, True)
    assert parse_session(query_event(b"\0" + struct.pack("<I", 1 << 24)), mariadb=True)[7]


def test_a_variable_that_is_not_known_ends_the_list():
    session = parse_session(query_event(STATUS + b"\xf0\1\2\3"), mariadb=False)
    assert (session.time_zone, session.increment) == ("+02:00", 3)


@pytest.mark.parametrize("text", [
    b"SELECT `d`.`f`(1)",
    b"--\n-- Dump\n--\n\nINSERT INTO t VALUES (1)",
    b"/*" + b"x" * 5000 + b"*/ INSERT INTO t VALUES (1)",
    b"ANALYZE INSERT INTO t VALUES (1)",
    b"CREATE TABLE c AS SELECT 1 a",
    b"MERGE INTO t USING u",
])  # fmt: skip
@pytest.mark.parametrize("inside", [False, True])
def test_a_statement_that_may_change_rows_stops_the_stream(text, inside):
    writer = EventWriter()
    begin = [writer.query("BEGIN")] if inside else []
    with pytest.raises(FatalError, match="logged a statement"):
        entries_of([*writer.opening(), *begin, writer.query(text)])


@pytest.mark.parametrize(
    "text", [b"TRUNCATE t", b"ALTER TABLE t ADD a INT", b"CREATE INDEX i ON t(a)"]
)
def test_ddl_of_a_temporary_table_is_not_taken_for_a_lasting_ones(text):
    writer = EventWriter()
    opening = writer.opening()
    with pytest.raises(FatalError, match="temporary"):
        entries_of([*opening, query_event(STATUS, text, flags=4, writer=writer)])
    # Servers flag DROP and CREATE OR REPLACE, too, which say what they mean.
    entry = entries_of([*opening, query_event(STATUS, b"DROP TABLE `t`", flags=4, writer=writer)])[
        0
    ][-1]
    assert entry.kind is EntryKind.DDL


def test_names_are_read_as_the_session_quotes():
    writer = EventWriter()
    status = b"\1" + struct.pack("<Q", 1 << 20)  # NO_BACKSLASH_ESCAPES
    text = b"ALTER TABLE a COMMENT = 'C:\\', RENAME TO b"
    entry = entries_of([*writer.opening(), query_event(status, text, writer=writer)])[0][-1]
    assert tables_of(entry) == (("shop", "a"), ("shop", "b"))
