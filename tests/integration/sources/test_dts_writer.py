"""Rows of a MariaDB server, written as DTS records, against what the server says they are."""

from datetime import UTC, datetime, timedelta

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.dts.table_form import DtsTableForms
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.model.schema import COLUMN_KINDS, Kind
from tests.integration.every_type import CHARSETS, TYPES, run, sandbox_database, stream
from tests.integration.type_catalogue import known
from tests.unit.codec.binlog_server import as_value, comparable, selected, utc_text
from tests.unit.codec.dts_records import as_published


@pytest.fixture(scope="module")
def sandbox(site_a):
    with sandbox_database(site_a) as sandbox:
        yield sandbox


def written(entries):
    """(decoded row change, its record) of every row of some entries."""
    writer, forms, codec = DtsRecordWriter("10.11"), DtsTableForms(), BinlogRowCodec()
    pairs = []
    for entry in entries:
        if entry.kind is EntryKind.ROWS:
            facts = TransactionFacts(entry.position, 1_700_000_000_000, entry.transaction)
            rows = codec.decode(entry.payload, entry.context)
            records = writer.transaction(facts).rows(
                forms.form(entry.context),
                rows,
                first_id=len(pairs),
                seconds=int(entry.timestamp),
                position=entry.position,
            )
            pairs += [
                (rows._replace(images=[image]), record)
                for image, record in zip(rows.images, records, strict=True)
            ]
    return pairs


def plain(number, value):
    """A value as text or bytes, the way a reader does it that knows the public schema only."""
    if value is None:
        return None
    branch, members = value
    branch = branch.rpartition(".")[2]
    if branch == "Timestamp":
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=members["timestamp"])
        text = f"{moment:%Y-%m-%d %H:%M:%S}.{members['millis']:06d}"
        return text if members["timestamp"] else "0000-00-00 00:00:00.000000"
    if branch == "DateTime":
        return plain_moment(number, *members.values())
    if branch == "Character":
        text = members["charset"] == "utf8mb4"
        return members["value"].decode("utf-8") if text else members["value"]
    return members["value"]


def plain_moment(number, year, month, day, hour, minute, second, micros):
    if number == 13:
        return str(year)
    date = "" if year is None else f"{year:04d}-{month:02d}-{day:02d}"
    if hour is None:
        return date
    sign = "-" if any(part < 0 for part in (hour, minute, second, micros)) else ""
    clock = f"{abs(hour):02d}:{abs(minute):02d}:{abs(second):02d}.{abs(micros):06d}"
    return f"{date} {clock}" if date else sign + clock


def check(server, table, pairs):
    """Every record says what its row change says, to setl and to anybody; returns the last ones.

    Of inserts it says what the server says too.
    """
    reader = DtsRowCodec()
    read_back, read_plainly = [], []
    for rows, record in pairs:
        again = reader.decode(record, ())
        assert again.op is rows.op
        assert again.images == rows.images
        assert [[type(v) for v in side or ()] for side in again.images[0]] == [
            [str if isinstance(v, str) else type(v) for v in side or ()] for side in rows.images[0]
        ]
        assert again.schema.name == rows.schema.name
        assert again.schema.names == rows.schema.names
        assert again.schema.key == rows.schema.key
        datum = as_published(record)
        numbers = [field["dataTypeNumber"] for field in datum["fields"]]
        if rows.op is Op.INSERT:
            read_back.append(comparable(rows.schema, again.images[0][1]))
            values = [plain(n, v) for n, v in zip(numbers, datum["afterImages"], strict=True)]
            read_plainly.append(
                tuple(
                    as_value(column.kind, value) if isinstance(value, str) else value
                    for column, value in zip(rows.schema.columns, values, strict=True)
                )
            )
    if read_back:
        schema = pairs[-1][0].schema
        with utc_text(server) as cursor:
            expected = selected(cursor, table, schema)
        assert read_back == expected
        assert [comparable(schema, row) for row in read_plainly] == expected
    return pairs[-1][0].schema, reader.schema(pairs[-1][1], ())


def test_rows_of_a_table_of_every_type(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.every_type"
    types = known(TYPES, connection)
    # FLOAT columns are told by their names, as SELECT widens their values.
    names = {name: f"{'f' if d == 'FLOAT' else 'c'}_{name}" for name, (d, _) in types.items()}
    columns = ", ".join(f"`{names[name]}` {definition}" for name, (definition, _) in types.items())
    count = max(len(values) for _, values in types.values())
    rows = [
        ", ".join(values[i % len(values)] for _, values in types.values()) for i in range(count)
    ]
    run(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns})")
    inserts = stream(
        site_a,
        connection,
        f"INSERT INTO {table} (id) VALUES (0)",
        *(f"INSERT INTO {table} VALUES ({i}, {row})" for i, row in enumerate(rows, 1)),
    )
    pairs = written(inserts)
    assert len(pairs) == count + 1
    had, said = check(site_a, table, pairs)
    assert [c.kind for c in said.columns] == [c.kind for c in had.columns]
    # MariaDB's JSON is text.
    assert {c.kind for c in said.columns} | {Kind.JSON} == set(COLUMN_KINDS)
    digits = [(c.precision, c.scale) for c in had.columns]
    assert [(c.precision, c.scale) for c in said.columns] == digits
    assert {c.name for c in said.columns if c.unsigned} == {"c_bigint_unsigned"}

    changes = stream(
        site_a,
        connection,
        f"UPDATE {table} SET id = id + 100",
        f"UPDATE {table} a JOIN {table} b ON b.id = 101 SET "
        + ", ".join(f"a.`{name}` = b.`{name}`" for name in names.values())
        + " WHERE a.id = 100",
        f"DELETE FROM {table}",
    )
    pairs = written(changes)
    assert [rows.op for rows, _ in pairs].count(Op.UPDATE) == count + 2
    assert [rows.op for rows, _ in pairs].count(Op.DELETE) == count + 1
    check(site_a, table, pairs)


def test_text_of_every_charset(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.charsets"
    definitions = ", ".join(
        f"`{charset}_{i}` {definition} CHARACTER SET {charset}"
        for charset, text in CHARSETS.items()
        for i, definition in enumerate(("CHAR(10)", "VARCHAR(20)", "TEXT", f"ENUM('{text}')"))
    )
    values = ", ".join(f"'{text}'" for text in CHARSETS.values() for _ in range(4))
    entries = stream(
        site_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, {definitions})",
        f"INSERT INTO {table} VALUES (1, {values})",
    )
    ((rows, record),) = written(entries)
    check(site_a, table, [(rows, record)])
    texts = [value[1]["value"] for value in as_published(record)["afterImages"][2::4]]
    assert [text.decode() for text in texts] == list(CHARSETS.values())


def test_rows_of_which_the_binlog_holds_only_a_part(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.partial"
    entries = stream(
        site_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(9), b INT, c INT DEFAULT 5)",
        "SET SESSION binlog_row_image = MINIMAL",
        f"INSERT INTO {table} VALUES (1, 'a', NULL, 5)",
        f"UPDATE {table} SET a = 'x' WHERE id = 1",
        f"DELETE FROM {table}",
        "SET SESSION binlog_row_image = FULL",
    )
    reader = DtsRowCodec()
    for rows, record in written(entries):
        assert reader.decode(record, ()).images == rows.images
        datum = as_published(record)
        sides = [side for side in (datum["beforeImages"], datum["afterImages"]) if side]
        whole = rows.op is Op.INSERT
        assert any(value and value[1] == "NONE" for side in sides for value in side) != whole


def test_keys(site_a, sandbox):
    connection, schema = sandbox
    entries = stream(
        site_a,
        connection,
        f"CREATE TABLE {schema}.two (a INT, b VARCHAR(9), c INT, PRIMARY KEY (c, b(3)))",
        f"CREATE TABLE {schema}.none (a INT, UNIQUE KEY uk (a))",
        f"INSERT INTO {schema}.two VALUES (1, 'x', 2)",
        f"INSERT INTO {schema}.none VALUES (1)",
    )
    tags = [as_published(record)["tags"]["pk_uk_info"] for _, record in written(entries)]
    assert tags == ['{"PRIMARY":["c","b"]}', "{}"]
