"""DTS records that are written, as a reader of the public schema and as setl's own reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.dts.header import read_header
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.dts.table_form import DtsTableForms, TableForm
from setl.codec.temporal import timestamp_text
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.entry import EntryKind
from setl.model.labels import marked
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from tests.unit.codec.binlog_events import EventWriter, entries_of, names, stored
from tests.unit.codec.dts_records import AT, as_published

BEGIN = BinlogPosition("mariadb-bin.000078", 72000)
HERE = BinlogPosition("mariadb-bin.000078", 72469)
FACTS = TransactionFacts(BEGIN, 1_624_468_556_441, "0-1-100", thread_id=55, server_id=9)
WRITER = DtsRecordWriter("10.11.6-MariaDB")
PREFIX = "com.alibaba.dts.formats.avro."
COMMON = {
    "version": 0,
    "id": 7,
    "sourceTimestamp": 1_700_000_000,
    "sourcePosition": "72469@78",
    "safeSourcePosition": "72000@78",
    "sourceTxid": "0-1-100",
    "source": {"sourceType": "MySQL", "version": "10.11.6-MariaDB"},
    "objectName": None,
    "processTimestamps": None,
    "fields": None,
    "beforeImages": None,
    "afterImages": None,
    "bornTimestamp": 1_624_468_556,
}


def form_of(*columns, key=(), unique=None, schema="shop", table="orders"):
    """`columns` are (column, wire) pairs."""
    described = RowSchema(schema, table, tuple(c for c, _ in columns), key)
    return TableForm(described, [w for _, w in columns], unique)


def write(form, op, *images, facts=FACTS, writer=WRITER):
    """Records of some (before, after) images."""
    changes = DecodedRows(form.schema, op, list(images))
    return writer.transaction(facts).rows(
        form, changes, first_id=7, seconds=1_700_000_000, position=HERE
    )


def value_as_published(kind, wire, value, **more):
    """Type number, branch and members of one value."""
    form = form_of((Column("c", kind, **more), wire))
    (record,) = write(form, Op.INSERT, (None, (value,)))
    assert DtsRowCodec().decode(record, ()).images == [(None, (value,))]
    datum = as_published(record)
    ((branch, members),) = datum["afterImages"]
    return datum["fields"][0]["dataTypeNumber"], branch.removeprefix(PREFIX), members


ID = Column("id", Kind.INTEGER), WireColumn(ColumnType.LONGLONG)
NAME = Column("name", Kind.TEXT), WireColumn(ColumnType.VARCHAR, 80)
T = ColumnType


@pytest.mark.parametrize(
    ("kind", "wire", "value", "number", "branch", "members"),
    [
        (Kind.INTEGER, (T.TINY,), -128, 1, "Integer", (1, "-128")),
        (Kind.INTEGER, (T.SHORT,), 65535, 2, "Integer", (2, "65535")),
        (Kind.INTEGER, (T.INT24,), 8388608, 9, "Integer", (3, "8388608")),
        (Kind.INTEGER, (T.LONG,), 0, 3, "Integer", (4, "0")),
        (Kind.INTEGER, (T.LONGLONG,), 2**64 - 1, 8, "Integer", (8, str(2**64 - 1))),
        (Kind.INTEGER, (T.LONGLONG,), -(2**63), 8, "Integer", (8, str(-(2**63)))),
        (Kind.BIT, (T.BIT, 9), 341, 16, "Integer", (2, "341")),
        (Kind.FLOAT, (T.FLOAT, 4), 0.1, 4, "Float", (0.1, 12, 0)),
        (Kind.FLOAT, (T.DOUBLE, 8), -1e300, 5, "Float", (-1e300, 22, 0)),
        (Kind.TEXT, (T.VARCHAR, 80), "日本🙂", 253, "Character", ("utf8mb4", "日本🙂".encode())),
        (Kind.TEXT, (T.STRING, 80), "", 254, "Character", ("utf8mb4", b"")),
        (Kind.TEXT, (T.BLOB, 2), "x" * 300, 252, "Character", ("utf8mb4", b"x" * 300)),
        (Kind.TEXT, (T.MARIADB_BLOB_COMPRESSED, 2), "é", 252, "Character",
         ("utf8mb4", b"\xc3\xa9")),
        (Kind.TEXT, (T.MARIADB_VARCHAR_COMPRESSED, 9), "e", 253, "Character", ("utf8mb4", b"e")),
        (Kind.BINARY, (T.VARCHAR, 80), b"\0\xff", 253, "Character", ("binary", b"\0\xff")),
        (Kind.BINARY, (T.STRING, 5), b"a\0\0\0\0", 254, "Character", ("binary", b"a\0\0\0\0")),
        (Kind.BINARY, (T.BLOB, 1), b"\0" * 256, 252, "BinaryObject", ("BLOB", b"\0" * 256)),
        (Kind.BINARY, (T.TINY_BLOB, 1), b"b", 249, "BinaryObject", ("BLOB", b"b")),
        (Kind.BINARY, (T.VECTOR, 4), b"\0\0\x80?", 242, "BinaryObject", ("BLOB", b"\0\0\x80?")),
        (Kind.GEOMETRY, (T.GEOMETRY, 4), b"\0\0\0\0wkb", 255, "BinaryGeometry",
         ("GEOMETRY", b"\0\0\0\0wkb")),
        (Kind.JSON, (T.JSON, 4), '{"a": "é"}', 245, "TextObject", ("JSON", '{"a": "é"}')),
        (Kind.ENUM, (T.ENUM, 1), "二手", 247, "TextObject", ("ENUM", "二手")),
        (Kind.SET, (T.SET, 1), "a,b", 248, "TextObject", ("SET", "a,b")),
        (Kind.ENUM, (T.ENUM, 1), marked("3=é"), 247, "TextObject", ("ENUM_NUMBER", "3=é")),
        (Kind.SET, (T.SET, 1), marked("1="), 248, "TextObject", ("SET_NUMBER", "1=")),
        (Kind.DATE, (T.DATE,), "2026-02-03", 10, "DateTime", (2026, 2, 3, *[None] * 4)),
        (Kind.DATE, (T.NEWDATE,), "2026-00-00", 10, "DateTime", (2026, 0, 0, *[None] * 4)),
        (Kind.DATE, (T.DATE,), "0000-00-00", 10, "DateTime", (0, 0, 0, *[None] * 4)),
        (Kind.YEAR, (T.YEAR,), 2155, 13, "DateTime", (2155, *[None] * 6)),
        (Kind.YEAR, (T.YEAR,), 0, 13, "DateTime", (0, *[None] * 6)),
        (Kind.DATETIME, (T.DATETIME2, 6), "2026-01-02 03:04:05.000006", 12, "DateTime",
         (2026, 1, 2, 3, 4, 5, 6)),
        (Kind.DATETIME, (T.DATETIME,), "0000-00-00 00:00:00.000000", 12, "DateTime", (0,) * 7),
        (Kind.TIME, (T.TIME2, 6), "-838:59:58.999999", 11, "DateTime",
         (None, None, None, -838, -59, -58, -999999)),
        (Kind.TIME, (T.TIME2, 6), "-00:00:00.000001", 11, "DateTime",
         (None, None, None, 0, 0, 0, -1)),
        (Kind.TIME, (T.TIME2, 0), "838:59:59.000000", 11, "DateTime",
         (None, None, None, 838, 59, 59, 0)),
        (Kind.TIME, (T.TIME,), "00:00:00.000000", 11, "DateTime",
         (None, None, None, 0, 0, 0, 0)),
        (Kind.TIMESTAMP, (T.TIMESTAMP2, 6), "2026-03-04 05:06:07.537000", 7, "Timestamp",
         (1772600767, 537000)),
        (Kind.TIMESTAMP, (T.TIMESTAMP2, 0), "2106-02-07 06:28:15.000000", 7, "Timestamp",
         (2**32 - 1, 0)),
        (Kind.TIMESTAMP, (T.TIMESTAMP,), "0000-00-00 00:00:00.000000", 7, "Timestamp", (0, 0)),
        (Kind.TIMESTAMP, (T.TIMESTAMP2, 6), "1970-01-01 00:00:00.500000", 7, "Timestamp",
         (0, 500000)),
    ],
)  # fmt: skip
def test_values_of_every_type(kind, wire, value, number, branch, members):
    got = value_as_published(kind, WireColumn(*wire), value)
    assert got == (number, branch, got[2])
    assert tuple(got[2].values()) == members


def test_a_decimal_has_the_digits_of_its_column():
    wire = WireColumn(T.NEWDECIMAL, 12, 2)
    got = value_as_published(Kind.DECIMAL, wire, "-0.01", precision=12, scale=2)
    assert got == (246, "Decimal", {"value": "-0.01", "precision": 12, "scale": 2})


def test_rows_have_every_member():
    form = form_of(ID, NAME, key=(0,), unique={"uk_x": ["name", "id"]})
    first, second = write(form, Op.UPDATE, ((1, "a"), (1, None)), ((2, None), (3, "é")))
    datum = as_published(first)
    assert datum == COMMON | {
        "operation": "UPDATE",
        "objectName": "shop.orders",
        "tags": {
            "pk_uk_info": '{"PRIMARY":["id"],"uk_x":["name","id"]}',
            "thread_id": "55",
            "server_id": "9",
            "readerThroughoutTime": "1624468556441",
        },
        "fields": [{"name": "id", "dataTypeNumber": 8}, {"name": "name", "dataTypeNumber": 253}],
        "beforeImages": [
            (PREFIX + "Integer", {"precision": 8, "value": "1"}),
            (PREFIX + "Character", {"charset": "utf8mb4", "value": b"a"}),
        ],
        "afterImages": [(PREFIX + "Integer", {"precision": 8, "value": "1"}), None],
    }
    assert as_published(second)["id"] == 8
    assert DtsRowCodec().decode(second, ()).images == [((2, None), (3, "é"))]


@pytest.mark.parametrize(
    ("op", "image", "written"),
    [(Op.INSERT, (None, (1, "a")), "afterImages"), (Op.DELETE, ((1, "a"), None), "beforeImages")],
)
def test_an_insert_has_no_image_before_it_and_a_delete_none_after(op, image, written):
    (record,) = write(form_of(ID, NAME), op, image)
    datum = as_published(record)
    assert datum["operation"] == op.name
    sides = {"beforeImages", "afterImages"}
    assert [len(datum[written])] + [datum[other] for other in sides - {written}] == [2, None]


def test_columns_that_an_image_does_not_hold():
    (record,) = write(form_of(ID, NAME), Op.UPDATE, ((1, ABSENT), (ABSENT, None)))
    absent = (PREFIX + "EmptyObject", "NONE")
    datum = as_published(record)
    assert datum["beforeImages"][1] == datum["afterImages"][0] == absent
    assert DtsRowCodec().decode(record, ()).images == [((1, ABSENT), (ABSENT, None))]


def test_records_around_rows():
    transaction = WRITER.transaction(FACTS)
    begin = transaction.begin(7, seconds=1_700_000_000, position=HERE)
    commit = transaction.commit(7, seconds=1_700_000_000, position=HERE)
    ddl = transaction.ddl(
        7, "sh.op", "ALTER TABLE `é` ADD n INT", seconds=1_700_000_000, position=HERE
    )
    gtid = {"GTID": "0-1-100"}
    assert as_published(begin) == COMMON | {
        "operation": "BEGIN",
        "tags": {"thread_id": "55"} | gtid,
    }
    assert as_published(commit) == COMMON | {"operation": "COMMIT", "tags": gtid}
    assert as_published(ddl) == COMMON | {
        "operation": "DDL",
        "objectName": "sh\\u002Eop",
        "tags": gtid,
        "afterImages": "ALTER TABLE `é` ADD n INT",
    }
    heard = [read_header(record, AT) for record in (begin, commit, ddl)]
    assert [e.kind for e in heard] == [EntryKind.BEGIN, EntryKind.COMMIT, EntryKind.DDL]
    assert heard[0].transaction == "0-1-100"
    assert (heard[2].schema, heard[2].table) == ("sh.op", "é")
    assert heard[2].statement == "ALTER TABLE `é` ADD n INT"


def test_a_heartbeat():
    record = WRITER.heartbeat(7, seconds=1_700_000_000, position=HERE, read_ms=1_624_468_556_441)
    assert as_published(record) == COMMON | {
        "operation": "HEARTBEAT",
        "safeSourcePosition": "72469@78",
        "sourceTxid": "0",
        "tags": {},
    }
    assert read_header(record, AT).kind is EntryKind.HEARTBEAT


def test_a_transaction_of_which_little_is_known():
    facts = TransactionFacts(BEGIN, 1_624_468_556_441)
    transaction = WRITER.transaction(facts)
    begin = as_published(transaction.begin(7, seconds=1, position=HERE))
    assert (begin["sourceTxid"], begin["tags"]) == ("0", {})
    assert as_published(transaction.commit(7, seconds=1, position=HERE))["tags"] == {}
    ddl = as_published(transaction.ddl(7, "", "CREATE USER u", seconds=1, position=HERE))
    assert (ddl["objectName"], ddl["tags"]) == (None, {})
    (record,) = write(form_of(ID), Op.INSERT, (None, (1,)), facts=facts)
    assert as_published(record)["tags"] == {
        "pk_uk_info": "{}",
        "readerThroughoutTime": "1624468556441",
    }


def test_records_of_the_older_schema():
    writer = DtsRecordWriter("8.0.28", born=False)
    form = form_of(ID, NAME, key=(0,))
    transaction = writer.transaction(FACTS)
    records = [
        transaction.begin(7, seconds=1, position=HERE),
        *write(form, Op.INSERT, (None, (1, "a")), writer=writer),
        transaction.ddl(7, "s", "CREATE TABLE t (id INT)", seconds=1, position=HERE),
        transaction.commit(7, seconds=1, position=HERE),
        writer.heartbeat(7, seconds=1, position=HERE, read_ms=1),
    ]
    for record in records:
        assert "bornTimestamp" not in as_published(record, length=14)


def test_dots_and_other_characters_in_names():
    odd = Column("ein.e", Kind.INTEGER), ID[1]
    form = form_of(odd, key=(0,), schema="s.h", table="日.")
    (record,) = write(form, Op.INSERT, (None, (1,)))
    datum = as_published(record)
    assert datum["objectName"] == "s\\u002Eh.日\\u002E"
    assert datum["tags"]["pk_uk_info"] == '{"PRIMARY":["ein.e"]}'
    rows = DtsRowCodec().decode(record, ())
    assert (rows.schema.schema, rows.schema.table, rows.schema.key) == ("s.h", "日.", (0,))


def test_a_unique_key_of_columns_that_are_not_there_is_left_out():
    unique = {"uk_old": ["id", "gone"], "uk": ["name"], "PRIMARY": ["name"]}
    form = form_of(ID, NAME, key=(0,), unique=unique)
    (record,) = write(form, Op.INSERT, (None, (1, "a")))
    schema = DtsRowCodec().decode(record, ()).schema
    assert (schema.key, schema.unique) == ((0,), ((1,),))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (NAME, "\ud83d"),
        (NAME, b"bytes"),
        (NAME, 1),
        (ID, "1"),
        (ID, 1.5),
        ((Column("d", Kind.DECIMAL), WireColumn(T.NEWDECIMAL, 4, 2)), 1),
        ((Column("f", Kind.FLOAT), WireColumn(T.DOUBLE, 8)), "1"),
        ((Column("b", Kind.BINARY), WireColumn(T.BLOB, 2)), "text"),
        ((Column("d", Kind.DATE), WireColumn(T.DATE)), "today"),
        ((Column("d", Kind.DATETIME), WireColumn(T.DATETIME2)), "2026-01-02"),
        ((Column("t", Kind.TIMESTAMP), WireColumn(T.TIMESTAMP2)), "2026-13-02 00:00:00.000000"),
    ],
)
def test_a_value_of_another_kind_is_an_error_that_names_its_column(column, value):
    good, empty, missing = ((Column(name, Kind.INTEGER), ID[1]) for name in ("a", "b", "c"))
    form = form_of(good, empty, missing, column)
    with pytest.raises(DataError) as caught:
        write(form, Op.INSERT, (None, (1, None, ABSENT, value)))
    assert caught.value.where == {"schema": "shop", "table": "orders", "column": column[0].name}


def test_a_row_of_another_table_is_an_error():
    with pytest.raises(DataError, match="cannot be written"):
        write(form_of(ID, NAME), Op.INSERT, (None, (1,)))


def test_forms_are_stored_by_what_the_binlog_says():
    events = EventWriter()
    description = events.format_description()
    context = description, events.table_map([(3, b"")], optional=names("id"))
    unique = {("shop", "orders"): {"uk": ["id"]}}
    forms = DtsTableForms(lambda *name: unique[name])
    form = forms.form(context)
    assert forms.form(tuple(bytes(bytearray(part)) for part in context)) is form
    (record,) = write(form, Op.INSERT, (None, (1,)))
    assert as_published(record)["tags"]["pk_uk_info"] == '{"uk":["id"]}'
    assert form.schema == BinlogRowCodec().schema(b"", context)
    changed = description, events.table_map([(3, b"")], optional=names("id"), table_id=10)
    assert forms.form(changed) is not form
    with pytest.raises(DataError, match="description of a table"):
        forms.form((description, b"short"))
    with pytest.raises(ConfigurationError, match="does not name the columns"):
        forms.form((description, events.table_map([(3, b"")])))


def test_events_captured_from_a_server_say_the_same_as_records():
    events, said = stored("every_type")
    start = BinlogPosition(said["start"]["file"], said["start"]["offset"])
    entries, _ = entries_of(events, start)
    forms, codec, reader = DtsTableForms(), BinlogRowCodec(), DtsRowCodec()
    seen = 0
    for entry in entries:
        if entry.kind is EntryKind.ROWS:
            rows = codec.decode(entry.payload, entry.context)
            records = write(forms.form(entry.context), rows.op, *rows.images)
            for record, image in zip(records, rows.images, strict=True):
                as_published(record)
                again = reader.decode(record, ())
                assert (again.op, again.images) == (rows.op, [image])
                assert again.schema.names == rows.schema.names
                assert again.schema.key == rows.schema.key
                seen += 1
    assert seen > 5


# ---- any row at all

_CLOCK = st.tuples(st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999)).map(
    lambda parts: "{:02d}:{:02d}.{:06d}".format(*parts)
)
_TIME = st.tuples(st.sampled_from(["", "-"]), st.integers(0, 838), _CLOCK).map(
    lambda parts: "{}{:02d}:{}".format(*parts)
)
_DATE = st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)).map(
    lambda parts: "{:04d}-{:02d}-{:02d}".format(*parts)
)
_DATETIME = st.tuples(_DATE, st.integers(0, 23), _CLOCK).map(
    lambda parts: "{} {:02d}:{}".format(*parts)
)
_TIMESTAMP = st.builds(timestamp_text, st.integers(0, 2**32 - 1), st.integers(0, 999_999))
_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
_LABEL = _TEXT | _TEXT.map(marked)  # see `setl.model.labels`
_DECIMAL = st.decimals(-(10**20), 10**20, places=4).map(lambda number: f"{number:f}")
_COLUMNS = {
    Kind.INTEGER: (WireColumn(T.LONGLONG), st.integers(-(2**63), 2**64 - 1)),
    Kind.BIT: (WireColumn(T.BIT, 64), st.integers(0, 2**64 - 1)),
    Kind.DECIMAL: (WireColumn(T.NEWDECIMAL, 30, 4), _DECIMAL),
    Kind.FLOAT: (WireColumn(T.DOUBLE, 8), st.floats(allow_nan=False, allow_infinity=False)),
    Kind.TEXT: (WireColumn(T.BLOB, 3), _TEXT),
    Kind.ENUM: (WireColumn(T.ENUM, 1), _LABEL),
    Kind.SET: (WireColumn(T.SET, 1), _LABEL),
    Kind.JSON: (WireColumn(T.JSON, 4), _TEXT),
    Kind.BINARY: (WireColumn(T.BLOB, 3), st.binary(max_size=300)),
    Kind.GEOMETRY: (WireColumn(T.GEOMETRY, 4), st.binary(max_size=300)),
    Kind.DATE: (WireColumn(T.DATE), _DATE),
    Kind.TIME: (
        WireColumn(T.TIME2, 6),
        _TIME.filter(lambda text: text.strip("-0:.") or "-" not in text),
    ),
    Kind.DATETIME: (WireColumn(T.DATETIME2, 6), _DATETIME),
    Kind.TIMESTAMP: (WireColumn(T.TIMESTAMP2, 6), _TIMESTAMP),
    Kind.YEAR: (WireColumn(T.YEAR), st.integers(0, 2155)),
}


@st.composite
def tables_with_rows(draw):
    kinds = draw(st.lists(st.sampled_from(list(_COLUMNS)), min_size=1, max_size=10))
    columns = tuple(
        Column(f"c{i}", Kind.DECIMAL, 30, 4) if kind is Kind.DECIMAL else Column(f"c{i}", kind)
        for i, kind in enumerate(kinds)
    )
    empty = st.sampled_from([None, ABSENT])
    row = st.tuples(*(st.one_of(_COLUMNS[kind][1], empty) for kind in kinds))
    form = TableForm(RowSchema("s", "t", columns, (0,)), [_COLUMNS[kind][0] for kind in kinds])
    return form, draw(st.lists(st.tuples(row, row), min_size=1, max_size=3))


@given(tables_with_rows())
def test_any_row_is_read_back_as_it_was(table):
    form, images = table
    codec = DtsRowCodec()
    for record, image in zip(write(form, Op.UPDATE, *images), images, strict=True):
        as_published(record)
        rows = codec.decode(record, ())
        assert rows.images == [image]
        for side, original in zip(rows.images[0], image, strict=True):
            assert side is not None
            assert [type(value) for value in side] == [type(value) for value in original]
        values = zip(*image, strict=True)
        for said, had, pair in zip(rows.schema.columns, form.schema.columns, values, strict=True):
            if any(value not in (None, ABSENT) for value in pair):
                assert said.kind is had.kind
                assert (said.precision, said.scale) == (had.precision, had.scale)
