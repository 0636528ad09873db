"""PARTIAL_UPDATE_ROWS events, made byte by byte as MySQL writes them."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.values.json_diff import applied
from setl.errors import DataError
from setl.model.change import ABSENT, Op
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_events import EventWriter, entries_of, names, packed
from tests.unit.codec.test_mysql_json import document, opaque

INT, JSON = (3, b""), (245, b"\4")
REPLACE, INSERT, REMOVE = 0, 1, 2


def diff(operation, path, value=None):
    data = path.encode()
    change = bytes([operation]) + packed(len(data)) + data
    if operation != REMOVE:
        value = value if isinstance(value, bytes) else document(value)
        change += packed(len(value)) + value
    return change


def changes(*diffs):
    data = b"".join(diffs)
    return struct.pack("<I", len(data)) + data


def whole(value):
    data = document(value)
    return struct.pack("<I", len(data)) + data


def number(value):
    return struct.pack("<i", value)


def image(*values):
    """None is NULL."""
    nulls = sum(1 << i for i, value in enumerate(values) if value is None)
    width = (len(values) + 7) // 8
    return nulls.to_bytes(width, "little") + b"".join(v for v in values if v is not None)


def after(partial, *values):
    options = b"\0" if partial is None else b"\1" + bytes([partial])
    return options + image(*values)


def update(columns, images, *, present=None, name=("id", "a", "b", "c")):
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("BEGIN"),
        writer.table_map(columns, optional=names(*name[: len(columns)])),
        writer.rows(39, len(columns), images, present=present),
        writer.xid(),
    ]
    entries, _ = entries_of(events)
    (rows,) = [e for e in entries if e.kind is EntryKind.ROWS]
    return rows, BinlogRowCodec().decode(rows.payload, rows.context)


def test_changes_are_applied_to_the_value_before():
    before = {"a": 1, "name": "é", "list": [1, 2.5]}
    diffs = changes(
        diff(REPLACE, "$.a", 2**63),
        diff(INSERT, "$.list[1]", [True, None]),
        diff(REMOVE, "$.name"),
        diff(INSERT, '$."odd name"', {"x": 1}),
    )
    entry, rows = update([INT, JSON], [image(number(7), whole(before)), after(1, number(7), diffs)])
    assert rows.op is Op.UPDATE
    assert entry.rows == 1
    assert rows.images == [
        (
            (7, '{"a": 1, "name": "é", "list": [1, 2.5]}'),
            (7, '{"a": 9223372036854775808, "list": [1, [true, null], 2.5], "odd name": {"x": 1}}'),
        )
    ]


def test_bits_are_of_json_columns_and_rows_take_turns():
    columns = [JSON, INT, JSON, JSON]
    images = [
        image(whole([1]), number(1), whole({"k": 1}), None),
        # The first of three is whole, the second has changed, the third has become something.
        after(0b010, whole([2]), number(2), changes(diff(REPLACE, "$.k", 9)), whole("x")),
        image(whole([3]), number(3), whole([]), whole(1)),
        after(None, whole([4]), number(4), None, whole(2)),
        image(whole([5]), number(5), whole([0]), whole(1)),
        after(0b111, changes(diff(REMOVE, "$[0]")), number(6), None, changes()),
    ]
    _, rows = update(columns, images)
    assert rows.images == [
        (("[1]", 1, '{"k": 1}', None), ("[2]", 2, '{"k": 9}', '"x"')),
        (("[3]", 3, "[]", "1"), ("[4]", 4, None, "2")),
        (("[5]", 5, "[0]", "1"), ("[]", 6, None, "1")),
    ]


def test_columns_that_are_left_out_are_absent():
    images = [image(number(1), whole({"k": 1})), after(1, number(1), changes())]
    _, rows = update([INT, JSON, INT], images, present=b"\3")
    assert rows.images == [((1, '{"k": 1}', ABSENT), (1, '{"k": 1}', ABSENT))]


def test_changes_of_a_value_that_is_not_said_are_refused():
    writer = EventWriter()
    width = b"\1"
    body = struct.pack("<IHH", 9, 0, 1) + struct.pack("<H", 2) + packed(2) + width + b"\3"
    body += image(number(1)) + after(1, number(1), changes(diff(REPLACE, "$.k", 9)))
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.query("BEGIN"),
        writer.table_map([INT, JSON], optional=names("id", "a")),
        writer.event(39, body),
        writer.xid(),
    ]
    (rows,) = [e for e in entries_of(events)[0] if e.kind is EntryKind.ROWS]
    with pytest.raises(DataError, match=r"not what it was.*binlog_row_value_options=''") as caught:
        BinlogRowCodec().decode(rows.payload, rows.context)
    assert caught.value.where["table"] == "orders"


@pytest.mark.parametrize(
    ("before", "change", "text"),
    [
        ([1, 2], diff(INSERT, "$[9]", 3), "[1, 2, 3]"),
        ([1, 2], diff(INSERT, "$[0]", 3), "[3, 1, 2]"),
        ([1, 2], diff(REPLACE, "$[last]", 3), "[1, 3]"),
        ([1, 2], diff(REMOVE, "$[last-1]"), "[2]"),
        ({"a": [{"b": {}}]}, diff(INSERT, "$.a[0].b.c", None), '{"a": [{"b": {"c": null}}]}'),
        ({"aa": 1}, diff(INSERT, "$.z", 1), '{"z": 1, "aa": 1}'),
        ({"ab": 1}, diff(INSERT, "$.aa", 1), '{"aa": 1, "ab": 1}'),
        ({'q"\\': 1}, diff(REPLACE, '$."q\\"\\\\"', "\x01"), '{"q\\"\\\\": "\\u0001"}'),
        ({"größe": 1}, diff(REMOVE, "$.größe"), "{}"),
        ({"": 1}, diff(REPLACE, '$.""', False), '{"": false}'),
        ([1e300, -0.5], diff(REMOVE, "$[1]"), "[1e300]"),
        # A DECIMAL keeps its zeros.
        ([1], diff(INSERT, "$[1]", opaque(246, b"\4\2\x81\x0a")), "[1, 1.10]"),
    ],
)
def test_one_change(before, change, text):
    assert applied(document(before), change) == text


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({}, diff(REPLACE, "$.a", 1)),
        ({}, diff(REMOVE, "$.a")),
        ({"a": 1}, diff(INSERT, "$.a", 1)),
        ([], diff(REPLACE, "$[0]", 1)),
        ([], diff(REMOVE, "$[0]")),
        ([], diff(INSERT, "$.a", 1)),
        ({}, diff(INSERT, "$[0]", 1)),
        (1, diff(INSERT, "$[0]", 1)),
        ({"a": 1}, diff(REPLACE, "$.a.b", 1)),
        ([[1]], diff(REPLACE, "$[0][1]", 1)),
        ([1], diff(REPLACE, "$", 1)),
        ([1], diff(REPLACE, "$[*]", 1)),
        ([1], diff(REPLACE, "", 1)),
        ([1], diff(7, "$[0]", 1)),
        ([1], diff(REPLACE, "$[0]", 1)[:-1]),
    ],
)
def test_changes_that_are_of_another_value_are_refused(before, change):
    with pytest.raises((ValueError, LookupError)):
        applied(document(before), change)


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=4), _NAMES, _VALUES, st.data())
def test_any_change_gives_what_it_says(before, name, value, data):
    path = f"$.{json.dumps(name, ensure_ascii=data.draw(st.booleans()))}"
    operation = REPLACE if name in before else INSERT
    got = applied(document(before), diff(operation, path, value))
    assert json.loads(got) == {**before, name: value}
    assert json.loads(applied(document({**before, name: value}), diff(REMOVE, path))) == {
        k: v for k, v in before.items() if k != name
    }
