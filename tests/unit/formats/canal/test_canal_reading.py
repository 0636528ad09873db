"""Rows of Canal's flat messages, of all types and forms."""

import json

import pytest

from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.canal.reading.rows import CanalRowCodec
from setl.codec.keyed_record import keyed
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, Op
from setl.model.entry import EntryKind
from setl.model.schema import Kind
from tests.unit.formats.canal.records import canal


def decode(message, zone=""):
    return CanalRowCodec(zone).decode(keyed(None, message), ())


def value_of(type_, text, zone=""):
    types = {"id": "bigint(20) unsigned", "v": type_}
    rows = decode(canal("INSERT", [{"id": "1", "v": text}], types=types), zone)
    _, row = rows.images[0]
    assert row is not None
    return rows.schema.columns[1].kind, row[1]


@pytest.mark.parametrize(
    ("type_", "text", "wanted"),
    [
        ("INTEGER", "-7", (Kind.INTEGER, -7)),
        ("bigint unsigned", "18446744073709551615", (Kind.INTEGER, 2**64 - 1)),
        ("decimal(65,30)", f"{'9' * 35}.{'9' * 30}", (Kind.DECIMAL, f"{'9' * 35}.{'9' * 30}")),
        ("FLOAT", "3.4028235E38", (Kind.FLOAT, 3.4028235e38)),
        ("double(7,2)", "0.1", (Kind.FLOAT, 0.1)),
        ("VARCHAR(255)", "12V car", (Kind.TEXT, "12V car")),
        ("longtext", "", (Kind.TEXT, "")),
        # As statements may name types, which Canal's `tsdb` takes from them.
        ("BOOL", "2", (Kind.INTEGER, 2)),
        ("INT1 UNSIGNED", "200", (Kind.INTEGER, 200)),
        ("SERIAL", "7", (Kind.INTEGER, 7)),
        ("NVARCHAR(5)", "é", (Kind.TEXT, "é")),
        ("character varying(5)", "é", (Kind.TEXT, "é")),
        ("DOUBLE PRECISION", "0.1234567890123", (Kind.FLOAT, 0.1234567890123)),
        ("tinyint zerofill", "-56", (Kind.INTEGER, 200)),
        ("MIDDLEINT ZEROFILL", "-777216", (Kind.INTEGER, 16_000_000)),
        ("BIGINT zerofill", "-1", (Kind.INTEGER, 2**64 - 1)),
        ("blob", "\x00\xff\xc3", (Kind.BINARY, b"\0\xff\xc3")),
        ("binary(4)", "a", (Kind.BINARY, b"a\0\0\0")),
        ("binary", "", (Kind.BINARY, b"\0")),
        ("binary(0)", "", (Kind.BINARY, b"")),
        ("varbinary(4)", "a", (Kind.BINARY, b"a")),
        ("geometry", "\x00\x00\x00\x00\x01", (Kind.GEOMETRY, b"\0\0\0\0\1")),
        ("bit(64)", "18446744073709551615", (Kind.BIT, 2**64 - 1)),
        ("year(4)", "0000", (Kind.YEAR, 0)),
        ("date", "0000-00-00", (Kind.DATE, "0000-00-00")),
        ("datetime", "2020-00-31 01:02:03", (Kind.DATETIME, "2020-00-31 01:02:03.000000")),
        ("datetime(3)", "2020-01-31 01:02:03.5", (Kind.DATETIME, "2020-01-31 01:02:03.500000")),
        ("time(6)", "-838:59:59.000001", (Kind.TIME, "-838:59:59.000001")),
        ("time", "-00:00:00", (Kind.TIME, "-00:00:00.000000")),
        ("json", '{"a": 1}', (Kind.JSON, '{"a": 1}')),
        ("json", "", (Kind.JSON, "null")),
        ("enum('a','it''s,')", "2", (Kind.ENUM, "it's,")),
        ("enum('a','b')", "0", (Kind.ENUM, "")),
        ("enum('a','b')", "b", (Kind.ENUM, "b")),
        ("enum('2','1')", "1", (Kind.ENUM, "2")),
        ("enum('日?','b')", "2", (Kind.ENUM, "b")),
        ("set('a','b','c')", "5", (Kind.SET, "a,c")),
        ("set('a','b','c')", "a,c", (Kind.SET, "a,c")),
        ("timestamp", "0000-00-00 00:00:00", (Kind.TIMESTAMP, "0000-00-00 00:00:00.000000")),
        ("int", None, (Kind.INTEGER, None)),
    ],
)
def test_values(type_, text, wanted):
    assert value_of(type_, text) == wanted


@pytest.mark.parametrize(
    ("zone", "text", "wanted"),
    [
        ("+08:00", "2020-05-13 20:38:35", "2020-05-13 12:38:35.000000"),
        ("-03:30", "2020-05-13 20:38:35.25", "2020-05-14 00:08:35.250000"),
        ("Asia/Shanghai", "2020-05-13 20:38:35", "2020-05-13 12:38:35.000000"),
        ("Europe/Berlin", "2020-07-01 02:00:00", "2020-07-01 00:00:00.000000"),
        ("UTC", "1970-01-01 00:00:01", "1970-01-01 00:00:01.000000"),
    ],
)
def test_a_timestamp_is_in_the_time_zone_of_canal(zone, text, wanted):
    assert value_of("timestamp(2)", text, zone) == (Kind.TIMESTAMP, wanted)


def test_a_timestamp_without_a_zone_is_refused():
    with pytest.raises(DataError, match="time zone of its JVM") as raised:
        value_of("timestamp", "2020-05-13 20:38:35")
    assert "`time_zone`" in raised.value.hint


@pytest.mark.parametrize("text", ["2020-10-25 02:30:00", "2020-03-29 02:30:00"])
def test_a_time_that_is_there_twice_or_never_is_refused(text):
    with pytest.raises(DataError, match="twice, or not at all"):
        value_of("timestamp", text, "Europe/Berlin")


def test_an_unknown_zone_is_a_matter_of_configuration():
    with pytest.raises(ConfigurationError, match="knows no time zone"):
        value_of("timestamp", "2020-05-13 20:38:35", "Europe/Nowhere")


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("int", "1.5"),
        ("int", "\uff11"),
        ("decimal(3,1)", "1E3"),
        ("float", "NaN"),
        ("double", "x"),
        ("blob", "日"),
        ("date", "2020-1-1"),
        ("datetime", "2020-01-01"),
        ("time", "1:2"),
        ("bit(3)", "b'1'"),
        ("enum('a','b')", "3"),
        ("enum('1','b')", "b"),
        ("enum('a','b')", "c"),
        ("set('a')", "9"),
        ("enum('日?','b')", "1"),
        ("json", "JSON_REPLACE(v, '$.a', 1)"),
        ("text", "\ud801x"),
        ("enum('a','a')", "\ud8012=a"),
        ("inet6", "::1"),
        ("", "x"),
        (None, "x"),
        ("int", 5),
    ],
)
def test_values_that_their_type_does_not_have_are_refused(type_, text):
    with pytest.raises(DataError) as raised:
        value_of(type_, text)
    assert raised.value.where["column"] == "v"
    assert raised.value.where["table"] == "shop.orders"


TYPES = {"id": "int", "name": "varchar(9)", "w": "double"}


def test_an_update_says_what_it_changed():
    message = canal(
        "UPDATE",
        [{"id": "1", "name": "new", "w": "1.0"}, {"id": "3", "name": None, "w": "2.0"}],
        [{"name": None}, {"id": "2", "name": "old"}],
        types=TYPES,
    )
    rows = decode(message)
    assert rows.op is Op.UPDATE
    assert rows.images == [
        ((1, None, 1.0), (1, "new", 1.0)),
        ((2, "old", 2.0), (3, None, 2.0)),
    ]
    assert rows.schema.key == (0,)


def test_a_message_like_the_one_in_flink_s_documentation():
    """https://nightlies.apache.org/flink/flink-docs-stable/docs/connectors/table/formats/canal/"""
    rows = decode(
        canal(
            "UPDATE",
            [{"id": "7", "name": "hammer", "weight": "0.75"}],
            [{"weight": "0.8"}],
            types={"id": "INTEGER", "name": "VARCHAR(255)", "weight": "FLOAT"},
        )
    )
    assert rows.images == [((7, "hammer", 0.8), (7, "hammer", 0.75))]


def test_inserts_and_deletes_of_several_rows():
    data = [{"id": "1", "name": "a", "w": "1"}, {"id": "2", "name": "b", "w": "2"}]
    rows = [(1, "a", 1.0), (2, "b", 2.0)]
    inserted, deleted = (decode(canal(t, data, types=TYPES)) for t in ("INSERT", "DELETE"))
    assert (inserted.op, inserted.images) == (Op.INSERT, [(None, row) for row in rows])
    assert (deleted.op, deleted.images) == (Op.DELETE, [(row, None) for row in rows])


@pytest.mark.parametrize(("type_", "old"), [("INSERT", None), ("UPDATE", [{"name": "old"}])])
def test_a_column_that_is_not_there_may_be_null_and_is_refused(type_, old):
    """Canal 1.1.1 leaves NULL out: https://github.com/alibaba/canal/issues/1163."""
    with pytest.raises(DataError, match="no null either") as raised:
        decode(canal(type_, [{"id": "1", "w": "1"}], old, types=TYPES))
    assert raised.value.where["column"] == "name"


def test_a_deleted_row_needs_no_more_than_its_key():
    rows = decode(canal("DELETE", [{"id": "1"}], types=TYPES))
    assert rows.images == [((1, ABSENT, ABSENT), None)]


@pytest.mark.parametrize(
    ("type_", "bits"),
    [("float", 4), ("FLOAT(24)", 4), ("FLOAT(53)", 8), ("float(30,2)", 4), ("real", 8)],
)
def test_how_many_bytes_a_number_has(type_, bits):
    rows = decode(canal("INSERT", [{"id": "1", "v": "0.5"}], types={"id": "int", "v": type_}))
    assert rows.schema.columns[1].width == bits


def test_a_text_that_canal_takes_for_a_blob_is_refused():
    """It decodes only TEXT without a size, and takes the bytes of others for characters."""
    types = {"id": "int", "v": "TEXT(100)"}

    def value(text, number):
        message = json.loads(canal("INSERT", [{"id": "1", "v": text}], types=types))
        message["sqlType"] = {"id": 4, "v": number}
        _, after = decode(json.dumps(message).encode()).images[0]
        assert after is not None
        return after[1]

    assert value("plain", 2004) == "plain"
    assert value("é", 2005) == "é"
    for text in ("Ã©", "a\0"):
        with pytest.raises(DataError, match="the bytes of a text"):
            value(text, 2004)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (canal("UPDATE", [{"id": "1"}], None), "cannot be understood"),
        (canal("UPDATE", [{"id": "1"}], [{"id": "2"}, {}]), "what it changed"),
        (canal("INSERT", [{"w": "1"}], types=TYPES), "lacks columns of its key"),
        (canal("INSERT", [{"id": "1", "x": "1"}]), "columns without a type"),
        (canal("INSERT", [{"id": "1"}], keys=("other",)), "a column of its key"),
        (canal("INSERT", ["x"]), "cannot be understood"),
        (json.dumps({"type": "INSERT", "database": "d", "isDdl": False}).encode(), "mysqlType"),
        (b"\x0a\x0bbinlog", "not a flat message"),
    ],
)
def test_messages_that_say_too_little_are_refused(message, reason):
    with pytest.raises(DataError, match=reason):
        decode(message)


def test_headers():
    read = CanalHeaderReader().read
    rows = read(None, canal("DELETE", [{"id": "1"}, {"id": "2"}]))
    assert rows[:6] == (EntryKind.ROWS, 1_700_000_000, "shop", "orders", "DELETE", 2)
    ddl = read(None, canal("ALTER", None, sql="ALTER TABLE orders ADD x INT", ddl=True, keys=()))
    assert (ddl.kind, ddl.schema, ddl.table) == (EntryKind.DDL, "shop", "orders")
    logged = read(None, canal("UPDATE", None, sql="UPDATE orders SET w = 1"))
    assert (logged.kind, logged.statement) == (EntryKind.STATEMENT, "UPDATE orders SET w = 1")
    noted = read(None, canal("QUERY", None, sql="INSERT INTO orders VALUES (1)"))
    assert noted.kind is EntryKind.HEARTBEAT
    assert read(None, None).kind is EntryKind.HEARTBEAT


# As apache/flink describes the format in the tests of its reader.
DOCUMENTED = """{"data":[{"id":"101","name":"scooter","weight":"5.17"},{"id":"102",
"name":"car battery","weight":"5.17"}],"database":"inventory","es":1589373753000,"id":11,
"isDdl":false,"mysqlType":
{"id":"INTEGER","name":"VARCHAR(255)","weight":"FLOAT"},"old":[{"weight":"3.14"},{"weight":"8.1"}],
"pkNames":["id"],"sql":"","sqlType":{"id":4,"name":12,"weight":7},"table":"products2",
"ts":1589373753939,"type":"UPDATE"}""".replace("\n", "")


def test_a_documented_message():
    header = CanalHeaderReader().read(None, DOCUMENTED.encode())
    assert (header.schema, header.table, header.seconds) == ("inventory", "products2", 1589373753)
    rows = decode(DOCUMENTED.encode())
    assert rows.images == [
        ((101, "scooter", 3.14), (101, "scooter", 5.17)),
        ((102, "car battery", 8.1), (102, "car battery", 5.17)),
    ]
