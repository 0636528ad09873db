"""Lengths, counts and offsets of binlog events that cannot be: each gives a typed error."""

import struct

import pytest

from setl.codec.binlog.event import body_of, extra_data_end, packed_integer
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import names_of, parse_table_map
from setl.codec.binlog.transactions.gtid import MysqlGtids
from setl.codec.binlog.values.json_diff import applied
from setl.errors import DataError, FatalError
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_events import (
    INT,
    SERVER,
    VARCHAR,
    EventWriter,
    entries_of,
    field,
    kinds,
    labels,
    mysql_transaction,
    names,
    one_row,
    packed,
)

ONE = b"\0" + struct.pack("<i", 1)
ENUM, SET = (254, b"\xf7\1"), (254, b"\xf8\1")


def transaction(writer, *events):
    """Events that were made already, as a stream."""
    return [*writer.opening(), writer.gtid(1), writer.query("BEGIN"), *events, writer.xid()]


def described(columns, optional, *, mariadb=False):
    """The schema that the task reads from a TABLE_MAP event, which the driver has let pass."""
    writer = EventWriter(mariadb=mariadb)
    table = writer.table_map(columns, optional=optional)
    entries_of([*writer.opening(), table])
    return BinlogRowCodec().schema(b"", (writer.format_description(), table))


def decode(event_of, *, columns=(INT, INT), mariadb=False, keys_alone=False):
    """The rows of an event that is made by a writer, under a table with the key c0."""
    writer = EventWriter(mariadb=mariadb)
    optional = names(*[f"c{n}" for n in range(len(columns))]) + field(8, b"\0")
    table = writer.table_map(columns, optional=optional)
    entries, _ = entries_of(transaction(writer, table, event_of(writer)))
    (entry,) = [entry for entry in entries if entry.kind is EntryKind.ROWS]
    return BinlogRowCodec().decode(entry.payload, entry.context, keys_alone=keys_alone)


# ---- numbers and texts with their length in front


@pytest.mark.parametrize("number", [0, 250, 251, 1 << 16, 1 << 24, (1 << 64) - 1])
def test_a_length_encoded_integer(number):
    data = b"ab" + packed(number)
    assert packed_integer(data + b"more", 2) == packed_integer(data, 2) == (number, len(data))
    for end in range(2, len(data)):
        with pytest.raises(IndexError):
            packed_integer(data[:end], 2)


@pytest.mark.parametrize("first", [251, 255])
def test_bytes_that_begin_no_length_encoded_integer(first):
    with pytest.raises(LookupError):
        packed_integer(bytes([first]) + b"\0" * 8, 0)


@pytest.mark.parametrize("size", [2, 5])
def test_extra_data_may_end_with_the_event_and_not_behind_it(size):
    event = b"\0" * 19 + struct.pack("<H", size) + b"\0" * (size - 2)
    assert extra_data_end(event, 19) == len(event)
    with pytest.raises(ValueError, match=f"extra data has {size} bytes"):
        extra_data_end(event[:-1], 19)


@pytest.mark.parametrize("checksum", [False, True])
def test_the_names_of_a_table_map_are_read_without_its_columns(checksum):
    writer = EventWriter(checksum=checksum)
    event = writer.table_map([(244, b"")], schema="läden", table="t")
    table = parse_table_map(body_of(event, checksum=checksum))
    assert names_of(event) == (table.schema, table.table) == ("läden", "t")
    for end in range(19, 19 + 8 + 10):
        with pytest.raises((LookupError, ValueError)):
            names_of(event[:end])


# ---- rows


@pytest.mark.parametrize("mariadb", [False, True])
@pytest.mark.parametrize("kind", [23, 24, 25, 30, 31, 32, 39])
@pytest.mark.parametrize("behind", [b"", b"\0\0\0"])
@pytest.mark.parametrize("keys_alone", [False, True])
def test_a_change_without_any_column_is_refused(kind, mariadb, behind, keys_alone):
    """As INSERT … () VALUES () with MINIMAL is logged: its image takes no byte."""
    with pytest.raises(DataError, match="names no column of its row"):
        decode(
            lambda w: w.rows(kind, 2, [behind], present=b"\0"),
            mariadb=mariadb,
            keys_alone=keys_alone,
        )


@pytest.mark.parametrize("count", [0, 1, 3, 4096, 1 << 36, 1 << 63])
def test_a_count_of_columns_that_is_not_the_table_s(count):
    def rows(writer):
        number = packed(count) if count < 1 << 24 else b"\xfe" + struct.pack("<Q", count)
        body = struct.pack("<IHHH", 9, 0, 1, 2) + number + b"\3" + ONE
        return writer.event(30, body)

    with pytest.raises(DataError, match=f"{count} columns where the table has 2"):
        decode(rows)


@pytest.mark.parametrize("size", [0, 1, 200, 65535])
def test_extra_data_of_an_impossible_size(size):
    def rows(writer):
        body = struct.pack("<IHHH", 9, 0, 1, size) + b"\2\3" + ONE + struct.pack("<i", 1)
        return writer.event(30, body)

    with pytest.raises(DataError, match=f"extra data has {size} bytes"):
        decode(rows)


def test_an_event_without_rows_is_damaged():
    with pytest.raises(DataError, match="holds no rows"):
        decode(lambda w: w.rows(30, 2, []))


def test_an_event_that_ends_in_front_of_its_table_s_id_is_not_joined_to_others():
    writer = EventWriter(checksum=False)
    events = transaction(writer, *one_row(writer))
    events[-2] = writer.event(30, b"\x09\0\0")
    with pytest.raises(FatalError, match="no TABLE_MAP event came before it"):
        entries_of(events, checksum=False, chunk_events=1000)


def test_options_of_a_partial_update_that_are_not_known():
    with pytest.raises(DataError, match=r"options that are not known \(6\)"):
        decode(lambda w: w.rows(39, 2, [ONE + ONE[1:] + b"\6" + ONE + ONE[1:]]))


JSON_ARRAY = b"\2\0\0\4\0"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (b"$[99999999999999999999]", '["x"]'),  # behind the end is at the end
        (b"$" + b"[0]" * 5000, "not a path"),
    ],
)
def test_a_path_in_a_json_value_of_any_length(path, said):
    changes = b"\1" + packed(len(path)) + path + packed(3) + b"\x0c\1x"
    try:
        assert applied(JSON_ARRAY, changes) == said
    except ValueError as error:
        assert said in str(error)  # noqa: PT017


# ---- tables


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        *[
            (kind, bytes([size]))
            for kind in (140, 242, 245, 249, 250, 251, 252, 255)
            for size in (0, 5, 8, 255)
        ],
        *[(kind, bytes([digits])) for kind in (17, 18, 19) for digits in (7, 8, 255)],
        (4, b"\x08"),
        (5, b"\x04"),
        (16, b"\0\0"),
        (16, b"\1\x08"),
        (246, b"\0\0"),
        (246, b"\x42\0"),
        (246, b"\x0a\x0b"),
        (246, b"\x41\x27"),
        (254, b"\xf7\0"),
        (254, b"\xf7\3"),
        (254, b"\xf8\0"),
        (254, b"\xf8\5"),
        (254, b"\xf8\x09"),
        (254, b"\xce\xff"),  # a CHAR of 1,023 bytes
        (254, b"\4\0"),  # a string that is no string
        (254, b"\xff\2"),
    ],
)  # fmt: skip
def test_metadata_of_a_column_that_cannot_be(kind, metadata):
    writer = EventWriter()
    table = writer.table_map([INT, (kind, metadata)], optional=names("id", "c"))
    with pytest.raises(FatalError, match=f"column 2, of type .* {metadata.hex()} as") as caught:
        entries_of([*writer.opening(), table])
    assert caught.value.where["position"].startswith("binlog.000007:")


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:8] + b"\x05" + body[9:],  # the schema's name is longer
        lambda body: body[:8] + b"\xfe" + b"\xff" * 8 + body[9:],
        lambda body: body[:22] + b"\0" + body[23:],  # no columns
        lambda body: body[:22] + b"\3" + body[23:],  # one more
        lambda body: body[:22] + b"\xfe" + b"\xff" * 8 + body[23:],
        lambda body: body[:25] + b"\1" + body[26:],  # metadata
        lambda body: body[:25] + b"\3" + body[26:],
        lambda body: body[:28],  # no bits that say which may be NULL
        lambda body: body[:8],
        lambda body: b"",
    ],
)
def test_a_table_map_whose_lengths_lie_beyond_it(change):
    writer = EventWriter(checksum=False)
    table = writer.table_map([INT, VARCHAR])
    assert table[19 + 22] == 2
    with pytest.raises(FatalError, match="event of type 19 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.event(19, change(table[19:]))], checksum=False)


@pytest.mark.parametrize(
    ("optional", "said"),
    [
        (b"\x0c", "index out of range"),  # of a field of another kind
        (b"\x0c\x09\x2d", "metadata ends too early"),
        (names("id", "v"), "2 names for 3 columns"),
        (names("id", "v", "id"), "two of its columns have one name"),
        (field(1, b""), "0 bytes say which of 1 numbers"),
        (field(1, b"\0\0"), "2 bytes say which of 1 numbers"),
        (field(8, b"\x03"), r"its key has the columns \[3\] of 3"),
        (field(8, b"\x40"), r"its key has the columns \[64\] of 3"),
        (field(8, b"\1\1"), "its key has the columns"),
        (field(9, b"\x40\0"), "its key has the columns"),
        (field(9, b"\0"), "zip"),
        (field(2, b"\x2d\x07\x2d"), "a column that is not there has a collation"),
        (field(3, b"\x2d\x2d"), "zip"),
        (field(6, b"\2\1a\1b\1\1c"), "labels are left over"),
        (field(6, b"\2\1a"), "index out of range"),
        (field(6, b"\2\1a\x07b"), "metadata ends too early"),
        (labels(6, [str(n) for n in range(256)]), "256 labels in 1 bytes"),
        (field(6, b"\xfe" + b"\xff" * 8), "labels in 1 bytes"),
        (field(5, b"\xfe" + b"\xff" * 8), "labels in 1 bytes"),
    ],
)
def test_optional_metadata_that_contradicts_itself(optional, said):
    columns = [INT, VARCHAR, SET if optional[:1] == b"\5" else ENUM]
    default = {4: names("id", "v", "c"), 2: field(2, b"\x2d"), 10: field(10, b"\x2d")}
    default |= {8: field(8, b"\0"), 6: labels(6, ["a", "b"])}
    instead = {3: 2, 9: 8}.get(optional[0], optional[0])
    default = b"".join(data for kind, data in default.items() if kind != instead)
    with pytest.raises(DataError, match=f"description of a table cannot be read: .*{said}"):
        described(columns, default + optional)


@pytest.mark.parametrize("kind", [20, 100, 244])
def test_a_type_that_is_not_known_stops_only_who_reads_the_table(kind):
    """Behind it, nobody knows where the metadata of other columns begins."""
    columns = [INT, (kind, b"\7"), VARCHAR]
    with pytest.raises(DataError, match=rf"column b has a type that is not known \({kind}\)"):
        described(columns, names("a", "b", "c"))


# ---- statements


def query(change, *, checksum=True):
    writer = EventWriter()
    body = bytearray(writer.query("BEGIN")[19:-4])
    change(body)
    return [*writer.opening(), writer.gtid(1), writer.event(2, bytes(body))]


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.__setitem__(slice(11, 13), b"\xff\xff"),  # bytes of status variables
        lambda body: body.__setitem__(8, 255),  # bytes of the schema's name
        lambda body: body.__setitem__(8, 3),
        lambda body: body.__delitem__(slice(20, None)),
        lambda body: body.__delitem__(slice(0, None)),
    ],
)
def test_a_query_whose_lengths_lie_beyond_it(change):
    with pytest.raises(FatalError, match="event of type 2 in the binlog is damaged"):
        entries_of(query(change))


@pytest.mark.parametrize(
    "variables",
    [
        b"\0\1",
        b"\4\x2d\0",
        b"\5\x20+0",
        b"\6\x40std",
        b"\x0b\4u",
        b"\x0c\2ab",
        b"\x83\x20\0\0",
        b"\1",
    ],
)
def test_a_variable_of_a_session_that_ends_behind_the_others(variables):
    writer = EventWriter()
    body = struct.pack("<IIBHH", 7, 0, 4, 0, len(variables)) + variables + b"shop\0"
    event = writer.event(2, body + b"ALTER TABLE t ADD c INT")
    with pytest.raises(FatalError, match="event of type 2 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.gtid(1), event])


@pytest.mark.parametrize("kind", [9, 11, 17])
def test_a_file_in_front_of_the_statement_that_loads_it_says_nothing(kind):
    writer = EventWriter()
    file = writer.event(kind, b"\1\0\0\0one\n")
    entries, _ = entries_of([*writer.opening(), writer.gtid(1), writer.query("BEGIN"), file])
    assert entries == []


def test_load_data_is_a_statement():
    writer = EventWriter()
    text = b"LOAD DATA INFILE 'x' INTO TABLE t"
    body = struct.pack("<IIBHH", 7, 0, 4, 0, 0) + b"\1\0\0\0" + bytes(9) + b"shop\0" + text
    events = [writer.gtid(1), writer.query("BEGIN"), writer.event(18, body), writer.xid()]
    entries, _ = entries_of([*writer.opening(), *events])
    assert [entry.kind.name for entry in entries] == ["BEGIN", "STATEMENT", "COMMIT"]
    assert (entries[1].schema, entries[1].statement) == ("shop", text.decode())


@pytest.mark.parametrize("kind", [1, 6, 7, 8, 10, 12])
def test_events_of_mysql_4_are_refused(kind):
    writer = EventWriter()
    with pytest.raises(FatalError, match=r"in the format of MySQL 4.*Upgrade the source"):
        entries_of([*writer.opening(), writer.event(kind, b"\1\0\0\0")])


# ---- transactions that are compressed as a whole


def squeezed(*events, fields=None, compression=255):
    """A stream with a payload of events; `fields` stand in front of it if they are given."""
    writer = EventWriter()
    payload = writer.payload(events, compression=compression)
    if fields is not None:
        at = payload.index(b"\0", 19, len(payload)) if fields else 0
        stored = b"".join(events)
        payload = writer.event(40, fields + b"\0" + stored) if at else payload
    return [*writer.opening(), writer.gtid(1), payload]


def whole():
    writer = EventWriter(checksum=False)
    return [writer.query("BEGIN"), *one_row(writer), writer.xid()]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (field(2, packed(255)) + field(1, b"\0"), "bytes and not 0"),
        (field(2, packed(255)) + field(1, packed(10)), "bytes and not 10"),
        (field(2, packed(255)) + field(1, packed(1 << 20)), "bytes and not 1048576"),
        (field(2, packed(255)), "damaged: 1"),  # no size at all
        (b"\2\x20", "damaged"),
    ],
)
def test_a_payload_of_another_size(fields, said):
    with pytest.raises(FatalError, match=said):
        entries_of(squeezed(*whole(), fields=fields))


@pytest.mark.parametrize("more", [-1, 1, -100, 1 << 40])
@pytest.mark.parametrize("compression", [0, 255])
def test_a_payload_that_becomes_more_or_less_than_it_says(more, compression):
    writer, events = EventWriter(), whole()
    size = sum(map(len, events))
    payload = writer.payload(events, compression=compression)
    stored = (
        payload[-4 - size : -4]
        if compression == 255
        else payload[payload.index(b"\x28\xb5\x2f\xfd") : -4]
    )
    said = b"\xfe" + struct.pack("<Q", size + more)
    front = field(2, packed(compression)) + field(3, said) + field(1, packed(len(stored)))
    stream = [*writer.opening(), writer.gtid(1), writer.event(40, front + b"\0" + stored)]
    with pytest.raises(FatalError, match=r"came out of it|an event of .* bytes is in it"):
        entries_of(stream)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (lambda w: [], "does not end in it"),
        (lambda w: [w.query("BEGIN"), *one_row(w)], "does not end in it"),
        (lambda w: [*one_row(w), w.xid()], "stands outside of its transaction"),
        (lambda w: [w.xid()], "stands outside of its transaction"),
        (lambda w: [w.query("COMMIT")], "does not end in it"),
        (lambda w: [w.query("DROP TABLE t"), w.xid()], "stands outside of its transaction"),
        (lambda w: [*whole(), *one_row(w)], "stands outside of its transaction"),
        (lambda w: [*whole(), *whole()], "stands outside of its transaction"),
    ],
)
@pytest.mark.parametrize("compression", [0, 255])
def test_a_payload_that_is_not_one_transaction(events, said, compression):
    inner = events(EventWriter(checksum=False))
    with pytest.raises(FatalError, match=said):
        entries_of(squeezed(*inner, compression=compression))


# ---- MariaDB's compressed events


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_compressed_statement_that_ends_too_early(cut):
    writer, plain = EventWriter(mariadb=True), EventWriter(mariadb=True, checksum=False)
    event = writer.squeezed(plain.query("ALTER TABLE t ADD c INT"))
    shorter = writer.event(165, event[19 : -4 - cut])
    with pytest.raises(FatalError, match="event of type 165 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.mariadb_gtid(1, flags=1), shorter])


def test_a_compressed_event_with_something_behind_what_is_compressed():
    writer, plain = EventWriter(mariadb=True), EventWriter(mariadb=True, checksum=False)
    event = writer.squeezed(plain.query("ALTER TABLE t ADD c INT"))
    longer = writer.event(165, event[19:-4] + b"more")
    with pytest.raises(FatalError, match="event of type 165 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.mariadb_gtid(1, flags=1), longer])


# ---- files and GTIDs


def test_a_layout_is_what_both_families_say():
    for mariadb in (False, True):
        writer = EventWriter(mariadb=mariadb)
        assert kinds(entries_of(writer.opening())[0]) == []


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (0, 3, "its format is 3"),
        (56, 27, "headers have 27 bytes and not 19"),
        (56 + 2, 11, "events of type 2 have 11 bytes in front and not 13"),
        (56 + 19, 6, "events of type 19 have 6 bytes in front"),
        (56 + 19, 0, "events of type 19 have 0 bytes in front"),
        (56 + 23, 10, "events of type 23 have 10 bytes in front"),
        (56 + 30, 8, "events of type 30 have 8 bytes in front"),
        (56 + 33, 25, "events of type 33 have 25 bytes in front"),
        (56 + 15, 80, "23 types of events are listed"),
        (57 + 41, 2, "checksums are of the kind 2"),
    ],
)
def test_another_layout_of_events_is_refused(at, value, said):
    writer = EventWriter()
    rotation, description = writer.opening()
    changed = description[: 19 + at] + bytes([value]) + description[19 + at + 1 :]
    with pytest.raises(FatalError, match=f"laid out in a way that is not known: {said}"):
        entries_of([rotation, changed])


def test_a_format_without_checksums_at_its_end_is_refused():
    """Of MySQL 5.0, which has 18 types of events; a damaged relay log of its tests has one."""
    writer = EventWriter(checksum=False)
    fronts = bytes.fromhex("380d0008001200040404041200004b00041a")
    body = struct.pack("<H50sIB", 4, b"5.0.46-enterprise-gpl-log", 0, 19) + fronts
    with pytest.raises(FatalError, match=r"18 types of events are listed in 94 bytes.*MySQL from"):
        entries_of([writer.event(15, body)], checksum=False)


def test_mysql_9_names_no_size_of_events_that_it_does_not_write():
    writer = EventWriter()
    rotation, description = writer.opening()
    at = 19 + 56 + 23
    changed = description[:at] + b"\0\0\0" + description[at + 3 :]
    assert entries_of([rotation, changed])[0] == []


def test_the_name_of_a_binlog_file_may_be_any_text():
    writer = EventWriter(file="журнал.000007")
    events = [*writer.opening(), *mysql_transaction(writer, 1, one_row)]
    entries, reader = entries_of([*events, writer.rotate("журнал.000008")])
    assert entries[-1].position.file == reader.position.file == "журнал.000008"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\4\0\0\0",
        struct.pack("<Q", 4),
        struct.pack("<Q", 1 << 63) + b"a.000001",
        struct.pack("<Q", 4) + b"\xff.1",
        struct.pack("<Q", 4) + b"binlog",
        struct.pack("<Q", 4) + b"bin\0log.000001",
    ],
)
def test_a_rotation_to_nowhere(body):
    writer = EventWriter()
    with pytest.raises(FatalError, match="event of type 4 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.event(4, body)])


@pytest.mark.parametrize("number", [0, -1, -(1 << 63)])
def test_a_gtid_without_a_number(number):
    writer = EventWriter()
    with pytest.raises(FatalError, match="event of type 33 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.gtid(number)])


@pytest.mark.parametrize("tag", ["", "UPPER", "a" * 33, "1st"])
def test_a_tag_that_is_none(tag):
    writer = EventWriter()
    events = [*writer.opening(), writer.tagged_gtid(5, tag)]
    if not tag:
        assert entries_of(events)[1].position.gtid == ""
        return
    with pytest.raises(FatalError, match="event of type 42 in the binlog is damaged: a tag"):
        entries_of(events)


@pytest.mark.parametrize(
    "body",
    [
        EventWriter.previous_gtids_body({SERVER: [(1, 6)]}) + b"\0",
        EventWriter.previous_gtids_body({SERVER: [(1, 6)]})[:-1],
        EventWriter.previous_gtids_body({SERVER: [(6, 6)]}),
        EventWriter.previous_gtids_body({SERVER: [(0, 6)]}),
        EventWriter.previous_gtids_body({SERVER: [(3, 6), (1, 2)]}),
        EventWriter.previous_gtids_body({SERVER: [(1, 3), (3, 6)]}),
        EventWriter.previous_gtids_body({SERVER: [(1, 2)], SERVER.upper(): [(3, 4)]}),
        struct.pack("<Q", 1 << 40),
        b"",
    ],
)
def test_previous_gtids_that_contradict_themselves(body):
    writer = EventWriter()
    with pytest.raises(FatalError, match="event of type 35 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.event(35, body)])


def test_gtids_with_very_many_holes_take_no_time():
    pairs = [(2 * n + 1, 2 * n + 2) for n in range(20_000)]
    gtids = MysqlGtids.from_previous_event(EventWriter.previous_gtids_body({SERVER: pairs}))
    assert str(gtids).endswith(":39997:39999")


@pytest.mark.parametrize("count", [1, 0x0FFF_FFFF])
def test_a_list_of_gtids_that_ends_too_early(count):
    writer = EventWriter(mariadb=True)
    with pytest.raises(FatalError, match="event of type 163 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.event(163, struct.pack("<I", count))])


def test_an_xa_transaction_whose_id_lies_beyond_its_event():
    writer = EventWriter()
    event = writer.event(38, b"\0" + struct.pack("<III", 1, 1 << 31, 0) + b"a")
    with pytest.raises(FatalError, match="event of type 38 in the binlog is damaged"):
        entries_of([*writer.opening(), writer.gtid(1), writer.query("BEGIN"), event])
