"""Rows packed by column, against the same rows decoded and packed one by one."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.binlog.columns.finding import find_rows
from setl.codec.binlog.columns.form import binlog_form
from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.images import UnfitRowsError
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.row_codec import DAMAGED
from setl.errors import DataError
from setl.model.schema import Capacity, Kind, RowSchema
from setl.systems.mysql.load.columns.literals import rendered_columns
from setl.systems.mysql.load.columns.parameters import packed_columns
from setl.systems.mysql.load.row_statement import Limits, RowStatement
from setl.systems.mysql.load.statements import plan_writes
from tests.unit.codec.binlog_events import EventWriter, field, names, packed
from tests.unit.codec.binlog_tables import (
    COLUMN_TYPES,
    changes,
    has_readable_values,
    table_of,
    written,
)
from tests.unit.codec.dts_records import branch, integer, row_record
from tests.unit.codec.test_dts_columns import found_rows, numbered, payloads_of, tables

TABLES = 300
INSERTS = (23, 30)

TYPES = [
    *COLUMN_TYPES,
    *[(246, bytes([p, s])) for p, s in [(9, 0), (18, 0), (19, 1), (38, 38), (65, 0), (5, 5)]],
    *[(254, b"\xf7\1"), (254, b"\xf8\1"), (15, b"\x14\0"), (254, b"\xfe\x10")] * 2,
    (16, b"\0\1"),
    (16, b"\0\x08"),
    (255, b"\4"),
    (242, b"\4"),
]

# Of each kind what a column of it may be at the target, the first one as the source has it.
CAPACITIES = {
    Kind.INTEGER: [Capacity("bigint"), Capacity("float"), Capacity("varchar", 20)],
    Kind.DECIMAL: [Capacity("decimal", scale=30), Capacity("decimal", scale=1), Capacity("double")],
    Kind.FLOAT: [
        Capacity("double"), Capacity("float"), Capacity("int"),
        Capacity("float", scale=2, digits=6), Capacity("varchar", 5),
    ],
    Kind.TEXT: [
        Capacity("varchar", 300, charset="utf8mb4"), Capacity("char", 6), Capacity("varchar", 3),
        Capacity("text", 12), Capacity("uuid"), Capacity("enum", labels=("a", "b")),
        Capacity("varchar", 9, charset="latin1", fills_null=True),
    ],
    Kind.ENUM: [
        Capacity("enum", labels=("a", "b", "cd")), Capacity("enum", labels=("a", "b")),
        Capacity("enum", labels=("a", "", "b", "cd")), Capacity("varchar", 9), Capacity("enum"),
        Capacity("enum", labels=("b", "cd", "a"), alike=True),
    ],
    Kind.SET: [
        Capacity("set", labels=("a", "b", "cd")), Capacity("set", labels=("a", "b")),
        Capacity("set", labels=("cd", "b", "a"), alike=True), Capacity("varchar", 9),
    ],
    Kind.DATE: [Capacity("date"), Capacity("datetime", scale=0), Capacity("varchar", 9)],
    Kind.TIME: [Capacity("time", scale=6), Capacity("time", scale=1), Capacity("time", scale=0)],
    Kind.DATETIME: [
        Capacity("datetime", scale=6), Capacity("datetime", scale=3), Capacity("datetime", scale=0),
        Capacity("date"),
    ],
    Kind.TIMESTAMP: [
        Capacity("timestamp", scale=6), Capacity("timestamp", scale=2, fills_null=True),
        Capacity("timestamp", scale=0),
    ],
    Kind.YEAR: [Capacity("year"), Capacity("int")],
    Kind.BIT: [Capacity("bit"), Capacity("bigint"), Capacity("float")],
    Kind.BINARY: [Capacity("blob"), Capacity("binary", 20), Capacity("binary", 3), Capacity("int")],
    Kind.GEOMETRY: [Capacity("geometry")],
    Kind.JSON: [Capacity("json"), Capacity("longtext", 2**32 - 1, charset="utf8mb4")],
}  # fmt: skip


def statement_for(pick, schema, *, odd):
    """An INSERT into a table whose columns hold these, or mostly so."""
    columns = [
        replace(
            column,
            capacity=pick.choice(CAPACITIES[column.kind])
            if pick.random() < odd
            else CAPACITIES[column.kind][0],
            generated=i > 0 and pick.random() < odd / 9,
        )
        for i, column in enumerate(schema.columns)
    ]
    target = RowSchema("shop", "t", tuple(columns), (0,))
    key = (0,) if pick.random() < 0.9 or len(columns) < 2 else (0, 1)
    given = [replace(column, generated=False) for column in schema.columns]
    found = plan_writes(tuple(given), key, target).inserts
    return found if found.takes_parameters else None


def column_rows(table, events):
    found = find_rows(table.form, [(0, b"".join(events))])
    return ColumnRows(found, found.starts)


def by_row(statement: RowStatement, rows):
    try:
        made = statement.packed(rows)
    except DataError:
        return None
    return made.types, b"".join(made.rows), [*made.ends]


def by_column(statement, rows):
    made = packed_columns(statement.fit(), rows)
    if made is None:
        return None
    (data,) = made.between(0, len(rows))
    return made.types, bytes(data), [*made.ends]


def as_text(statement, rows):
    """As literals both ways; None for what is not made."""
    try:
        texts, _ = statement.rendered([*rows])
        expected = "".join(f"{text}\n" for text in texts).encode()
    except (DataError, UnicodeEncodeError):
        expected = None
    made = rendered_columns(statement.fit(), rows, b"\n")
    if made is not None:
        assert expected is not None
        assert bytes(made.data) == expected
        assert int(made.ends[-1]) == len(expected)
        held = []
        for text, some in statement.divided(rows, Limits(rows=2, size=500)):
            assert len(some) <= 2
            assert text == statement.text([*some])
            held += some
        assert held == rows


def compared(statement, rows):
    """Whether both ways make the same of rows, or the one by column makes nothing."""
    expected, found = by_row(statement, [*rows]), by_column(statement, rows)
    as_text(statement, rows)
    if found is not None:
        assert found == expected
    return {(True, True): "same", (True, False): "by row", (False, False): "refused"}[
        expected is not None, found is not None
    ]


@pytest.mark.parametrize("odd", [0, 0.3])
def test_the_same_bytes_of_random_tables(odd):
    ways = Counter()
    for seed in range(TABLES):
        pick = Random(seed)
        table = table_of(pick, types=TYPES, most=pick.choice([4, 20]))
        changed = changes(table, kinds=INSERTS, odd=odd / 30)
        rows = column_rows(table, written(table, changed))
        statement = statement_for(pick, table.schema, odd=odd / 3)
        if statement is None or not has_readable_values(rows):
            ways["other"] += 1
            continue
        ways[compared(statement, rows)] += 1
        if len(rows) > 3:
            ways[compared(statement, rows.part(1, 3))] += 0
    # Random bytes are no number now and then, and what is odd is left to the rows' way.
    assert ways["same"] > TABLES * (0.5 if odd else 0.7)
    assert ways["by row"] < TABLES * (0.3 if odd else 0.02)


def test_damaged_bytes_are_refused_or_the_same_bytes():
    for seed in range(TABLES):
        pick = Random(seed)
        table = table_of(pick, types=TYPES)
        payload = bytearray(b"".join(written(table, changes(table, kinds=INSERTS))))
        for _ in range(1 + pick.randrange(3)):
            at = pick.randrange(len(payload))
            payload[at : at + 1] = pick.choice(
                [b"\0", b"\x7f", b"\xfb", b"\xff", pick.randbytes(1)]
            )
        try:
            rows = column_rows(table, [bytes(payload)])
        except UnfitRowsError:
            continue
        statement = statement_for(pick, table.schema, odd=0)
        if statement is not None and has_readable_values(rows):
            compared(statement, rows)


def test_columns_that_do_not_pass_are_not_in_rows():
    pick = Random(1)
    for _ in range(30):
        table = table_of(pick, types=TYPES)
        every = column_rows(table, written(table, changes(table, kinds=INSERTS, odd=0)))
        schema = table.schema
        picks = [
            0,
            *pick.sample(range(1, len(schema.columns)), pick.randrange(len(schema.columns))),
        ]
        passing = replace(schema, columns=tuple(schema.columns[i] for i in picks))
        statement = statement_for(pick, passing, odd=0)
        if statement is not None:
            compared(statement, every.picked(picks))


@pytest.mark.parametrize("length", [0, 1, 250, 251, 65_535, 65_536, 70_000])
def test_the_length_stands_in_front(length):
    writer = EventWriter(mariadb=True)
    optional = names("id", "t") + field(8, b"\0") + field(2, packed(45))
    described = writer.table_map([(3, b""), (252, b"\3")], optional=optional, nullable=2)
    context = (writer.format_description(), described)
    rows = [
        (b"\0" if text is not None else b"\2")
        + number.to_bytes(4, "little")
        + (b"" if text is None else len(text).to_bytes(3, "little") + text)
        for number, text in enumerate([b"a", None, b"x" * length, b"\xc3\xa9", b""])
    ]
    form = binlog_form(context)
    assert form is not None
    found = find_rows(form, [(0, writer.rows(30, 2, rows))])
    statement = statement_for(Random(1), form.schema, odd=0)
    assert compared(statement, ColumnRows(found, found.starts)) == "same"


def rows_of_records(values):
    """Rows of DTS records by column; None if they are read one by one."""
    codec = DtsRowCodec()
    try:
        for value in values * 2:
            codec.decode(value, ())
        found = found_rows(codec, payloads_of(numbered(values)))
        if found is None:
            return None
        found.values.convert()
    except (DataError, *DAMAGED):
        return None
    return ColumnRows(found, found.starts)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(0, 2**32))
def test_the_same_bytes_of_dts_records(values, seed):
    rows = rows_of_records(values) if values else None
    if rows is None:
        return
    statement = statement_for(Random(seed), rows.images.form.schema, odd=0.3)
    if statement is not None and not any("_NUMBER" in repr(value) for value in values):
        compared(statement, rows)


@pytest.mark.parametrize(("scale", "way"), [(1, "refused"), (2, "same")])
def test_digits_that_a_record_does_not_count_are_not_rounded(scale, way):
    values = [
        row_record(
            "INSERT",
            [("id", 3), ("d", 246)],
            after=[integer(number), branch("Decimal", value=text, precision=10, scale=0)],
        )
        for number, text in enumerate(["1.5", "7", "1.55"])
    ]
    rows = rows_of_records(values)
    assert rows is not None
    columns = rows.images.form.schema.columns
    target = [Capacity("int"), Capacity("decimal", scale=scale)]
    held = tuple(replace(c, capacity=t) for c, t in zip(columns, target, strict=True))
    statement = plan_writes(columns, (0,), RowSchema("shop", "t", held, (0,))).inserts
    assert compared(statement, rows) == way
