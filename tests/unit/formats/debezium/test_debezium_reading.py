"""Rows of Debezium's records: as it wrote them for every type, and as it does not."""

import json
from base64 import b64encode
from contextlib import suppress
from decimal import Decimal
from itertools import chain, combinations

import pytest

from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.debezium.reading.rows import DebeziumRowCodec
from setl.codec.debezium.reading.values import label_reader
from setl.codec.keyed_record import keyed
from setl.errors import DataError
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.model.schema import Kind
from tests.unit.formats.debezium.recorded import expected, recorded
from tests.unit.formats.debezium.records import debezium, key

CONNECT = "org.apache.kafka.connect.data."
PRICE = "bytes", f"{CONNECT}Decimal", {"scale": "2", "connect.decimal.precision": "15"}


def decoded(settings):
    """Header and rows of each record of rows that can be read."""
    headers, codec = DebeziumHeaderReader(), DebeziumRowCodec()
    for record in recorded(settings):
        header = headers.read(record.key, record.value)
        if header.kind is EntryKind.ROWS and header.table != "labels":
            yield header, codec.decode(record.payload, ())


def last_rows(settings, table):
    """The schema, and what is left of a table's rows by key."""
    left, schema = {}, None
    for header, rows in decoded(settings):
        if header.table != table:
            continue
        schema = rows.schema
        for before, after in rows.images:
            if before is not None:
                left.pop(tuple(before[i] for i in schema.key), None)
            if after is not None:
                left[tuple(after[i] for i in schema.key)] = after
    assert schema is not None
    # Columns that came since are NULL in the rows from before.
    width = len(schema.columns)
    return schema, {k: row + (None,) * (width - len(row)) for k, row in left.items()}


def shown(kind, value):
    """A value as a client reads it, as far as kinds alone tell."""
    if value is None or isinstance(value, bytes):
        return value
    if kind is Kind.BIT:
        return value.to_bytes(8, "big").lstrip(b"\0") or b"\0"
    if kind is Kind.YEAR:
        return b"%04d" % value
    return str(value).encode()


def same(kind, value, read):
    """Whether a value is what a client has read, whose text has no more digits than its column."""
    if value is None or read is None:
        return value is read
    text = bytes.fromhex(read)
    if kind in (Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP):
        return value.startswith(text.decode()) and not value[len(text) :].strip(".0")
    if kind is Kind.FLOAT:
        return f"{float(text):.5g}" == f"{value:.5g}" or float(text) == value
    if kind is Kind.JSON:
        return json.loads(text) == json.loads(value)
    if kind is Kind.BIT:
        return int.from_bytes(text, "big") == value
    if kind is Kind.DECIMAL or kind is Kind.INTEGER:
        return Decimal(text.decode()) == Decimal(value)
    return shown(kind, value) == text


@pytest.mark.parametrize("settings", ["typical", "propagated"])
@pytest.mark.parametrize("table", ["every", "pairs"])
def test_every_type_is_as_a_client_reads_it(settings, table):
    schema, left = last_rows(settings, table)
    wanted = expected()[table]
    assert list(schema.names) == wanted["columns"]
    assert len(left) == len(wanted["rows"]) > 1
    by_key = {}
    for row in wanted["rows"]:
        texts = tuple(bytes.fromhex(row[i]).decode() for i in schema.key)
        by_key[texts] = row
    wrong = [
        (column.name, column.kind, value, read)
        for identity, row in left.items()
        for column, value, read in zip(
            schema.columns, row, by_key[tuple(map(str, identity))], strict=True
        )
        if not same(column.kind, value, read)
    ]
    assert wrong == []


def test_the_types_of_columns_are_used_where_the_connector_propagates_them():
    schema, _ = last_rows("propagated", "every")
    column = dict(zip(schema.names, schema.columns, strict=True))
    assert column["bigint_unsigned"].unsigned
    assert column["decimal"].kind is Kind.DECIMAL
    plain, _ = last_rows("typical", "every")
    assert plain.columns[plain.index["bigint_unsigned"]].kind is Kind.DECIMAL


def test_what_happens_to_rows():
    found = [(h.table, h.operation, rows.op) for h, rows in decoded("typical")]
    assert found[0] == ("every", "READ", Op.INSERT)
    assert ("pairs", "DELETE", Op.DELETE) in found
    assert ("every", "UPDATE", Op.UPDATE) in found
    pairs = next(rows.schema for h, rows in decoded("typical") if h.table == "pairs")
    assert [pairs.names[i] for i in pairs.key] == ["b", "a"]
    keyless = next(rows.schema for h, rows in decoded("typical") if h.table == "keyless")
    assert keyless.key == ()


def test_columns_come_with_the_record_that_has_them():
    shapes = [rows.schema.names for h, rows in decoded("typical") if h.table == "pairs"]
    assert shapes[0] == ("a", "b", "v")
    assert shapes[-1] == ("a", "b", "v", "w")


def test_zero_dates_as_far_as_records_tell_them():
    _, left = last_rows("typical", "zeros")
    zero = "0000-00-00 00:00:00.000000"
    assert left[1,] == (1, None, "1970-01-01", None, "1970-01-01 00:00:00.000000", None, zero)


def test_a_label_of_which_the_connector_lost_a_character_is_refused():
    left, codec = [], DebeziumRowCodec()
    for record in recorded("typical"):
        if record.topic == "p.shop.labels" and record.value:
            try:
                left += codec.decode(record.payload, ()).images
            except DataError as error:
                left.append(str(error))
    assert left[0] == (None, (1, "x"))
    assert "may have lost a character" in left[1]


def test_schema_changes_and_transactions():
    headers = DebeziumHeaderReader()
    found = [headers.read(r.key, r.value) for r in recorded("propagated")]
    statements = [h.statement for h in found if h.kind is EntryKind.DDL]
    # Those of the snapshot make tables that are there already.
    assert statements == [
        "ALTER TABLE pairs ADD COLUMN w DECIMAL(10,2)",
        "TRUNCATE TABLE `keyless`",
        "TRUNCATE TABLE keyless",
    ] or statements == [
        "ALTER TABLE pairs ADD COLUMN w DECIMAL(10,2)",
        "TRUNCATE TABLE `keyless`",
    ]
    assert {h.operation for h in found if h.kind is EntryKind.HEARTBEAT} >= {
        "TRANSACTION BEGIN",
        "TRANSACTION END",
        "TOMBSTONE",
        "SCHEMA",
    }


@pytest.mark.parametrize(
    ("settings", "reason", "hint"),
    [
        ("schemaless", "without a schema", "schemas.enable=true"),
        ("isostring", "negative or longer than a day", "time.precision.mode"),
        ("connect", "may have microseconds", "time.precision.mode"),
        ("connect_propagated", "may have microseconds", "time.precision.mode"),
        ("nanoseconds", "from 1677 to 2262", "time.precision.mode"),
        ("double_propagated", "which rounds it", "decimal.handling.mode"),
        ("base64_propagated", "not in which way", "binary.handling.mode"),
    ],
)
def test_what_a_setting_of_the_connector_loses_is_refused(settings, reason, hint):
    codec = DebeziumRowCodec()
    with pytest.raises(DataError, match=reason) as raised:
        codec.decode(recorded(settings)[0].payload, ())
    assert hint in raised.value.hint
    assert raised.value.where["table"] == "shop.every"


def value_of(given, value):
    """What a value becomes, of a column of a type."""
    record = debezium("c", after={"id": 1, "v": value}, fields={"id": "int32", "v": given})
    rows = DebeziumRowCodec().decode(keyed(key(id=1), record), ())
    column = rows.schema.columns[1]
    _, row = rows.images[0]
    assert row is not None
    return column.kind, row[1]


@pytest.mark.parametrize(
    ("given", "value", "wanted"),
    [
        ("int64", -(2**63), (Kind.INTEGER, -(2**63))),
        (
            ("int64", "", {"__debezium.source.column.type": "BIGINT UNSIGNED"}),
            -1,
            (Kind.INTEGER, 2**64 - 1),
        ),
        ((("bytes", f"{CONNECT}Decimal", {"scale": "2"})), "/w==", (Kind.DECIMAL, "-0.01")),
        (
            (("bytes", f"{CONNECT}Decimal", {"scale": "0"})),
            "AP//////////",
            (Kind.DECIMAL, "18446744073709551615"),
        ),
        (("bytes", "io.debezium.data.Bits", {"length": "9"}), "AAE=", (Kind.BIT, 256)),
        (("int32", "io.debezium.time.Date"), -719_528, (Kind.DATE, "0000-01-01")),
        (
            ("int64", "io.debezium.time.Timestamp"),
            -1,
            (Kind.DATETIME, "1969-12-31 23:59:59.999000"),
        ),
        (("int64", "io.debezium.time.MicroTime"), -1, (Kind.TIME, "-00:00:00.000001")),
        (
            ("int64", "io.debezium.time.NanoTime"),
            3_020_399_000_000_000,
            (Kind.TIME, "838:59:59.000000"),
        ),
        (
            ("string", "io.debezium.time.ZonedTimestamp"),
            "2026-06-15T14:00:00.5+02:00",
            (Kind.TIMESTAMP, "2026-06-15 12:00:00.500000"),
        ),
        (
            ("string", "io.debezium.time.ZonedTimestamp"),
            "1970-01-01T00:00:00Z",
            (Kind.TIMESTAMP, "0000-00-00 00:00:00.000000"),
        ),
        (
            ("string", "io.debezium.time.IsoTimestamp"),
            "2026-01-02T03:04:05Z",
            (Kind.DATETIME, "2026-01-02 03:04:05.000000"),
        ),
        (
            ("string", "io.debezium.data.Uuid"),
            "6ccd780c-baba-1026-9564-5b8c656024db",
            (Kind.TEXT, "6ccd780c-baba-1026-9564-5b8c656024db"),
        ),
        (PRICE, 12.3, (Kind.DECIMAL, "12.30")),
        (PRICE, -0.01, (Kind.DECIMAL, "-0.01")),
        (PRICE, 7, (Kind.DECIMAL, "7.00")),
        ((PRICE[0], PRICE[1], {"scale": "0"}), 10**40 + 1, (Kind.DECIMAL, f"{10**40 + 1}")),
        (
            ("string", "", {"__debezium.source.column.type": "CHAR BINARY"}),
            "é日",
            (Kind.TEXT, "é日"),
        ),
        (("double", "", {"__debezium.source.column.type": "FLOAT4"}), 0.5, (Kind.FLOAT, 0.5)),
        (
            ("struct", "io.debezium.data.geometry.Point"),
            {"x": 1.0, "y": 2.0, "wkb": "AQEAAAA=", "srid": 4326},
            (Kind.GEOMETRY, bytes.fromhex("e6100000") + b"\1\1\0\0\0"),
        ),
        (
            ("array", "io.debezium.data.FloatVector"),
            [1.5, -0.25],
            (Kind.BINARY, bytes.fromhex("0000c03f000080be")),
        ),
    ],
)
def test_values(given, value, wanted):
    assert value_of(given, value) == wanted


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("int32", "1"),
        ("int32", True),
        ("int32", 1.0),
        ("string", 1),
        ("string", "\ud801x"),
        (("string", "io.debezium.data.Enum", {"allowed": "a,a"}), "\ud8012=a"),
        ("bytes", "not base64"),
        ("boolean", 1),
        ("double", "1.5"),
        (("int32", "io.debezium.time.Date"), 10_000_000),
        (("int64", "io.debezium.time.MicroTimestamp"), 2**63 - 1),
        (("int64", "io.debezium.time.MicroTime"), 10**13),
        (("int64", "io.debezium.time.NanoTime"), 1),
        (("string", "io.debezium.time.ZonedTimestamp"), "2026-06-15 12:00:00"),
        (("string", "io.debezium.time.ZonedTimestamp"), "2026-02-31T00:00:00Z"),
        (("string", "io.debezium.time.IsoTimestamp"), "2026-06-15T12:00:00+08:00"),
        (("bytes", f"{CONNECT}Decimal", {"scale": "2"}), ""),
        (("bytes", f"{CONNECT}Decimal", {}), "AA=="),
        (PRICE, 12.345),
        ((PRICE[0], PRICE[1], {"scale": "2", "connect.decimal.precision": "16"}), 12.34),
        ((PRICE[0], PRICE[1], {"scale": "2"}), 12.34),
        ((PRICE[0], PRICE[1], {"scale": "-2"}), "AA=="),
        (("string", "", {"__debezium.source.column.type": "LONG VARBINARY"}), "AA=="),
        (("string", "", {"__debezium.source.column.type": "TIMESTAMP"}), "2021-01-28 17:29:04"),
        (("float", "", {"__debezium.source.column.type": "REAL"}), 0.12345679),
        (("double", "", {"__debezium.source.column.type": "FLOAT4"}), None),
        (("struct", "io.debezium.data.geometry.Geometry"), "AA=="),
        (("struct", "io.debezium.data.VariableScaleDecimal"), {"scale": 1, "value": "AA=="}),
        (("string", "io.debezium.data.Unheard"), "x"),
        ("array", []),
    ],
)
def test_values_that_their_type_does_not_have_are_refused(given, value):
    with pytest.raises(DataError) as raised:
        value_of(given, value)
    assert raised.value.where["column"] == "v"
    assert raised.value.where["table"] == "shop.orders"


ALLOWED = r"a\,b,c\\d,it's,x\\\,y"  # of ENUM('a,b','c\d','it''s','x\,y')


@pytest.mark.parametrize(
    ("meaning", "written", "kind", "label"),
    [
        # As Debezium 3.6 writes rows of a snapshot, and relays of setl all rows.
        ("Enum", "a,b", Kind.ENUM, "a,b"),
        ("Enum", r"c\d", Kind.ENUM, r"c\d"),
        ("Enum", r"x\,y", Kind.ENUM, r"x\,y"),
        ("EnumSet", r"c\d,it's", Kind.SET, r"c\d,it's"),
        # As it writes changes in the binlog.
        ("Enum", r"a\,b", Kind.ENUM, "a,b"),
        ("Enum", r"c\\d", Kind.ENUM, r"c\d"),
        ("Enum", "it's", Kind.ENUM, "it's"),
        ("Enum", r"x\\\,y", Kind.ENUM, r"x\,y"),
        ("EnumSet", r"c\\d,it's", Kind.SET, r"c\d,it's"),
        ("EnumSet", "", Kind.SET, ""),
    ],
)
def test_labels_with_commas_and_backslashes(meaning, written, kind, label):
    given = "string", f"io.debezium.data.{meaning}", {"allowed": ALLOWED}
    assert value_of(given, written) == (kind, label)


def test_no_label_is_taken_for_another_one():
    odd = ("a,b", r"a\,b", r"a\\,b", r"a\b", r"a\\b", "\\", ",", "a", ",,", r"\,", "a\\")
    for labels in chain.from_iterable(combinations(odd, n) for n in (1, 2, 3)):
        listed = [x.replace("\\", "\\\\").replace(",", "\\,") for x in labels]
        read = label_reader(Kind.ENUM, ",".join(listed))
        for label, escaped in zip(labels, listed, strict=True):
            for written in (label, escaped):
                with suppress(ValueError):  # it may be two of them
                    assert read(written) == label


def test_a_way_of_writing_times_that_is_not_known_is_named_by_its_setting():
    with pytest.raises(DataError, match=r"type io\.debezium\.time\.Unheard") as raised:
        value_of(("struct", "io.debezium.time.Unheard"), {})
    assert "time.precision.mode" in raised.value.hint


@pytest.mark.parametrize(
    ("allowed", "written", "reason"),
    [(r"a\,b,a\\\,b", r"a\,b", "two labels"), ("a,b", r"c\d", "no label")],
)
def test_a_label_that_may_be_another_one_is_refused(allowed, written, reason):
    with pytest.raises(DataError, match=reason):
        value_of(("string", "io.debezium.data.Enum", {"allowed": allowed}), written)


def test_a_null_that_may_be_a_value_is_refused():
    given = ("int32", f"{CONNECT}Time", {"__debezium.source.column.type": "TIME"})
    assert value_of(given, 1500) == (Kind.TIME, "00:00:01.500000")
    with pytest.raises(DataError, match="negative or longer than a day"):
        value_of(given, None)


def test_null_is_null():
    assert value_of(("int64", "io.debezium.time.MicroTime"), None)[1] is None


@pytest.mark.parametrize(
    ("record_key", "reason"),
    [
        (b"Struct{id=1}", "the record's key"),
        (key(other=1), "'other', which is no column"),
    ],
)
def test_a_key_that_names_no_columns_is_refused(record_key, reason):
    with pytest.raises(DataError, match=reason):
        DebeziumRowCodec().decode(keyed(record_key, debezium("c", after={"id": 1})), ())


def test_what_a_router_adds_to_a_key_is_no_column():
    routed = key(id=1, __dbz__physicalTableIdentifier="p.shop.orders")
    rows = DebeziumRowCodec().decode(keyed(routed, debezium("c", after={"id": 1})), ())
    assert rows.schema.key == (0,)


def test_a_plain_key_names_columns_as_well():
    rows = DebeziumRowCodec().decode(keyed(b'{"id":1}', debezium("c", after={"id": 1})), ())
    assert rows.schema.key == (0,)


def test_an_update_without_the_row_before_it_is_the_row():
    rows = DebeziumRowCodec().decode(keyed(key(id=1), debezium("u", after={"id": 1})), ())
    assert (rows.op, rows.images) == (Op.INSERT, [(None, (1,))])


def test_a_delete_without_its_row_is_refused():
    with pytest.raises(DataError, match="does not say what it was"):
        DebeziumRowCodec().decode(keyed(key(id=1), debezium("d", fields={"id": "int32"})), ())


@pytest.mark.parametrize("connector", ["postgresql", None])
def test_other_connectors_are_refused(connector):
    with pytest.raises(DataError, match="connector"):
        DebeziumHeaderReader().read(None, debezium("c", after={"id": 1}, connector=connector))


def test_a_schema_is_told_by_all_of_it():
    # As long as the front is the same, the schema is; another one may begin alike.
    codec = DebeziumRowCodec()
    one = debezium("c", after={"id": 1, "payload": 5}, fields={"id": "int32", "payload": "int32"})
    two = debezium(
        "c", after={"id": 1, "payload": "5"}, fields={"id": "int32", "payload": "string"}
    )
    for record, value in ((one, 5), (two, "5"), (one, 5), (two, "5")):
        assert codec.decode(keyed(None, record), ()).images == [(None, (1, value))]


def test_members_in_another_order_and_with_spaces_say_the_same():
    given = json.loads(debezium("c", after={"id": 1}))
    turned = {"payload": given["payload"], "schema": given["schema"]}
    for text in (json.dumps(turned, indent=1), json.dumps(given)):
        rows = DebeziumRowCodec().decode(keyed(None, text.encode()), ())
        assert rows.images == [(None, (1,))]


UNSEEN = "__debezium_unavailable_value"


@pytest.mark.parametrize("operation", ["c", "r", "u"])
def test_columns_that_the_connector_did_not_see_are_none_of_the_row(operation):
    """As with ``binlog_row_image=NOBLOB``; their text is no value of anybody's."""
    fields = {"id": "int32", "text": "string", "data": "bytes", "n": "int32"}
    row = {"id": 1, "text": UNSEEN, "data": b64encode(UNSEEN.encode()).decode(), "n": 7}
    before = row | {"n": 6} if operation == "u" else None
    record = debezium(operation, before=before, after=row, fields=fields)
    codec = DebeziumRowCodec()
    rows = codec.decode(keyed(key(id=1), record), ())
    assert rows.schema.names == ("id", "n")
    assert rows.schema.unlogged == ("data", "text")
    assert rows.images[0][1] == (1, 7)
    whole = debezium(operation, after=row | {"text": "a", "data": "AAE="}, fields=fields)
    rows = codec.decode(keyed(key(id=1), whole), ())
    assert rows.schema.names == ("id", "text", "data", "n")
    assert rows.schema.unlogged == ()
    assert rows.images[0][1] == (1, "a", b"\x00\x01", 7)


@pytest.mark.parametrize("value", [None, b'{"schema":null,"payload":null}'])
def test_a_tombstone_of_any_release_of_kafka_connect(value):
    header = DebeziumHeaderReader().read(key(id=1), value)
    assert (header.operation, header.tombstone) == ("TOMBSTONE", True)


def test_a_text_that_is_a_key_is_there():
    record = debezium("c", after={"id": UNSEEN, "n": 1}, fields={"id": "string", "n": "int32"})
    rows = DebeziumRowCodec().decode(keyed(key(id=UNSEEN), record), ())
    assert rows.images == [(None, (UNSEEN, 1))]
