import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.dts.header import read_header
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import DataError
from setl.model.change import ABSENT, Op
from setl.model.entry import EntryKind
from setl.model.schema import Kind
from setl.printable import text_of_bytes
from tests.unit.codec.dts_records import (
    AT,
    absent,
    as_json,
    branch,
    character,
    empty_null,
    fixture_records,
    inserted,
    integer,
    moment,
    record,
    row_record,
)


def decode_value(number, value):
    """Decode a row of one column; returns its value and the column."""
    rows = DtsRowCodec().decode(row_record("INSERT", [("c", number)], after=[value]), ())
    return inserted(rows)[0], rows.schema.columns[0]


def test_every_row_of_the_fixture_decodes_to_what_its_json_says():
    codec = DtsRowCodec()
    seen = 0
    for value, meaning in fixture_records():
        entry = read_header(value, AT)
        if entry.kind is not EntryKind.ROWS:
            continue
        rows = codec.decode(entry.payload, entry.context)
        assert rows.op is Op[meaning["operation"]]
        assert rows.schema.name == f"{meaning['db']}.{meaning['table']}"
        if "before" in meaning:
            before, after = rows.images[0]
            assert as_json(rows.schema, before) == meaning["before"], meaning["position"]
            assert as_json(rows.schema, after) == meaning["after"], meaning["position"]
            seen += 1
    assert seen > 25


@pytest.mark.parametrize(
    ("number", "value", "expected", "kind"),
    [
        (8, integer(-9223372036854775808), -9223372036854775808, Kind.INTEGER),
        (8, integer(18446744073709551615), 18446744073709551615, Kind.INTEGER),
        (3, integer("0012"), 12, Kind.INTEGER),
        (16, integer(255), 255, Kind.BIT),
        (246, branch("Decimal", value="-0.50", precision=5, scale=2), "-0.50", Kind.DECIMAL),
        (5, branch("Float", value=1e300, precision=22, scale=0), 1e300, Kind.FLOAT),
        (4, branch("Float", value=0.1, precision=12, scale=0), 0.1, Kind.FLOAT),
        (253, character("日本🙂".encode()), "日本🙂", Kind.TEXT),
        (253, character(b"caf\xe9 \x80\x81", "latin1"), "café €\x81", Kind.TEXT),
        (253, character("汉字".encode("gbk"), "gbk"), "汉字", Kind.TEXT),
        (253, character("𠀀".encode("gb18030"), "gb18030"), "𠀀", Kind.TEXT),
        (253, character("漢字".encode("big5"), "big5"), "漢字", Kind.TEXT),
        (253, character("aé".encode("utf-16-be"), "ucs2"), "aé", Kind.TEXT),
        (253, character("aé".encode("utf-16"), "ucs2"), "aé", Kind.TEXT),
        (253, character("a🙂".encode("utf-16-be"), "utf16"), "a🙂", Kind.TEXT),
        (253, character("a🙂".encode("utf-32-be"), "utf32"), "a🙂", Kind.TEXT),
        (253, character("é".encode(), "UTF8"), "é", Kind.TEXT),
        (253, character("é".encode(), "utf8mb3"), "é", Kind.TEXT),
        (253, character(b"plain", "ascii"), "plain", Kind.TEXT),
        (253, character(b"\0\xff", "binary"), b"\0\xff", Kind.BINARY),
        (252, character(b"text", "utf8mb4"), "text", Kind.TEXT),
        (247, character(b"new", "utf8mb4"), "new", Kind.ENUM),
        (252, branch("BinaryObject", type="BLOB", value=b"\0\1"), b"\0\1", Kind.BINARY),
        (252, branch("TextObject", type="TEXT", value="t"), "t", Kind.TEXT),
        (245, branch("TextObject", type="JSON", value="{}"), "{}", Kind.JSON),
        (245, branch("TextObject", type="TEXT", value="{}"), "{}", Kind.JSON),
        (247, branch("TextObject", type="ENUM", value=""), "", Kind.ENUM),
        (248, branch("TextObject", type="SET", value="a,b"), "a,b", Kind.SET),
        (255, branch("BinaryGeometry", type="GEOMETRY", value=b"wkb"), b"wkb", Kind.GEOMETRY),
        (255, branch("TextGeometry", type="GEOMETRY", value="POINT(1 2)"), "POINT(1 2)", Kind.TEXT),
        (
            7,
            branch("Timestamp", timestamp=1772600767, millis=537000),
            "2026-03-04 05:06:07.537000",
            Kind.TIMESTAMP,
        ),
        (
            7,
            branch("Timestamp", timestamp=2147483647, millis=999999),
            "2038-01-19 03:14:07.999999",
            Kind.TIMESTAMP,
        ),
        (
            7,
            branch("Timestamp", timestamp=1, millis=0),
            "1970-01-01 00:00:01.000000",
            Kind.TIMESTAMP,
        ),
        (
            7,
            branch("Timestamp", timestamp=0, millis=0),
            "0000-00-00 00:00:00.000000",
            Kind.TIMESTAMP,
        ),
        (12, moment(2026, 1, 2, 3, 4, 5, 6), "2026-01-02 03:04:05.000006", Kind.DATETIME),
        (12, moment(0, 0, 0, 0, 0, 0, 0), "0000-00-00 00:00:00.000000", Kind.DATETIME),
        (12, moment(2026, 0, 2, 3, 4, 5, None), "2026-00-02 03:04:05.000000", Kind.DATETIME),
        (12, moment(2026, 1, 2, *[None] * 4), "2026-01-02 00:00:00.000000", Kind.DATETIME),
        (10, moment(2026, 2, 3, None, None, None, None), "2026-02-03", Kind.DATE),
        (10, moment(0, 0, 0, None, None, None, None), "0000-00-00", Kind.DATE),
        (14, moment(2026, 2, 3, None, None, None, None), "2026-02-03", Kind.DATE),
        (14, moment(2026, 2, 3, 4, 5, 6, 7), "2026-02-03 04:05:06.000007", Kind.DATETIME),
        (11, moment(None, None, None, -838, 59, 59, 0), "-838:59:59.000000", Kind.TIME),
        (11, moment(None, None, None, 0, -1, -2, 0), "-00:01:02.000000", Kind.TIME),
        (11, moment(None, None, None, 838, 59, 59, 0), "838:59:59.000000", Kind.TIME),
        (11, moment(None, None, None, 1, 2, 3, 40000), "01:02:03.040000", Kind.TIME),
        (13, moment(1901, None, None, None, None, None, None), 1901, Kind.YEAR),
        (13, moment(0, None, None, None, None, None, None), 0, Kind.YEAR),
        (13, moment(2026, 1, 1, 0, 0, 0, 0), 2026, Kind.YEAR),
        (9999, moment(2026, 1, 2, None, None, None, None), "2026-01-02", Kind.DATE),
        (9999, moment(None, None, None, 1, 2, 3, None), "01:02:03.000000", Kind.TIME),
        (9999, moment(2026, 1, 2, 1, 2, 3, None), "2026-01-02 01:02:03.000000", Kind.DATETIME),
    ],
)
def test_values_of_every_branch(number, value, expected, kind):
    got, column = decode_value(number, value)
    assert got == expected
    assert type(got) is type(expected)
    assert column.kind is kind


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "2026-01-02 03:04:05.000006"),
        ("+08:00", "2026-01-01 19:04:05.000006"),
        ("GMT-3", "2026-01-02 06:04:05.000006"),
        ("Asia/Shanghai", "2026-01-01 19:04:05.000006"),
    ],
)
def test_times_with_a_zone_move_to_utc(zone, expected):
    when = {"year": 2026, "month": 1, "day": 2, "hour": 3, "minute": 4, "second": 5, "millis": 6}
    value = branch("TimestampWithTimeZone", value=when, timezone=zone)
    assert decode_value(12, value) == (expected, decode_value(12, value)[1])


@pytest.mark.parametrize(
    ("number", "value", "reason"),
    [
        # Servers take fractions of seven digits, and round them without a note.
        (7, branch("Timestamp", timestamp=1772600767, millis=1_000_000), "no 1000000 micro"),
        (7, branch("Timestamp", timestamp=1772600767, millis=-1), "no -1 micro"),
        (12, moment(2026, 1, 2, 3, 4, 5, 1_048_575), "no 1048575 micro"),
        (12, moment(2026, 1, 2, 3, 4, 5, 537_000_000), "no 537000000 micro"),
        (11, moment(None, None, None, 3, 4, 5, -1_000_000), "no 1000000 micro"),
        (12, moment(None, None, None, 3, 4, 5, 6), "has no date"),
    ],
)
def test_what_no_server_has_written_is_no_time(number, value, reason):
    usual = {
        7: branch("Timestamp", timestamp=1772600767, millis=0),
        12: moment(2026, 1, 2, 3, 4, 5, 999_999),
    }.get(number, value)
    codec = DtsRowCodec()
    for image in (usual, value)[usual is value :]:
        record_ = row_record("INSERT", [("c", number)], after=[image])
        if image is value:
            with pytest.raises(DataError, match=reason):
                codec.decode(record_, ())
        else:
            codec.decode(record_, ())


@pytest.mark.parametrize(("day", "month"), [(25, 10), (29, 3)])
def test_a_time_that_clocks_showed_twice_or_never_is_none(day, month):
    when = moment(2026, month, day, 2, 30, 0, 0)[1]
    value = branch("TimestampWithTimeZone", value=when, timezone="Europe/Berlin")
    with pytest.raises(DataError, match="02:30:00 twice, or never"):
        decode_value(12, value)


def test_null_and_absent_are_not_the_same():
    rows = DtsRowCodec().decode(
        row_record(
            "INSERT",
            [("a", 8), ("b", 8), ("c", 8), ("d", 8)],
            after=[None, absent(), empty_null(), integer(1)],
        ),
        (),
    )
    assert rows.images == [(None, (None, ABSENT, None, 1))]


@pytest.mark.parametrize(
    ("operation", "before", "after", "op"),
    [
        ("INSERT", None, [integer(2)], Op.INSERT),
        ("INIT", None, [integer(2)], Op.INSERT),
        ("UPDATE", [integer(1)], [integer(2)], Op.UPDATE),
        ("DELETE", [integer(1)], None, Op.DELETE),
    ],
)
@pytest.mark.parametrize("length", [14, 15])
def test_operations(operation, before, after, op, length):
    value = row_record(operation, [("id", 8)], before=before, after=after, length=length)
    rows = DtsRowCodec().decode(value, ())
    assert rows.op is op
    expected = (None if before is None else (1,), None if after is None else (2,))
    assert rows.images == [expected]


@pytest.mark.parametrize(
    ("keys", "key", "unique"),
    [
        ('{"PRIMARY":["id"]}', (0,), ()),
        ('{"PRIMARY":["B","id"],"uk_x":["c"],"uk_y":["c","b"]}', (1, 0), ((2,), (2, 1))),
        ('{"uk_x":["c"]}', (), ((2,),)),
        ("", (), ()),
    ],
)
def test_keys_come_from_the_tag(keys, key, unique):
    tags = {"pk_uk_info": keys} if keys else {}
    rows = DtsRowCodec().decode(
        row_record(
            "INSERT",
            [("id", 8), ("b", 8), ("c", 8)],
            after=[integer(1), integer(2), integer(3)],
            tags=tags,
        ),
        (),
    )
    assert rows.schema.key == key
    assert rows.schema.unique == unique


@pytest.mark.parametrize("keys", ["{", '{"PRIMARY":["nowhere"]}', "[1]"])
def test_a_key_tag_that_does_not_fit_is_an_error(keys):
    value = row_record("INSERT", [("id", 8)], after=[integer(1)], tags={"pk_uk_info": keys})
    with pytest.raises(DataError, match="pk_uk_info"):
        DtsRowCodec().decode(value, ())


def test_a_column_stores_the_kind_it_had_when_it_is_null():
    codec = DtsRowCodec()

    def kinds(after):
        value = row_record("INSERT", [("id", 8), ("b", 252), ("d", 246)], after=after)
        return [c.kind for c in codec.decode(value, ()).schema.columns]

    decimal = branch("Decimal", value="1.5", precision=4, scale=1)
    blob = branch("BinaryObject", type="BLOB", value=b"x")
    assert kinds([integer(1), None, None]) == [Kind.INTEGER, Kind.TEXT, Kind.DECIMAL]
    assert kinds([integer(1), blob, decimal]) == [Kind.INTEGER, Kind.BINARY, Kind.DECIMAL]
    assert kinds([integer(1), None, None]) == [Kind.INTEGER, Kind.BINARY, Kind.DECIMAL]


def test_the_schema_is_one_object_as_long_as_nothing_new_is_learned():
    codec = DtsRowCodec()

    def schema(after, columns=(("id", 8), ("n", 253))):
        return codec.decode(row_record("INSERT", list(columns), after=after), ()).schema

    first = schema([integer(1), character(b"a")])
    assert schema([integer(2), None]) is first
    assert schema([integer(2), character(b"b")]) is first
    larger = schema([integer(2**63), character(b"b")])
    assert larger is not first
    assert larger.columns[0].unsigned
    assert schema([integer(3), character(b"b")]) is larger
    # Another column list is another schema, whatever the table's name.
    assert schema([integer(3)], columns=(("id", 8),)) is not larger


def test_decimals_learn_their_digits():
    codec = DtsRowCodec()

    def column(value, precision, scale):
        raw = branch("Decimal", value=value, precision=precision, scale=scale)
        rows = codec.decode(row_record("INSERT", [("d", 246)], after=[raw]), ())
        assert inserted(rows)[0] == value
        return rows.schema.columns[0].precision, rows.schema.columns[0].scale

    assert column("1.50", 4, 2) == (4, 2)
    assert column("100000.5", 7, 1) == (8, 2)
    assert column("1.50", 4, 2) == (8, 2)


@pytest.mark.parametrize(
    ("text", "plain"),
    [("1E-8", "0.00000001"), ("-1.50E+3", "-1500"), ("0E-10", "0.0000000000"), ("2e1", "20")],
)
def test_a_decimal_has_no_exponent(text, plain):
    """Java writes small ones so, and whoever counts digits behind the point finds none."""
    codec = DtsRowCodec()
    for value, expected in (("1.5", "1.5"), (text, plain), ("2.5", "2.5")):
        image = [branch("Decimal", value=value, precision=20, scale=10)]
        rows = codec.decode(row_record("INSERT", [("c", 246)], after=image), ())
        assert inserted(rows) == (expected,)


def test_charsets_may_change_from_value_to_value():
    codec = DtsRowCodec()
    for data, charset, expected in [
        (b"\xe9", "latin1", "é"),
        ("é".encode(), "utf8mb4", "é"),
        (b"\xe9", "binary", b"\xe9"),
        (b"\xe9", "latin1", "é"),
    ]:
        rows = codec.decode(
            row_record("INSERT", [("c", 253)], after=[character(data, charset)]), ()
        )
        assert rows.images[0][1] == (expected,)


@pytest.mark.parametrize(
    "value",
    [
        character(b"x", "klingon"),
        integer("one"),
        branch("Decimal", value="1E", precision=20, scale=10),
        branch(
            "TimestampWithTimeZone",
            value=moment(2026, 1, 2, 3, 4, 5, 6)[1],
            timezone="Mars/Olympus",
        ),
    ],
)
def test_a_value_that_cannot_be_decoded_is_an_error_that_names_the_column(value):
    record_ = row_record("INSERT", [("id", 8), ("odd", 253)], after=[integer(1), value])
    with pytest.raises(DataError) as caught:
        DtsRowCodec().decode(record_, ())
    assert caught.value.where["column"] == "odd"
    assert caught.value.where["table"] == "orders"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0" * 60,
        record("BEGIN", objectName="s.t"),
        row_record("INSERT", [("id", 8)], after=None),
        row_record("UPDATE", [("id", 8)], after=[integer(1)]),
        row_record("DELETE", [("id", 8)], after=[integer(1)]),
        row_record("INSERT", [("id", 8)], after=[integer(1), integer(2)]),
        row_record("INSERT", [("id", 8)], after="text"),
        record("INSERT", objectName="s.t", afterImages=[integer(1)]),
        record("INSERT", objectName="s.t", fields="id", afterImages=[integer(1)]),
        row_record("INSERT", [("id", 8)], after=[integer(1)])[:-1],
    ],
)
def test_records_without_a_row_are_an_error(value):
    with pytest.raises(DataError):
        DtsRowCodec().decode(value, ())


_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
_COLUMN = st.one_of(
    st.integers(-(2**63), 2**64).map(lambda v: (8, integer(v), v)),
    st.text(max_size=30).map(lambda v: (253, character(v.encode("utf-8", "replace")), v)),
    st.binary(max_size=30).map(lambda v: (252, branch("BinaryObject", type="BLOB", value=v), v)),
    st.floats(allow_nan=False).map(
        lambda v: (5, branch("Float", value=v, precision=1, scale=0), v)
    ),
    st.just((253, None, None)),
    st.just((253, absent(), ABSENT)),
).filter(lambda c: not isinstance(c[2], str) or c[2].isprintable() or c[2].isascii())


@given(
    columns=st.lists(st.tuples(_NAMES, _COLUMN), min_size=1, max_size=8),
    schema=_NAMES,
    table=_NAMES,
)
def test_what_is_written_is_read_back(columns, schema, table):
    escaped = ".".join(part.replace(".", "\\u002E") for part in (schema, table))
    value = row_record(
        "INSERT",
        [(name, number) for name, (number, _, _) in columns],
        after=[raw for _, (_, raw, _) in columns],
        name=escaped,
    )
    entry = read_header(value, AT)
    assert (entry.schema, entry.table) == (schema, table)
    rows = DtsRowCodec().decode(value, ())
    assert rows.schema.names == tuple(name for name, _ in columns)
    assert rows.images == [(None, tuple(expected for _, (_, _, expected) in columns))]


@given(flip=st.integers(0, 8 * 300), cut=st.integers(0, 300))
def test_damaged_records_decode_or_give_a_data_error(flip, cut):
    value = bytearray(
        row_record(
            "UPDATE",
            [("id", 8), ("name", 253), ("at", 12), ("d", 246)],
            before=[integer(1), character(b"a"), moment(2026, 1, 2, 3, 4, 5, 6), None],
            after=[
                integer(1),
                character("ü".encode() * 20),
                moment(2026, 1, 2, 3, 4, 5, 6),
                branch("Decimal", value="1.5", precision=4, scale=1),
            ],
            tags={"pk_uk_info": '{"PRIMARY":["id"]}'},
        )
    )
    value[flip // 8 % len(value)] ^= 1 << flip % 8
    damaged = bytes(value[: max(0, len(value) - cut)])
    with contextlib.suppress(DataError):
        DtsRowCodec().decode(damaged, ())


def test_rows_of_a_split_table_are_of_its_logical_table_whatever_part_they_come_from():
    codec = DtsRowCodec()
    tags = {"l_db_name": "shop", "l_tb_name": "orders", "pk_uk_info": '{"PRIMARY":["id"]}'}
    schemas = set()
    for part in ("shop_0001.orders_a1", "shop_0002.orders_b2"):
        value = row_record("INSERT", [("id", 8)], after=[integer(1)], name=part, tags=tags)
        rows = codec.decode(value, ())
        schemas.add((rows.schema.schema, rows.schema.table, rows.schema.key))
        assert (rows.schema.schema, rows.schema.table) == read_header(value, AT)[3:5]
        physical = DtsRowCodec(logical_names=False).decode(value, ()).schema
        assert f"{physical.schema}.{physical.table}" == part
    assert schemas == {("shop", "orders", (0,))}


@pytest.mark.parametrize(
    ("charset", "data", "of"),
    [
        ("gbk", b"\xc0", "gbk"),
        ("utf8mb4", b"\xff\xfe", "utf8mb4"),
        ("utf16", b"\xd8\x00", "utf16"),
        ("BYTES OF cp932", b"\x87\x90", "cp932"),  # as setl writes a key's second encoding
    ],
)
def test_text_without_a_utf_8_form_stays_bytes(charset, data, of):
    record_ = row_record(
        "INSERT", [("id", 8), ("odd", 253)], after=[integer(1), character(data, charset)]
    )
    ((_, after),) = DtsRowCodec().decode(record_, ()).images
    assert after == (1, text_of_bytes(of, data.hex().upper()))
