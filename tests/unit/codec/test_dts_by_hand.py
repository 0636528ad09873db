"""Records that are read by hand say what a reader made from the schema says of them."""

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.dts import rows as codec_of_rows
from setl.codec.dts import table_rows
from setl.codec.dts.header import read_header
from setl.codec.dts.header_reader import DtsHeaderReader
from setl.codec.dts.row_chunks import MARK, joined, records_of, rejoined
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import DataError
from setl.model.change import ABSENT, Op
from tests.unit.codec.dts_records import (
    AT,
    absent,
    branch,
    character,
    empty_null,
    fixture_records,
    integer,
    moment,
    record,
    row_record,
)

_INT = st.integers(-(2**31), 2**31 - 1)
_PART = st.one_of(st.none(), st.integers(0, 99), _INT)
_PARTS = st.tuples(st.one_of(st.integers(1900, 2100), _PART), *[_PART] * 6)
_USUAL_TIMES = st.tuples(
    st.integers(1000, 9999),
    st.integers(0, 12),
    st.integers(0, 31),
    *[st.integers(0, 59)] * 3,
    st.integers(0, 999_999),
)
_TEXT = st.text(st.characters(codec="utf-8"), max_size=90)
_DATA = st.one_of(st.binary(max_size=20), st.integers(0, 300).map(lambda n: b"x" * n))
_CHARSETS = st.sampled_from(["utf8mb4", "latin1", "binary", "utf16", "gbk", "no such"])
_DIGITS = st.integers(0, 130)
_ZONES = st.sampled_from(["UTC", "+08:00", "Asia/Shanghai", "nowhere"])
_VALUES = st.one_of(
    st.none(),
    st.builds(absent),
    st.builds(empty_null),
    st.builds(integer, st.one_of(st.integers(-(2**65), 2**65), st.just("x")), _DIGITS),
    st.builds(character, _TEXT.map(str.encode) | _DATA, _CHARSETS),
    st.builds(
        lambda v, p, s: branch("Decimal", value=v, precision=p, scale=s), _TEXT, _DIGITS, _DIGITS
    ),
    st.builds(
        lambda v, p, s: branch("Float", value=v, precision=p, scale=s),
        st.floats(allow_nan=False),
        _DIGITS,
        _DIGITS,
    ),
    st.builds(
        lambda s, m: branch("Timestamp", timestamp=s, millis=m),
        st.integers(-(10**10), 10**11),
        st.integers(0, 10**6) | _INT,
    ),
    st.builds(lambda parts: moment(*parts), _PARTS | _USUAL_TIMES),
    st.builds(
        lambda parts, zone: branch("TimestampWithTimeZone", value=moment(*parts)[1], timezone=zone),
        _USUAL_TIMES,
        _ZONES,
    ),
    st.builds(lambda v: branch("BinaryGeometry", type="GEOMETRY", value=v), _DATA),
    st.builds(lambda v: branch("TextGeometry", type="GEOMETRY", value=v), _TEXT),
    st.builds(lambda t, v: branch("BinaryObject", type=t, value=v), _TEXT, _DATA),
    st.builds(
        lambda t, v: branch("TextObject", type=t, value=v),
        st.sampled_from(["JSON", "ENUM", "TEXT", "set"]),
        _TEXT,
    ),
)
_TYPES = st.sampled_from([3, 7, 8, 10, 11, 12, 13, 14, 16, 245, 246, 247, 248, 252, 253, 255, 9999])


@st.composite
def streams(draw):
    """Records of one table, whose columns mostly hold values like those before."""
    columns = draw(st.lists(st.tuples(_TEXT, _TYPES), min_size=1, max_size=5))
    images = st.tuples(*[_VALUES] * len(columns)).map(list)
    usual = draw(images)
    image = st.just(usual) | images
    made = []
    for number, operation in enumerate(
        draw(st.lists(st.sampled_from(["INSERT", "UPDATE", "DELETE", "INIT"]), max_size=6))
    ):
        made.append(
            row_record(
                operation,
                columns,
                before=None if operation in ("INSERT", "INIT") else draw(image),
                after=None if operation == "DELETE" else draw(image),
                length=draw(st.sampled_from([14, 15])),
                id=number,
                version=draw(_INT),
                sourcePosition=draw(_TEXT),
                tags=draw(st.dictionaries(_TEXT, _TEXT, max_size=2)),
                processTimestamps=draw(st.none() | st.lists(st.integers(0, 2**60), max_size=3)),
            )
        )
    return made


def said(codec, method, value):
    """What a codec makes of a record, or that it refuses it."""
    try:
        rows = codec.decode(value, ()) if method == "decode" else codec._read_by_schema(value)
    except DataError as error:
        return type(error), error.message, dict(error.where)
    # repr: -0.0 is not 0.0, and 1 is not True.
    return rows.schema, rows.op, repr(rows.images)


@settings(max_examples=300)
@given(streams())
def test_by_hand_and_by_the_schema_are_the_same(values):
    by_hand, by_schema = DtsRowCodec(), DtsRowCodec()
    for value in values * 2:
        expected = said(by_schema, "_read_by_schema", value)
        assert said(by_hand, "decode", value) == expected


_HALF_TOLD = st.one_of(
    st.sampled_from(
        [
            moment(2026, 1, 2, 3, 4, 5, 6),
            moment(2026, 1, 2, *[None] * 4),
            moment(None, None, None, 3, 4, 5, 6),
            moment(2026, *[None] * 6),
            *[branch("TextObject", type=t, value="[]") for t in ("JSON", "ENUM", "TEXT")],
            *[character(b"1", charset) for charset in ("utf8mb4", "binary")],
            integer("x"),
            integer(7),
            None,
        ]
    ),
    _VALUES,
)


@st.composite
def changing_streams(draw):
    """Records whose columns say something else of themselves again and again."""
    numbers = draw(st.lists(st.sampled_from([10, 11, 12, 14, 245, 9999]), min_size=1, max_size=3))
    columns = [(f"c{i}", number) for i, number in enumerate(numbers)]
    images = st.tuples(*[_HALF_TOLD] * len(columns)).map(list)
    return [
        row_record("INSERT", columns, after=image)
        for image in draw(st.lists(images, min_size=2, max_size=5))
    ]


@settings(max_examples=300)
@given(streams() | changing_streams(), st.sampled_from(["decode", "_read_by_schema"]))
def test_a_record_means_the_same_whatever_came_before(values, method):
    """I22; refused records are among those before."""
    experienced = DtsRowCodec()
    for value in values * 2:
        assert meaning(experienced, method, value) == meaning(DtsRowCodec(), method, value)


def meaning(codec, method, value):
    """What a codec makes of a record, with the kinds of those columns that it has values of."""
    heard = said(codec, method, value)
    if heard[0] is DataError:
        return heard
    rows = codec.decode(value, ())
    images = [image for pair in rows.images for image in pair if image is not None]
    kinds = [
        column.kind if any(image[i] not in (None, ABSENT) for image in images) else None
        for i, column in enumerate(rows.schema.columns)
    ]
    return rows.op, repr(rows.images), kinds


USUAL = [("id", 8), ("n", 3), ("name", 253), ("d", 246), ("at", 12), ("f", 5), ("j", 245), ("t", 7)]


def usual_image(number, name="some name"):
    return [
        integer(number),
        integer(-number, 4),
        character(f"{name} {number} ü".encode()),
        branch("Decimal", value=f"{number}.50", precision=12, scale=2),
        moment(2026, 1, 2, 3, 4, number % 60, number * 1000 + 7),
        branch("Float", value=number / 3, precision=22, scale=0),
        branch("TextObject", type="JSON", value="{}") if number % 2 else None,
        branch("Timestamp", timestamp=1_772_600_767 + number, millis=537_000),
    ]


def usual(operation, number, before=0, **more):
    return row_record(
        operation,
        USUAL,
        before=None if operation == "INSERT" else usual_image(before or number, "old"),
        after=None if operation == "DELETE" else usual_image(number, "x" * (number * 40)),
        length=15,
        **{"tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}, **more},
    )


@pytest.fixture
def only_by_hand(monkeypatch):
    """A codec that has seen the usual table, and reads by hand or fails."""
    codec = DtsRowCodec()
    for number in (1, 2):
        codec.decode(usual("UPDATE", number), ())

    def refused(_):
        raise AssertionError("a reader made from the schema was asked")

    monkeypatch.setattr(codec_of_rows, "read_common", refused)
    return codec


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_usual_records_are_read_by_hand(only_by_hand, operation):
    for number in (3, 4, 250):  # 250: names of 10,000 bytes, whose length takes three
        value = usual(operation, number)
        rows = only_by_hand.decode(value, ())
        assert rows.op is Op[operation]
        before, after = rows.images[0]
        for image in (before, after):
            assert image is None or image[0] == number
        if after is not None:
            assert after[1:] == (
                -number,
                "x" * (number * 40) + f" {number} ü",
                f"{number}.50",
                f"2026-01-02 03:04:{number % 60:02d}.{number * 1000 + 7:06d}",
                number / 3,
                "{}" if number % 2 else None,
                f"2026-03-04 05:{6 + (7 + number) // 60:02d}:{(7 + number) % 60:02d}.537000",
            )


def test_what_lies_as_it_did_before_is_read_without_looking_for_its_form(only_by_hand, monkeypatch):
    def looked(*_):
        raise AssertionError("the form of a value was not known")

    monkeypatch.setattr(table_rows, "raw_at", looked)
    for number in (3, 4):
        only_by_hand.decode(usual("UPDATE", number), ())
        only_by_hand.decode(usual("DELETE", number), ())


def test_a_table_is_not_read_again_where_only_other_tags_changed(only_by_hand, monkeypatch):
    def at(second):
        keys = {"pk_uk_info": '{"PRIMARY":["id"]}', "readerThroughoutTime": f"17000000{second}"}
        return usual("UPDATE", second, tags=keys)

    only_by_hand.decode(at(10), ())

    def read(*_, **__):
        raise AssertionError("the table was read again")

    monkeypatch.setattr(codec_of_rows, "read_identity", read)
    only_by_hand.decode(at(11), ())


def test_what_was_learned_of_a_value_that_is_refused_counts_for_the_next_ones():
    zone = {"value": moment(2026, 1, 2, 24, 0, 0, 0)[1], "timezone": "UTC"}  # there is no hour 24
    images = [[branch("TimestampWithTimeZone", **zone)], [integer(1)]]
    values = [row_record("INSERT", [("c", 3)], after=image) for image in images]
    by_hand, by_schema = DtsRowCodec(), DtsRowCodec()
    for value in values * 3:
        assert said(by_hand, "decode", value) == said(by_schema, "_read_by_schema", value)
    for value in (values[1], *values):  # whoever learns of it
        said(by_hand, "_read_by_schema", value)
        said(by_schema, "_read_by_schema", value)
        expected = said(by_schema, "_read_by_schema", values[1])
        assert said(by_hand, "decode", values[1]) == expected


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_a_record_that_was_cut_off_anywhere_is_refused(operation):
    codec = DtsRowCodec()
    value = usual(operation, 3)
    codec.decode(value, ())
    whole = len(usual(operation, 3, bornTimestamp=0)) - 1  # a reader stops before bornTimestamp
    for end in range(whole):
        with pytest.raises(DataError):
            codec.decode(value[:end], ())
    assert codec.decode(value[:whole], ()) == codec.decode(value, ())


@settings(max_examples=300)
@given(st.integers(0, 10**6), st.integers(0, 7), st.sampled_from(["INSERT", "UPDATE", "DELETE"]))
def test_damaged_rows_are_judged_as_by_the_schema(position, bit, operation):
    value = bytearray(usual(operation, 3))
    position = len(value) // 3 + position % (
        len(value) - len(value) // 3
    )  # behind what is stepped over
    value[position] ^= 1 << bit
    by_hand, by_schema = DtsRowCodec(), DtsRowCodec()
    for codec, method in ((by_hand, "decode"), (by_schema, "_read_by_schema")):
        said(codec, method, usual(operation, 3))
    expected = said(by_schema, "_read_by_schema", bytes(value))
    assert said(by_hand, "decode", bytes(value)) == expected


# ---- runs


PARTS = st.lists(st.tuples(st.integers(1, 9), st.binary(min_size=1, max_size=40)), min_size=1)
# Of an offset 32 bits stand in a run, and they restart in one of these.
BEFORE = st.sampled_from([0, 2**32 - 10, 5 * 2**32 - 3])


@given(PARTS, BEFORE)
def test_a_run_is_taken_apart_again(parts, before):
    parts = [(gap, b"\0" + value) for gap, value in parts]
    offsets = [before + sum(gap for gap, _ in parts[: i + 1]) for i in range(len(parts))]
    payload = joined([(o, value) for o, (_, value) in zip(offsets, parts, strict=True)])
    expected = [(offsets[-1] - o, value) for o, (_, value) in zip(offsets, parts, strict=True)]
    assert list(records_of(payload)) == expected
    assert list(DtsRowCodec().records(payload)) == expected


@given(PARTS, BEFORE, st.data())
def test_runs_behind_each_other_are_one(parts, before, data):
    records = [(before + 9 * i + gap, b"\0" + value) for i, (gap, value) in enumerate(parts)]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(records)))) | {0, len(records)})
    runs = [records[begin:end] for begin, end in pairwise(cuts)]
    assert rejoined([(run[-1][0], joined(run)) for run in runs]) == joined(records)


def test_what_is_no_run_is_one_record():
    for value in (b"", b"\0", MARK, MARK + b"\0" * 3, usual("INSERT", 1)):
        assert list(records_of(value)) == [(0, value)]


@pytest.mark.parametrize("operation", ["INSERT", "INIT", "UPDATE", "DELETE"])
def test_new_rows_are_reported_by_the_first_record_of_a_run(operation):
    value = usual(operation, 1)
    for payload in (value, joined([(1, value), (2, usual("UPDATE", 2))])):
        assert DtsRowCodec().likely_inserts(payload) == (operation in {"INSERT", "INIT"})


def test_what_cannot_be_read_is_no_new_row():
    for value in (b"", MARK, record("BEGIN"), usual("INSERT", 1)[:9]):
        assert not DtsRowCodec().likely_inserts(value)


def test_a_row_like_the_one_before_is_reported_by_its_table():
    def goes_on(first, second, *, logical_names=True):
        reader = DtsHeaderReader(logical_names=logical_names)
        reader.read(first, AT)
        table = reader.table_of_row(second)
        if table is not None:
            one, other = (read_header(v, AT, logical_names=logical_names) for v in (first, second))
            assert one._replace(payload=b"") == other._replace(payload=b"")
            assert table == (other.schema, other.table)
        return table is not None

    one = usual("INSERT", 1)
    assert goes_on(one, usual("INSERT", 2, id=2**40, sourcePosition="9@9"))
    assert goes_on(one, usual("UPDATE", 2))
    assert goes_on(one, usual("DELETE", 2))
    assert not goes_on(one, usual("INIT", 2))
    assert not goes_on(usual("INIT", 1), usual("INIT", 2))
    assert not goes_on(one, usual("INSERT", 2, name="shop.items"))
    assert not goes_on(one, usual("INSERT", 2, name="shop.orders2"))
    assert not goes_on(one, usual("INSERT", 2, name=None))
    assert not goes_on(one, usual("INSERT", 2, sourceTxid="1"))
    assert not goes_on(one, usual("INSERT", 2, sourceTimestamp=1_700_000_001))
    assert not goes_on(one, usual("INSERT", 2, source={"sourceType": "MySQL", "version": "9"}))
    assert not goes_on(one, record("COMMIT", objectName="shop.orders"))
    assert not goes_on(record("BEGIN", objectName="shop.orders"), one)
    assert not goes_on(one, b"\0" * 10)
    assert not goes_on(one, one[:30])
    assert not goes_on(one, b"")
    logical = usual("INSERT", 2, tags={"l_tb_name": "t", "l_db_name": "d"})
    assert not goes_on(one, logical)
    assert goes_on(one, logical, logical_names=False)


def test_tables_are_reported_in_turn_once_they_were_read():
    reader, items = DtsHeaderReader(), usual("INSERT", 2, name="shop.items")
    reader.read(usual("INSERT", 1), AT)
    assert reader.table_of_row(items) is None
    reader.read(items, AT)
    for name in ("orders", "items", "orders"):
        assert reader.table_of_row(usual("DELETE", 3, name=f"shop.{name}")) == ("shop", name)
    reader.read(record("COMMIT"), AT)
    assert reader.table_of_row(items) is None  # of which transaction, nobody has said
    reader.read(record("BEGIN", sourceTxid="1"), AT)
    assert reader.table_of_row(items) is None  # not of that one
    reader.read(record("BEGIN", sourceTimestamp=1_700_000_001), AT)
    assert reader.table_of_row(items) is None  # not of that second
    reader.read(record("BEGIN"), AT)
    assert reader.table_of_row(items) == ("shop", "items")


def test_rows_that_go_on_are_counted_and_a_rollback_of_them_is_refused():
    reader = DtsHeaderReader()
    reader.read(usual("INSERT", 1), AT)
    assert reader.table_of_row(usual("INSERT", 2))
    with pytest.raises(Exception, match="2 rows"):
        reader.read(record("ROLLBACK"), AT)


def test_the_fixture_says_the_same_by_hand():
    by_hand, by_schema = DtsRowCodec(), DtsRowCodec()
    for value, _ in fixture_records() * 2:
        with contextlib.suppress(DataError):
            assert said(by_hand, "decode", value) == said(by_schema, "_read_by_schema", value)


def test_absent_values_stay_absent(only_by_hand):
    value = row_record("DELETE", USUAL, before=[integer(1), *[absent()] * 7],
                       tags={"pk_uk_info": '{"PRIMARY":["id"]}'})  # fmt: skip
    assert only_by_hand.decode(value, ()).images == [((1, *[ABSENT] * 7), None)]
