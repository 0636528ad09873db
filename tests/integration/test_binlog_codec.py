"""The binlog codec against what a MariaDB server says about the same rows."""

import uuid

import pytest

from setl.codec.binlog.rows import BinlogRowCodec
from setl.errors import DataError, FatalError
from setl.model.change import ABSENT, Op
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.schema import Kind
from tests.unit.codec.binlog_server import (
    comparable,
    decoded,
    end_of,
    entries_between,
    selected,
    utc_text,
)
from tests.unit.codec.dts_records import inserted

MAX_TEXT = "'" + "é🙂x" * 3000 + "'"

# Definition of a column, and SQL of values; every column gets NULL as well.
TYPES = {
    "tinyint": ("TINYINT", ["-128", "0", "127"]),
    "tinyint_unsigned": ("TINYINT UNSIGNED", ["0", "128", "255"]),
    "boolean": ("BOOLEAN", ["TRUE", "FALSE"]),
    "smallint": ("SMALLINT", ["-32768", "-1", "32767"]),
    "smallint_unsigned": ("SMALLINT UNSIGNED", ["0", "65535"]),
    "mediumint": ("MEDIUMINT", ["-8388608", "-1", "8388607"]),
    "mediumint_unsigned": ("MEDIUMINT UNSIGNED", ["0", "8388608", "16777215"]),
    "int": ("INT", ["-2147483648", "-1", "2147483647"]),
    "int_unsigned": ("INT UNSIGNED", ["0", "2147483648", "4294967295"]),
    "bigint": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "bigint_unsigned": (
        "BIGINT UNSIGNED",
        ["0", "9223372036854775808", "18446744073709551615"],
    ),
    "decimal": ("DECIMAL(12,2)", ["0", "-0.01", "9999999999.99", "-9999999999.99", "1.5"]),
    "decimal_scale_only": ("DECIMAL(9,9)", ["0", "0.123456789", "-0.000000001"]),
    "decimal_whole": ("DECIMAL(20,0)", ["0", "-1", "99999999999999999999"]),
    "decimal_widest": (
        "DECIMAL(65,30)",
        [
            f"{'9' * 35}.{'9' * 30}",
            f"-{'9' * 35}.{'9' * 30}",
            "0",
            "-1.000000000000000000000000000001",
        ],
    ),
    "decimal_odd": ("DECIMAL(31,11)", ["12345678901234567890.12345678901", "-0.00000000001"]),
    "float": ("FLOAT", ["0.1", "-1.5e-30", "3.4028234e38", "16777217", "0", "1.17549e-38"]),
    "double": ("DOUBLE", ["0.1", "-1.7976931348623157e308", "2.2250738585072014e-308", "0"]),
    "bit1": ("BIT(1)", ["b'0'", "b'1'"]),
    "bit9": ("BIT(9)", ["b'0'", "b'101010101'"]),
    "bit64": ("BIT(64)", ["0", "18446744073709551615"]),
    "year": ("YEAR", ["1901", "2155", "0"]),
    "date": (
        "DATE",
        ["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-02-29'", "'2026-00-00'"],
    ),
    "time": ("TIME", ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    "time1": ("TIME(1)", ["'-00:00:00.1'", "'12:34:56.7'"]),
    "time3": ("TIME(3)", ["'-00:00:00.001'", "'-100:11:12.340'", "'100:11:12.999'"]),
    "time6": ("TIME(6)", ["'-838:59:58.999999'", "'-00:00:00.000001'", "'23:59:59.000001'"]),
    "datetime": ("DATETIME", ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "0"]),
    "datetime2": ("DATETIME(2)", ["'2026-01-02 03:04:05.67'"]),
    "datetime4": ("DATETIME(4)", ["'2026-01-02 03:04:05.6789'"]),
    "datetime6": ("DATETIME(6)", ["'2026-01-02 03:04:05.678901'", "'0000-00-00 00:00:00.000000'"]),
    "timestamp": ("TIMESTAMP NULL", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "0"]),
    "timestamp3": ("TIMESTAMP(3) NULL", ["'2026-06-15 12:00:00.123'"]),
    "timestamp6": ("TIMESTAMP(6) NULL", ["'2026-06-15 12:00:00.000001'", "0"]),
    "char": ("CHAR(10)", ["''", "'ab'", "'ab   '", "'日本🙂'"]),
    "char_long": ("CHAR(255)", ["'x'", "REPEAT('🙂', 255)"]),
    "varchar": ("VARCHAR(40)", ["''", "'  a '", "'日本🙂'", r"'a\'b\\c\0d\n'"]),
    "varchar_long": ("VARCHAR(5000)", ["REPEAT('é', 5000)"]),
    "binary": ("BINARY(5)", ["''", r"'a\0'", "x'0000000000'", "x'ff00ff0000'"]),
    "binary_wide": ("BINARY(255)", ["x'00ff'"]),
    "varbinary": ("VARBINARY(300)", ["''", "x'00ff00'", "REPEAT('z', 300)"]),
    "tinytext": ("TINYTEXT", ["''", "'é'"]),
    "text": ("TEXT", ["'a'", MAX_TEXT]),
    "mediumtext": ("MEDIUMTEXT", ["REPEAT('x', 70000)"]),
    "longtext": ("LONGTEXT", ["'l'"]),
    "tinyblob": ("TINYBLOB", ["x'00'", "''"]),
    "blob": ("BLOB", ["x'c3280000'"]),
    "mediumblob": ("MEDIUMBLOB", ["REPEAT(x'00ff', 40000)"]),
    "longblob": ("LONGBLOB", ["x'80'"]),
    "json": ("JSON", ["""'{"a": [1, "é"]}'""", "'null'", "'[]'"]),
    "enum": ("ENUM('a','b,c','é','')", ["'a'", "'b,c'", "'é'", "''"]),
    "enum_latin1": ("ENUM('x','é') CHARACTER SET latin1", ["'é'"]),
    "enum_gbk": ("ENUM('汉','字') CHARACTER SET gbk", ["'字'"]),
    "enum_large": (
        "ENUM(" + ",".join(f"'v{i}'" for i in range(300)) + ")",
        ["'v0'", "'v254'", "'v255'", "'v299'"],
    ),
    "set": ("SET('a','b','é')", ["''", "'a'", "'a,é'", "'a,b,é'"]),
    "set_large": (
        "SET(" + ",".join(f"'v{i}'" for i in range(64)) + ")",
        ["'v0'", "'v63'", "'v0,v31,v32,v63'"],
    ),
    "geometry": ("GEOMETRY", ["POINT(1,2)", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)"]),
    "point": ("POINT", ["POINT(1.5,-2)"]),
    "compressed_text": ("TEXT COMPRESSED", ["'short'", "REPEAT('long é ', 500)", "''"]),
    "compressed_varchar": ("VARCHAR(200) COMPRESSED", ["'v'", "REPEAT('é', 200)"]),
    "compressed_blob": ("BLOB COMPRESSED", ["x'00'", "REPEAT(x'00ff', 500)"]),
    "uuid": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'"]),
}

CHARSETS = {
    "latin1": "café €",
    "latin2": "Łódź",
    "cp1250": "Łódź",
    "cp1251": "Привет",
    "koi8r": "Привет",
    "koi8u": "Київ",
    "greek": "αβγ",
    "hebrew": "שלום",
    "cp1256": "سلام",
    "latin5": "İstanbul",
    "cp1257": "ąčę",
    "tis620": "ไทย",
    "armscii8": "Հայ",
    "geostd8": "საქ",
    "keybcs2": "žluť",
    "cp850": "ñ",
    "cp852": "ž",
    "cp866": "Да",
    "dec8": "é",
    "hp8": "é",
    "swe7": "åäö",
    "macce": "ž",
    "macroman": "é",
    "latin7": "ž",
    "ascii": "plain",
    "gbk": "汉字",
    "gb2312": "汉字",
    "big5": "漢字",
    "sjis": "日本",
    "cp932": "日本①",
    "ujis": "日本",
    "eucjpms": "日本\uff5e",
    "euckr": "한국",
    "ucs2": "aé日",
    "utf16": "a🙂",
    "utf16le": "a🙂",
    "utf32": "a🙂",
    "utf8mb3": "日本",
    "utf8mb4": "日本🙂",
}


@pytest.fixture(scope="module")
def sandbox(mariadb_a):
    """A connection, and a database that is dropped afterwards."""
    schema = f"codec_{uuid.uuid4().hex[:8]}"
    with mariadb_a.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'")
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
            cursor.execute(f"USE {schema}")
        yield connection, schema
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {schema}")


def run(connection, *statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def stream(mariadb, connection, *statements, **options):
    """Entries of what some statements wrote."""
    start = end_of(connection)
    run(connection, *statements)
    return entries_between(mariadb, start, end_of(connection), **options)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_decodes_to_what_select_says(mariadb_a, sandbox, name):
    connection, schema = sandbox
    definition, values = TYPES[name]
    table = f"{schema}.`{name}`"
    column = f"f_{name}" if definition == "FLOAT" else f"c_{name}"
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, y YEAR DEFAULT 2026, `{column}` {definition}, "
        "last TINYINT UNSIGNED DEFAULT 200)",
        f"INSERT INTO {table} (id, `{column}`) VALUES (0, NULL)",
        *(
            f"INSERT INTO {table} (id, `{column}`) VALUES ({i}, {value})"
            for i, value in enumerate(values, 1)
        ),
    )
    rows = decoded(BinlogRowCodec(), entries)
    assert len(rows) == len(values) + 1
    first = rows[0][1].schema
    assert all(r.schema is first for _, r in rows)
    with utc_text(mariadb_a) as cursor:
        expected = selected(cursor, table, first)
    got = [comparable(first, after) for _, r in rows for _, after in r.images]
    assert got == expected
    for row, again in zip(got, expected, strict=True):
        assert [type(v) for v in row] == [type(v) for v in again]


@pytest.mark.parametrize("charset", CHARSETS)
def test_every_charset_decodes_to_the_text_that_was_written(mariadb_a, sandbox, charset):
    connection, schema = sandbox
    text = CHARSETS[charset]
    table = f"{schema}.cs_{charset}"
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a CHAR(10) CHARACTER SET {charset}, "
        f"b VARCHAR(200) CHARACTER SET {charset}, c TEXT CHARACTER SET {charset}, "
        "d VARCHAR(5) CHARACTER SET utf8mb4)",
        f"INSERT INTO {table} VALUES (1, '{text}', '{text} ', '{text}', 'é')",
    )
    ((_, rows),) = decoded(BinlogRowCodec(), entries)
    with utc_text(mariadb_a) as cursor:
        expected = selected(cursor, table, rows.schema)
    assert [after for _, after in rows.images] == expected
    assert inserted(rows)[1] == text


def test_schema_as_the_binlog_describes_it(mariadb_a, sandbox):
    connection, schema = sandbox
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {schema}.described ("
        "  a VARCHAR(20) COLLATE utf8mb4_bin, b CHAR(20) COLLATE utf8mb4_bin, c VARBINARY(20),"
        "  d VARCHAR(20) COLLATE utf8mb4_general_ci, e DECIMAL(12,3), f BIGINT UNSIGNED,"
        "  g VARCHAR(20) COLLATE utf8mb4_nopad_bin, h VARCHAR(20) COLLATE uca1400_ai_ci,"
        "  i BLOB, PRIMARY KEY (f, c(3), b))",
        f"INSERT INTO {schema}.described (a, b, c, f, h) VALUES ('a', 'b', 'c', 1, 'ü')",
    )
    ((entry, rows),) = decoded(BinlogRowCodec(), entries)
    columns = {c.name: c for c in rows.schema.columns}
    assert rows.schema.name == f"{schema}.described" == f"{entry.schema}.{entry.table}"
    assert rows.schema.key == (5, 2, 1)
    assert (columns["e"].precision, columns["e"].scale) == (12, 3)
    assert [n for n, c in columns.items() if c.unsigned] == ["f"]
    assert {n: c.binary_order for n, c in columns.items()} == {
        "a": False,  # ignores trailing spaces
        "b": True,  # has none
        "c": False,  # only its front is in the key
        "d": False,
        "e": True,
        "f": True,
        "g": True,
        "h": False,
        "i": True,
    }
    assert columns["i"].kind is Kind.BINARY
    assert inserted(rows)[7] == "ü"


def test_updates_and_deletes_of_many_rows(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.many"
    numbers = range(1, 2001)
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, name VARCHAR(50), n INT)",
        f"INSERT INTO {table} VALUES " + ",".join(f"({i}, 'row {i}', NULL)" for i in numbers),
        f"UPDATE {table} SET n = id, name = NULL WHERE id % 2",
        f"UPDATE {table} SET id = id + 10000 WHERE id = 7",
        f"DELETE FROM {table} WHERE id < 10",
    )
    by_op = {op: [] for op in Op}
    for _, rows in decoded(BinlogRowCodec(), entries):
        by_op[rows.op] += rows.images
    assert by_op[Op.INSERT] == [(None, (i, f"row {i}", None)) for i in numbers]
    assert by_op[Op.UPDATE] == [
        *(((i, f"row {i}", None), (i, None, i)) for i in numbers if i % 2),
        ((7, None, 7), (10007, None, 7)),
    ]
    assert [before[0] for before, after in by_op[Op.DELETE] if after is None] == [
        i for i in range(1, 10) if i != 7
    ]
    estimated = sum(e.rows for e in entries if e.kind is EntryKind.ROWS)
    assert 3008 * 0.8 < estimated < 3008 * 1.2


def test_images_without_all_columns_have_absent_values(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.minimal"
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(9), b INT, c INT DEFAULT 5)",
        "SET SESSION binlog_row_image = MINIMAL",
        f"INSERT INTO {table} (id, b) VALUES (1, NULL)",
        f"UPDATE {table} SET a = 'x' WHERE id = 1",
        f"DELETE FROM {table}",
        "SET SESSION binlog_row_image = FULL",
    )
    images = [image for _, rows in decoded(BinlogRowCodec(), entries) for image in rows.images]
    assert images == [
        (None, (1, ABSENT, None, ABSENT)),
        ((1, ABSENT, ABSENT, ABSENT), (ABSENT, "x", ABSENT, ABSENT)),
        ((1, ABSENT, ABSENT, ABSENT), None),
    ]


def test_binlogs_without_column_names_are_refused(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.nameless"
    # A global setting, but other tests of this run do not write at the same time.
    run(connection, "SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        entries = stream(
            mariadb_a,
            connection,
            f"CREATE TABLE {table} (id INT)",
            f"INSERT INTO {table} VALUES (1)",
        )
    finally:
        run(connection, "SET GLOBAL binlog_row_metadata = FULL")
    with pytest.raises(DataError, match="binlog_row_metadata=FULL"):
        decoded(BinlogRowCodec(), entries)


def test_schema_follows_the_stream_over_ddl(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.changing"
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, e ENUM('a','b'))",
        f"INSERT INTO {table} VALUES (1, 'b')",
        f"ALTER TABLE {table} MODIFY e ENUM('z','a','b'), ADD n INT",
        f"INSERT INTO {table} VALUES (2, 'b', 5)",
        f"ALTER TABLE {table} RENAME COLUMN n TO m",
        f"INSERT INTO {table} VALUES (3, 'z', 6)",
    )
    rows = [r for _, r in decoded(BinlogRowCodec(), entries)]
    assert [r.schema.names for r in rows] == [("id", "e"), ("id", "e", "n"), ("id", "e", "m")]
    assert [r.images[0][1] for r in rows] == [(1, "b"), (2, "b", 5), (3, "z", 6)]
    ddl = [(e.schema, e.table) for e in entries if e.kind is EntryKind.DDL]
    assert ddl == [(schema, "changing")] * 3


def test_reading_again_from_each_commit_gives_what_follows(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.positions"
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY)",
        f"INSERT INTO {table} VALUES (1),(2)",
        "BEGIN",
        f"INSERT INTO {table} VALUES (3)",
        f"UPDATE {table} SET id = id + 100",
        "COMMIT",
        "FLUSH BINARY LOGS",
        f"DELETE FROM {table} WHERE id = 101",
        f"ALTER TABLE {table} ADD n INT",
        f"INSERT INTO {table} VALUES (7, 7)",
    )
    end = end_of(connection)
    ends = (EntryKind.COMMIT, EntryKind.DDL, EntryKind.HEARTBEAT)
    boundaries = [i for i, e in enumerate(entries) if e.kind in ends]
    assert len(boundaries) > 5

    def facts(entry):
        return entry.kind, entry.position.order, entry.payload, entry.statement, entry.table

    for i in boundaries[:-1]:
        position = BinlogPosition(entries[i].position.file, entries[i].position.offset)
        again = entries_between(mariadb_a, position, end)
        assert [facts(e) for e in again] == [facts(e) for e in entries[i + 1 :]]


def test_gtids_lead_to_the_servers_own_state(mariadb_a, sandbox):
    connection, schema = sandbox
    run(connection, "FLUSH BINARY LOGS")
    start = BinlogPosition(end_of(connection).file, 4)
    run(
        connection,
        f"CREATE TABLE {schema}.gtids (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.gtids VALUES (1)",
        "SET SESSION gtid_domain_id = 77",
        f"INSERT INTO {schema}.gtids VALUES (2)",
        "SET SESSION gtid_domain_id = DEFAULT",
        f"INSERT INTO {schema}.gtids VALUES (3)",
    )
    entries = entries_between(mariadb_a, start, end_of(connection))
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos")
        (state,) = cursor.fetchone()
    assert set(entries[-1].position.gtid.split(",")) == set(state.split(","))
    commits = [e for e in entries if e.kind is EntryKind.COMMIT]
    with connection.cursor() as cursor:
        for entry in commits:
            cursor.execute(
                "SELECT BINLOG_GTID_POS(%s, %s)", (entry.position.file, entry.position.offset)
            )
            (there,) = cursor.fetchone()
            assert set(entry.position.gtid.split(",")) == set(there.split(","))


def test_rows_that_were_rolled_back_do_not_come(mariadb_a, sandbox):
    connection, schema = sandbox
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {schema}.inno (id INT PRIMARY KEY) ENGINE=InnoDB",
        f"CREATE TABLE {schema}.isam (id INT PRIMARY KEY) ENGINE=MyISAM",
        "BEGIN",
        f"INSERT INTO {schema}.inno VALUES (1)",
        f"INSERT INTO {schema}.isam VALUES (1)",
        "ROLLBACK",
        "BEGIN",
        f"INSERT INTO {schema}.inno VALUES (2)",
        f"CREATE TEMPORARY TABLE {schema}.tmp (id INT)",
        "ROLLBACK",
        "BEGIN",
        f"INSERT INTO {schema}.inno VALUES (3)",
        "SAVEPOINT s",
        f"INSERT INTO {schema}.inno VALUES (4)",
        f"CREATE TEMPORARY TABLE {schema}.tmp2 (id INT)",
        "ROLLBACK TO s",
        "COMMIT",
        f"DROP TEMPORARY TABLE {schema}.tmp",
        f"DROP TEMPORARY TABLE {schema}.tmp2",
    )
    rows = [(r.schema.table, i[1]) for _, r in decoded(BinlogRowCodec(), entries) for i in r.images]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {schema}.inno")
        kept = cursor.fetchall()
    assert rows == [("isam", (1,)), ("inno", (3,))]
    assert kept == ((3,),)


def test_shapes_of_transactions(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.shapes"
    entries = stream(
        mariadb_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(5))",
        f"CREATE TABLE {schema}.copied AS SELECT 1 AS one",
        "XA START 'a'",
        f"INSERT INTO {table} VALUES (1, 'xa')",
        "XA END 'a'",
        "XA PREPARE 'a'",
        "XA COMMIT 'a'",
        f"TRUNCATE {table}",
        f"ANALYZE TABLE {table}",
    )
    assert [e.kind.name for e in entries] == [
        "DDL",
        *("BEGIN", "DDL", "ROWS", "COMMIT"),
        *("BEGIN", "ROWS", "COMMIT"),
        "COMMIT",
        "DDL",
        "HEARTBEAT",
    ]
    transactions = [e.transaction for e in entries]
    assert all(transactions)
    assert len(set(transactions)) == 6


def test_statement_format_is_refused(mariadb_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.statements"
    run(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    with pytest.raises(FatalError, match="binlog_format='ROW'") as caught:
        stream(
            mariadb_a,
            connection,
            "SET SESSION binlog_format = STATEMENT",
            f"INSERT INTO {table} VALUES (1)",
            "SET SESSION binlog_format = ROW",
        )
    assert "position" in caught.value.where


def test_old_temporal_format(mariadb_a, sandbox):
    connection, schema = sandbox
    run(connection, "SET GLOBAL mysql56_temporal_format = OFF")
    try:
        run(
            connection,
            f"CREATE TABLE {schema}.old (id INT, a DATETIME, b TIMESTAMP NULL, c TIME)",
            f"CREATE TABLE {schema}.older (id INT, a DATETIME(6))",
        )
    finally:
        run(connection, "SET GLOBAL mysql56_temporal_format = ON")
    entries = stream(
        mariadb_a,
        connection,
        f"INSERT INTO {schema}.old VALUES "
        "(1, '2026-01-02 03:04:05', '2026-01-02 03:04:05', '-100:11:12'), (2, 0, 0, 0)",
    )
    ((_, rows),) = decoded(BinlogRowCodec(), entries)
    assert [after for _, after in rows.images] == [
        (1, "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.000000", "-100:11:12.000000"),
        (2, "0000-00-00 00:00:00.000000", "0000-00-00 00:00:00.000000", "00:00:00.000000"),
    ]
    entries = stream(
        mariadb_a,
        connection,
        f"INSERT INTO {schema}.older VALUES (1, '2026-01-02 03:04:05.123456')",
    )
    with pytest.raises(DataError, match="ALTER TABLE"):
        decoded(BinlogRowCodec(), entries)
