"""The binlog codec against what a MariaDB server says about the same rows."""

import pymysql
import pytest

from setl.codec.binlog.event import is_mariadb
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import ConfigurationError, DataError
from setl.extract.ddl import refuse_temporary
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.schema import Kind
from setl.systems.mysql.binlog.server import BinlogServer
from tests.integration.every_type import CHARSETS, EVERY_TYPE, TYPES, run, sandbox_database, stream
from tests.loading import endpoint_of
from tests.mysql_servers import logs_no_generated, needs_mariadb
from tests.unit.codec.binlog_server import (
    comparable,
    decoded,
    end_of,
    entries_between,
    selected,
    utc_text,
)
from tests.unit.codec.dts_records import inserted


@pytest.fixture(scope="module")
def sandbox(site_a):
    with sandbox_database(site_a) as sandbox:
        yield sandbox


def of_clients(entries):
    """Without what the server notes for itself, such as a checkpoint after an earlier rotation."""
    return [e for e in entries if e.kind is not EntryKind.HEARTBEAT or e.transaction]


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_every_type_decodes_to_what_select_says(site_a, sandbox, name):
    connection, schema = sandbox
    definition, values = TYPES[name]
    if definition == "UUID":
        needs_mariadb(connection, 10, 7, what=definition)
    table = f"{schema}.`{name}`"
    column = f"f_{name}" if definition == "FLOAT" else f"c_{name}"
    entries = stream(
        site_a,
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
    with utc_text(site_a) as cursor:
        expected = selected(cursor, table, first)
    got = [comparable(first, after) for _, r in rows for _, after in r.images]
    assert got == expected
    for row, again in zip(got, expected, strict=True):
        # JSON of a MySQL is text that knows where it is from.
        assert [str if isinstance(v, str) else type(v) for v in row] == [type(v) for v in again]


@pytest.mark.parametrize("charset", CHARSETS)
def test_every_charset_decodes_to_the_text_that_was_written(site_a, sandbox, charset):
    connection, schema = sandbox
    text = CHARSETS[charset]
    table = f"{schema}.cs_{charset}"
    entries = stream(
        site_a,
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a CHAR(10) CHARACTER SET {charset}, "
        f"b VARCHAR(200) CHARACTER SET {charset}, c TEXT CHARACTER SET {charset}, "
        "d VARCHAR(5) CHARACTER SET utf8mb4)",
        f"INSERT INTO {table} VALUES (1, '{text}', '{text} ', '{text}', 'é')",
    )
    ((_, rows),) = decoded(BinlogRowCodec(), entries)
    with utc_text(site_a) as cursor:
        expected = selected(cursor, table, rows.schema)
    assert [after for _, after in rows.images] == expected
    assert inserted(rows)[1] == text


@pytest.mark.family("mariadb", why="MySQL names collations without padding otherwise")
def test_schema_as_the_binlog_describes_it(site_a, sandbox):
    connection, schema = sandbox
    needs_mariadb(connection, 10, 10, what="collation uca1400_ai_ci")
    entries = stream(
        site_a,
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


def test_updates_and_deletes_of_many_rows(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.many"
    numbers = range(1, 2001)
    entries = stream(
        site_a,
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


@pytest.mark.parametrize("images", ["MINIMAL", "NOBLOB"])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {} (id, a) VALUES (2, 7)",
        *(
            pytest.param(
                statement,
                marks=pytest.mark.family("mariadb", why="MySQL's images of it leave nothing out"),
            )
            for statement in (
                "INSERT INTO {} () VALUES ()",
                "REPLACE INTO {} (id, a) VALUES (1, 7)",
                "INSERT INTO {} (id, a) VALUES (1, 7) ON DUPLICATE KEY UPDATE a = 8",
            )
        ),
    ],
)
def test_images_that_do_not_say_what_became_of_a_column_are_refused(
    site_a, sandbox, images, statement
):
    connection, schema = sandbox
    table = f"{schema}.unsaid"
    run(
        connection,
        f"DROP TABLE IF EXISTS {table}",
        f"CREATE TABLE {table} (id INT PRIMARY KEY DEFAULT 3, a INT, b BLOB)",
        f"INSERT INTO {table} VALUES (1, 1, 'kept')",
        f"SET SESSION binlog_row_image = {images}",
    )
    try:
        entries = stream(site_a, connection, statement.format(table))
    finally:
        run(connection, "SET SESSION binlog_row_image = FULL")
    codec = BinlogRowCodec()
    entry = next(e for e in entries if e.kind is EntryKind.ROWS)
    if images == "NOBLOB" and statement.startswith(("REPLACE", "INSERT INTO {} (id, a) VALUES (1")):
        rows = codec.decode(entry.payload, entry.context)
        if rows.op is Op.UPDATE and is_mariadb(entry.context[0]):
            assert rows.schema.unlogged == ("b",)  # whoever writes the row has to need it not
            return
    names_a = statement.startswith("INSERT INTO {} (id, a) VALUES (2")
    if (names_a or images == "NOBLOB") and logs_no_generated(connection):
        # What a row lacks may be a generated column, so it is told who writes the row.
        assert codec.decode(entry.payload, entry.context).schema.unlogged == ("b",)
        return
    said = r"(leaves columns out|names no column).*binlog_row_image='FULL'"
    with pytest.raises(DataError, match=said) as caught:
        codec.decode(entry.payload, entry.context)
    assert caught.value.where["table"] == "unsaid"


def test_a_row_of_which_nothing_is_logged_is_refused(site_a, sandbox):
    """Its image takes no byte, and it must not be lost where rows are read from the table."""
    connection, schema = sandbox
    table = f"{schema}.defaults"
    run(
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY DEFAULT 5, a INT)",
        "SET SESSION binlog_row_image = MINIMAL",
    )
    try:
        entries = stream(site_a, connection, f"INSERT INTO {table} () VALUES ()")
    finally:
        run(connection, "SET SESSION binlog_row_image = FULL")
    entry = next(e for e in entries if e.kind is EntryKind.ROWS)
    for keys_alone in (False, True):
        with pytest.raises(DataError, match="names no column of its row"):
            BinlogRowCodec().decode(entry.payload, entry.context, keys_alone=keys_alone)


def test_binlogs_without_column_names_are_refused(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.nameless"
    # A global setting, but other tests of this run do not write at the same time.
    run(connection, "SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        entries = stream(
            site_a,
            connection,
            f"CREATE TABLE {table} (id INT)",
            f"INSERT INTO {table} VALUES (1)",
        )
    finally:
        run(connection, "SET GLOBAL binlog_row_metadata = FULL")
    with pytest.raises(ConfigurationError, match="binlog_row_metadata=FULL"):
        decoded(BinlogRowCodec(), entries)


@pytest.mark.family("mariadb", why="MySQL has no binlog_alter_two_phase")
def test_an_alter_in_two_phases_is_one_ddl_where_it_takes_effect(site_a, sandbox):
    connection, schema = sandbox
    needs_mariadb(connection, 10, 8, 1, what="binlog_alter_two_phase")
    table = f"{schema}.two_phases"
    run(
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO {table} VALUES (1, 1), (2, 1)",
    )
    start = end_of(connection)
    run(connection, "SET SESSION binlog_alter_two_phase = ON", f"ALTER TABLE {table} ADD m INT")
    with pytest.raises(pymysql.IntegrityError, match="Duplicate entry"):
        run(connection, f"ALTER TABLE {table} ADD UNIQUE (n)")
    run(connection, "SET SESSION binlog_alter_two_phase = OFF", f"ALTER TABLE {table} DROP m")
    entries = of_clients(entries_between(site_a, start, end_of(connection)))
    assert [(e.kind.name, e.statement[-5:]) for e in entries] == [
        ("HEARTBEAT", ""),
        ("DDL", "m INT"),
        ("HEARTBEAT", ""),
        ("HEARTBEAT", ""),
        ("DDL", "ROP m"),
    ]
    numbers = [int(e.transaction.rpartition("-")[2]) for e in entries]
    assert numbers == list(range(numbers[0], numbers[0] + 5))


def test_reading_again_from_each_commit_gives_what_follows(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.positions"
    start = end_of(connection)
    run(
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
    end = end_of(connection)  # asked once: MariaDB writes a checkpoint of its own some time later
    entries = entries_between(site_a, start, end)
    ends = (EntryKind.COMMIT, EntryKind.DDL, EntryKind.HEARTBEAT)
    boundaries = [i for i, e in enumerate(entries) if e.kind in ends]
    assert len(boundaries) > 5

    def facts(entry):
        return entry.kind, entry.position.order, entry.payload, entry.statement, entry.table

    for i in boundaries[:-1]:
        position = BinlogPosition(entries[i].position.file, entries[i].position.offset)
        again = entries_between(site_a, position, end)
        assert [facts(e) for e in again] == [facts(e) for e in entries[i + 1 :]]


@pytest.mark.family("mariadb", why="MySQL's GTIDs have no domains")
def test_gtids_lead_to_the_servers_own_state(site_a, sandbox):
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
    entries = entries_between(site_a, start, end_of(connection))
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


@pytest.mark.family("mysql", why="MariaDB says the same of both kinds of tables")
def test_what_a_procedure_with_a_temporary_table_does_to_lasting_ones(site_a, sandbox):
    connection, schema = sandbox
    statements = ("TRUNCATE o", "ALTER TABLE o ADD v INT", "CREATE INDEX i ON o (v)")
    entries = stream(
        site_a,
        connection,
        f"USE {schema}",
        "CREATE TABLE o (id INT PRIMARY KEY)",
        "CREATE PROCEDURE works() BEGIN CREATE TEMPORARY TABLE p (id INT); INSERT INTO p VALUES"
        f" (1); {'; '.join(statements)}; DROP TEMPORARY TABLE p; END",
        "CALL works()",
        "DROP TABLE o",
    )
    found = [entry for entry in entries if entry.statement.startswith(statements)]
    assert [entry.session.temporary for entry in found] == [True] * len(statements)
    for entry in found:
        refuse_temporary(entry)


@pytest.mark.family("mariadb", why="MySQL with GTIDs refuses such transactions")
def test_rows_that_were_rolled_back_do_not_come(site_a, sandbox):
    connection, schema = sandbox
    entries = stream(
        site_a,
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
        stored = cursor.fetchall()
    assert rows == [("isam", (1,)), ("inno", (3,))]
    assert stored == ((3,),)


def test_shapes_of_transactions(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.shapes"
    entries = stream(
        site_a,
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
    entries = of_clients(entries)
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


@pytest.mark.family("mariadb", why="MySQL has no mysql56_temporal_format")
def test_old_temporal_format(site_a, sandbox):
    connection, schema = sandbox
    table, fraction, altered = (f"{schema}.{n}" for n in ("old", "older", "altered"))
    whole = "(id INT, a DATETIME, b TIMESTAMP NULL, c TIME)"
    run(connection, "SET GLOBAL mysql56_temporal_format = OFF")
    try:
        run(
            connection,
            *(f"CREATE TABLE {name} {whole}" for name in (table, altered)),
            f"CREATE TABLE {fraction} (id INT, a DATETIME(6), b TIMESTAMP(6) NULL, c TIME(3))",
        )
    finally:
        run(connection, "SET GLOBAL mysql56_temporal_format = ON")
    at = "'2001-02-03 13:18:08'"
    digits = BinlogServer(endpoint_of(site_a)).time_digits
    before = end_of(connection)
    run(
        connection,
        f"INSERT INTO {table} VALUES "
        "(1, '2026-01-02 03:04:05', '2026-01-02 03:04:05', '-100:11:12'), (2, 0, 0, 0)",
        f"INSERT INTO {altered} VALUES (1, {at}, {at}, '23:00:00')",
        f"ALTER TABLE {altered} FORCE",
    )
    whole_seconds = end_of(connection)
    run(
        connection,
        f"INSERT INTO {fraction} VALUES (1, NULL, NULL, NULL)",
        f"INSERT INTO {fraction} VALUES (1, {at}, NULL, NULL)",
        f"INSERT INTO {fraction} VALUES (1, NULL, {at}, NULL)",
        f"INSERT INTO {fraction} (b) VALUES ({at}), ({at}), ({at}), ({at}), ({at}), ({at}), ({at})",
        f"UPDATE {fraction} SET id = 2 WHERE a IS NULL AND b IS NULL",
        f"UPDATE {fraction} SET c = '-838:00:00'",
    )
    entries = entries_between(site_a, before, whole_seconds, digits=digits)
    unknown = entries_between(site_a, before, whole_seconds)
    for found in (entries, unknown):
        assert [
            after for _, rows in decoded(BinlogRowCodec(), found) for _, after in rows.images
        ] == [
            (1, "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.000000", "-100:11:12.000000"),
            (2, "0000-00-00 00:00:00.000000", "0000-00-00 00:00:00.000000", "00:00:00.000000"),
            (1, "2001-02-03 13:18:08.000000", "2001-02-03 13:18:08.000000", "23:00:00.000000"),
        ]
    entries = entries_between(site_a, whole_seconds, end_of(connection), digits=digits)
    assert refused(entries) == [
        "",
        "a is a DATETIME(6)",
        *["b is a TIMESTAMP(6)"] * 2,
        "",
        "c is a TIME(3)",
    ]
    run(connection, f"ALTER TABLE {fraction} FORCE")
    entries = entries_between(site_a, whole_seconds, end_of(connection), digits=digits)
    assert refused(entries) == [
        "",
        *["a may be a DATETIME with"] * 3,
        "",
        "a may be a DATETIME with",
    ]


def refused(entries):
    """For each entry of rows, why it cannot be decoded; "" if it can."""
    found = []
    for entry in entries:
        if entry.kind is EntryKind.ROWS:
            try:
                BinlogRowCodec().decode(entry.payload, entry.context)
                found.append("")
            except ConfigurationError as error:
                words = error.message.removeprefix("column ").split()
                found.append(" ".join(words[: 4 if words[1] == "is" else 6]))
    return found


@pytest.mark.family("mariadb", why="MySQL has no sequences")
def test_copies_of_a_sequence_are_tables(site_a, sandbox):
    connection, schema = sandbox
    run(connection, f"CREATE SEQUENCE {schema}.s NOCACHE")
    run(connection, f"CREATE TABLE {schema}.of_it (v INT DEFAULT NEXTVAL({schema}.s), w INT)")
    entries = stream(
        site_a,
        connection,
        f"CREATE TABLE {schema}.copy AS SELECT * FROM {schema}.s",
        f"INSERT INTO {schema}.copy SELECT * FROM {schema}.s",
        f"CREATE TEMPORARY TABLE {schema}.held AS SELECT * FROM {schema}.s",
        f"INSERT INTO {schema}.copy SELECT * FROM {schema}.held",
        f"DROP TEMPORARY TABLE {schema}.held",
        f"UPDATE {schema}.copy SET cycle_count = 5",
        "START TRANSACTION",
        f"INSERT INTO {schema}.of_it (w) VALUES (1), (2)",
        f"INSERT INTO {schema}.copy SELECT * FROM {schema}.s",
        f"INSERT INTO {schema}.of_it (w) VALUES (3)",
        f"SELECT NEXTVAL({schema}.s)",
        "COMMIT",
        f"INSERT INTO {schema}.of_it (w) VALUES (4)",
        f"UPDATE {schema}.of_it SET w = NEXTVAL({schema}.s)",
        f"SELECT SETVAL({schema}.s, 5000)",
        f"ALTER SEQUENCE {schema}.s RESTART 9000",
        is_table=lambda _, table: table == "copy",
    )
    rows = [(e.table, r.op) for e, r in decoded(BinlogRowCodec(), entries)]
    of_it = [("of_it", Op.INSERT)]
    assert rows == [
        *([("copy", Op.INSERT)] * 3),
        ("copy", Op.UPDATE),
        *(of_it * 2),
        ("copy", Op.INSERT),
        *of_it,
        ("of_it", Op.UPDATE),
    ]
    positions = [e.position.offset for e in entries]
    assert positions == sorted(positions)
