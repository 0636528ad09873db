"""Columns of every type, and keys of every type, from MySQL to MySQL: nothing may differ."""

import json
import re
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import product
from string import ascii_lowercase

import pymysql
import pytest

from setl.bulk.verify_target import VerifySettings
from setl.channel.reading import parse_channel
from setl.errors import DataError
from setl.operate.verify import verify_pipeline
from setl.run import assembly
from setl.systems.mysql import target_system
from setl.systems.mysql.column_labels import CASE_ALONE
from setl.systems.mysql.sink import sink
from setl_embedded import MariaDb
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, on_both, one_way
from tests.integration.type_catalogue import KEYS, LABELS, LABELS_OF_MARIADB, columns, known
from tests.waiting import eventually

# Whatever a source may hold: what is no label of an ENUM, zero dates, days that do not exist.
LENIENT = "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"
UTC = "SET time_zone = '+00:00'"
COLUMNS = 12  # of a table
NUMBERED = "CONCAT(CAST({0} AS UNSIGNED), ' ', HEX({0}))"
FORMS = {
    "decimal": "CONCAT({})",
    "bit": "HEX({}+0)",
    "float": "{}+0e0",
    "double": "{}+0e0",
    "year": "YEAR({})",
    "enum": NUMBERED,
    "set": NUMBERED,
}


class Writer:
    """A session on the source; counts the row changes that its statements log."""

    def __init__(self, server):
        self.connection = server.connect()
        self.cursor = self.connection.cursor()
        self.run(LENIENT, UTC)
        self.changes = 0

    def run(self, *statements):
        for statement in statements:
            self.cursor.execute(statement)

    def change(self, *statements):
        for statement in statements:
            self.changes += self.cursor.execute(statement)


@pytest.fixture
def writer(servers):
    writer = Writer(servers[0])
    yield writer
    writer.connection.close()


fresh_db = on_both("types", options="CHARACTER SET utf8mb4")
"""A database on both servers, empty."""


def create(servers, *statements):
    for server in servers:
        execute(server, LENIENT, *statements)


def same(servers, table):
    """Assert that a table holds the same on both servers, byte by byte."""
    one_family = type(servers[0]) is type(servers[1])
    found, wanted = hexes(servers[1], table), hexes(servers[0], table)
    assert len(found) == len(wanted), table
    for row, expected in zip(found, wanted, strict=True):
        both = enumerate(zip(row, expected, strict=True))
        differ = [(number, values) for number, values in both if values[0] != values[1]]
        if not one_family:
            differ = [(number, values) for number, values in differ if not same_json(*values)]
        assert not differ, f"{table}, columns by number: {differ}"
    # Checksums say nothing of where, and are made in another way by each family.
    if one_family:
        sums = [execute(server, f"CHECKSUM TABLE {table}")[0][1] for server in servers]
        assert sums[0] == sums[1], table


def same_json(one, other):
    """Whether two texts in hex are the same as JSON: MySQL writes it again, MariaDB keeps it."""
    try:
        return json.loads(bytes.fromhex(one)) == json.loads(bytes.fromhex(other))
    except (TypeError, ValueError):
        return False


def hexes(server, table):
    schema, name = table.replace("``", "\0").strip("`").split("`.`")
    described = execute(
        server,
        "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE"
        f" TABLE_SCHEMA = '{schema}' AND TABLE_NAME = {literal(name)} ORDER BY ORDINAL_POSITION",
    )
    shown = []
    for column, data_type in described:
        quoted = f"`{column.replace('`', '``')}`"
        shown.append(FORMS.get(data_type.lower(), "HEX({})").format(quoted))
    return sorted(execute(server, UTC, f"SELECT {', '.join(shown)} FROM {table}"), key=str)


def literal(name):
    return "x'" + name.replace("\0", "`").encode().hex() + "'"


def quoted(db, name):
    return f"`{db}`.`{name.replace('`', '``')}`"


def on_all(servers, catalogue):
    """What all servers have of a catalogue, which is read with a connection to one."""
    found = []
    for server in servers:
        with server.connect() as connection:
            found.append(catalogue(connection))
    return {name: entry for name, entry in found[0].items() if all(name in x for x in found)}


def tables_of_types(servers, db, key="PRIMARY KEY"):
    """Tables with a column for each type, some at a time, with SQL of the columns' values."""
    of_mariadb = LABELS_OF_MARIADB if all(isinstance(s, MariaDb) for s in servers) else {}
    found = [*on_all(servers, columns).items(), *LABELS.items(), *of_mariadb.items()]
    tables = {}
    for first in range(0, len(found), COLUMNS):
        some = found[first : first + COLUMNS]
        table = quoted(db, f"from_{some[0][0]}")
        text = ", ".join(f"`{name}` {definition}" for name, (definition, _) in some)
        create(servers, f"CREATE TABLE {table} (id INT {key}, {text})")
        tables[table] = {name: values for name, (_, values) in some}
    return tables


def fill_types(tables, writer):
    for table, values in tables.items():
        writer.change(f"INSERT INTO {table} (id) VALUES (0)")
        for i in range(max(map(len, values.values()))):
            row = ", ".join(column[i % len(column)] for column in values.values())
            writer.change(f"INSERT INTO {table} VALUES ({i + 1}, {row})")


def change_types(tables, writer):
    for table, values in tables.items():
        sets = ", ".join(f"a.`{name}` = b.`{name}`" for name in values)
        nulls = ", ".join(f"`{name}` = NULL" for name in values)
        writer.change(
            f"UPDATE {table} a JOIN {table} b ON b.id = a.id + 1 SET {sets} WHERE a.id IN (0, 2)",
            f"UPDATE {table} SET {nulls} WHERE id = 1",
            f"UPDATE {table} SET id = id + 1000 WHERE id < 2",
            f"DELETE FROM {table} WHERE id = 3",
        )


def tables_of_keys(servers, db):
    """Tables whose key, or the first half of it, is of each type, with SQL of the keys."""
    tables = {}
    for name, (definition, values) in on_all(servers, partial(known, {**KEYS, **LABELS})).items():
        column, _, default = definition.partition(" DEFAULT ")
        column += " NOT NULL" + (f" DEFAULT {default}" if default else "")
        for prefix, key in (("k", "k"), ("kk", "k, n")):
            table = quoted(db, f"{prefix}_{name}")
            create(servers, f"CREATE TABLE {table} (n INT, k {column}, v INT, PRIMARY KEY ({key}))")
            tables[table] = values
    return tables


def fill_keys(tables, writer):
    for table, values in tables.items():
        rows = ", ".join(f"({i}, {value}, {i})" for i, value in enumerate(values))
        writer.change(f"INSERT INTO {table} VALUES {rows}")


def change_keys(tables, writer):
    """One row of each table changes, one goes, and another takes its key."""
    for table, values in tables.items():
        writer.change(
            f"UPDATE {table} SET v = v + 10 WHERE n = 0",
            f"DELETE FROM {table} WHERE n = 1",
            f"UPDATE {table} SET k = {values[1]} WHERE n = 2",
        )


# Of two encodings of a character, the one that servers make of UTF-8, and the other.
ENCODINGS = {
    "cp932": ("81E0", "8790"), "sjis": ("815F", "5C"), "ujis": ("7E", "8FA2B7"),
    "armscii8": ("29", "A4"),
}  # fmt: skip


# Bytes that servers have no character for, which they take all the same.
NO_CHARACTERS = [
    ("big5", "A15A"), ("big5", "C840"), ("gbk", "A140"), ("cp932", "81AD"), ("cp1250", "81"),
    ("greek", "A4"), ("tis620", "A0"), ("ucs2", "006ED800"),
]  # fmt: skip
OF_MARIADB = [
    ("ascii", "E0"), ("utf8mb4", "EDA080"), ("utf8mb3", "EDBFBF"), ("utf32", "0000DFFF"),
]  # fmt: skip


LABELS_BY_BYTES = [("big5", "C840"), ("gbk", "A140")]


def texts_by_bytes(servers, db):
    """Tables with text that has no UTF-8 form, in keys and columns: its bytes, and others."""
    codes = NO_CHARACTERS + OF_MARIADB * all(isinstance(server, MariaDb) for server in servers)
    reported = [(charset, second, first) for charset, (first, second) in ENCODINGS.items()]
    tables = {}
    for number, (charset, code, plain) in enumerate(
        [*reported, *((*both, both[1]) for both in codes)]
    ):
        text = f"VARCHAR(9) CHARACTER SET {charset}"
        for kind, definition in {
            "key": f"n INT, k {text} COLLATE {charset}_bin PRIMARY KEY, v {text}",
            "loose": f"n INT, k {text} PRIMARY KEY, v {text}, UNIQUE KEY (n)",
            "pair": f"n INT, k {text}, v TEXT CHARACTER SET {charset}, PRIMARY KEY (n, k)",
            "column": f"n INT PRIMARY KEY, k {text}, v {text} AS (k) STORED",
            "label": f"n INT PRIMARY KEY, k ENUM('a', '?', x'{code}', x'{code * 2}')"
            f" CHARACTER SET {charset}, v SET('a', x'{code}') CHARACTER SET {charset}",
        }.items():
            if kind == "label" and (charset, code) not in LABELS_BY_BYTES:
                continue
            table = quoted(db, f"{kind}{number}_{charset}")
            create(servers, f"CREATE TABLE {table} ({definition})")
            tables[table] = [f"_{charset} x'{some}'" for some in (code, code * 2, plain)]
    return tables


def fill_texts(tables, writer):
    for table, (odd, again, plain) in tables.items():
        for number, key in enumerate((odd, "'a'", "'?'", again)):
            v = "DEFAULT" if "column" in table else (plain, odd)[number % 2]
            writer.change(f"INSERT INTO {table} VALUES ({number}, {key}, {v})")


def change_texts(tables, writer):
    for table, (_, again, plain) in tables.items():
        writer.change(
            f"UPDATE {table} SET n = 10 WHERE n = 0",
            f"UPDATE {table} SET {'k' if 'column' in table else 'v'} = {plain} WHERE n = 1",
            f"DELETE FROM {table} WHERE n = 3",
            f"UPDATE {table} SET k = {again} WHERE n = 2",
        )


def lead_through_binlog(a, b, db, position):
    return position.lead(one_way(a, mysql(b), [{"from": f"{db}.*"}]))


def lead_through_kafka(a, b, db, position, kafka):
    end = {"type": "kafka", "brokers": [kafka.brokers], "topic": fresh_name("types")}
    source = {**mysql(a), "start": binlog_end(a), "heartbeat": 0}
    tables = [{"from": f"{db}.*"}]
    relay = {"name": "r", "source": source, "target": {**end, "heartbeat": 0.2}, "tables": tables}
    reader = {**relay, "name": "p", "source": {**end, "start": "earliest"}, "target": mysql(b)}
    position.lead(channel(relay), "r").runs()
    return position.lead(channel(reader))


def channel(pipeline):
    return parse_channel({"channel": fresh_name("types"), "pipelines": [pipeline]})


TOLD = "a relay and a reader of its topic have one server each"


@pytest.fixture(
    params=["binlog", pytest.param("kafka", marks=pytest.mark.not_mixed(why=TOLD))],
)
def lead(request, servers, fresh_db, position, monkeypatch):
    """Leads a pipeline from the first server's database to the second's, from now on."""
    a, b = servers
    if request.param == "binlog":
        # By column, however few rows there are. Row by row are the tests of tables with rows that
        # were there before, and of those without a key.
        monkeypatch.setattr(assembly, "COLUMN_ROWS", 1)
        few = partial(sink.MysqlSinkSettings, bulk_rows=1)
        monkeypatch.setattr(target_system, "MysqlSinkSettings", few)
        return lambda: lead_through_binlog(a, b, fresh_db, position)
    kafka = request.getfixturevalue("kafka")
    return lambda: lead_through_kafka(a, b, fresh_db, position, kafka)


KINDS = pytest.mark.parametrize(
    ("make", "fill", "change"),
    [
        (tables_of_types, fill_types, change_types),
        (tables_of_keys, fill_keys, change_keys),
        # Such as second encodings in keys, characters that nobody has, and halves of pairs.
        (texts_by_bytes, fill_texts, change_texts),
    ],
    ids=["columns", "keys", "text without a UTF-8 form"],
)


@KINDS
def test_every_type(servers, fresh_db, writer, lead, make, fill, change):
    tables = make(servers, fresh_db)
    running = lead()
    for write in (fill, change):
        # In one transaction: with one for each statement, most of the time goes into batches.
        writer.run("BEGIN")
        write(tables, writer)
        writer.run("COMMIT")
        running.applied(writer.changes)
        for table in tables:
            same(servers, table)


@KINDS
def test_every_type_that_was_there_before(servers, fresh_db, writer, position, make, fill, change):
    tables = make(servers, fresh_db)
    fill(tables, writer)
    a, b = servers
    source = {**mysql(a), "start": {"load": True}, "heartbeat": 0.2}
    pipeline = {"name": "p", "source": source, "target": mysql(b)}
    running = position.lead(channel({**pipeline, "tables": [{"from": f"{fresh_db}.*"}]}))
    eventually(lambda: has_loaded(running), 180, message="the tables are loaded")
    for table in tables:
        same(servers, table)
    change(tables, writer)
    eventually(lambda: all_same(servers, tables), 60)


def has_loaded(running):
    assert running.thread.is_alive(), running.error
    reported = running.figures.table_load
    return reported is not None and reported.state == "done"


def all_same(servers, tables):
    for table in tables:
        same(servers, table)
    return True


def test_text_without_a_utf_8_form_is_an_error_in_another_character_set(
    servers, fresh_db, writer, position
):
    a, b = servers
    table = quoted(fresh_db, "t")
    for server, charset in ((a, "big5"), (b, "utf8mb4")):
        text = f"VARCHAR(9) CHARACTER SET {charset}"
        create([server], f"CREATE TABLE {table} (id INT PRIMARY KEY, v {text})")
    pipeline = {"name": "p", "source": {**mysql(a), "start": binlog_end(a)}, "target": mysql(b)}
    pipeline["tables"] = [{"from": f"{fresh_db}.*"}]
    writer.change(f"INSERT INTO {table} VALUES (1, 'a'), (2, x'C840'), (3, 'c')")
    error = position.lead(channel(pipeline)).ends()
    assert isinstance(error, DataError)
    assert "column v holds text that has no character in big5" in str(error)
    assert "0xC840" in str(error)
    assert "the same character set" in error.hint
    assert (error.where["table"], error.where["key"]) == (f"{fresh_db}.t", "2")
    running = position.lead(channel({**pipeline, "faulty_rows": "dead_letter"}))
    running.applied(3)
    assert hexes(b, table) == [("1", "61"), ("3", "63")]


def test_of_many_rows_the_faulty_one_is_named_and_the_others_arrive(
    servers, fresh_db, writer, position
):
    a, b = servers
    table, count = quoted(fresh_db, "t"), assembly.COLUMN_ROWS + 20
    for server, length in ((a, 9), (b, 5)):
        create(
            [server], f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR({length}), n DOUBLE)"
        )
    pipeline = {"name": "p", "source": {**mysql(a), "start": binlog_end(a)}, "target": mysql(b)}
    pipeline["tables"] = [{"from": f"{fresh_db}.*"}]
    rows = ", ".join(f"({n}, {'NULL' if n % 3 else n}, {n}.5)" for n in range(1, count))
    writer.change(f"INSERT INTO {table} VALUES {rows}, (0, 'too long', NULL)")
    error = position.lead(channel(pipeline)).ends()
    assert (error.where["table"], error.where["key"]) == (f"{fresh_db}.t", "0")
    running = position.lead(channel({**pipeline, "faulty_rows": "dead_letter"}))
    running.applied(count)
    there = f"SELECT COUNT(*), COUNT(v), SUM(v), SUM(n) FROM {table}"
    found = execute(b, there)
    assert found == execute(a, f"{there} WHERE id > 0")
    assert found[0][0] == count - 1


def test_a_second_encoding_of_a_character_is_that_character_in_another_character_set(
    servers, fresh_db, writer, position
):
    """But not in a key, where two rows would become one."""
    a, b = servers
    tables = {charset: quoted(fresh_db, charset) for charset in ENCODINGS}
    key = quoted(fresh_db, "of_key")
    for server, own in ((a, ""), (b, "utf8mb4")):
        text = "VARCHAR(9) CHARACTER SET"
        for charset, table in tables.items():
            create([server], f"CREATE TABLE {table} (n INT PRIMARY KEY, v {text} {own or charset})")
        create([server], f"CREATE TABLE {key} (k {text} {own or 'sjis'} PRIMARY KEY)")
    pipeline = {"name": "p", "source": {**mysql(a), "start": binlog_end(a)}, "target": mysql(b)}
    running = position.lead(channel({**pipeline, "tables": [{"from": f"{fresh_db}.*"}]}))
    for charset, (first, second) in ENCODINGS.items():
        one, other = (f"_{charset} x'{code}'" for code in (first, second))
        writer.change(f"INSERT INTO {tables[charset]} VALUES (1, {one}), (2, {other})")
    running.applied(writer.changes)
    for table in tables.values():
        (_, one), (_, other) = hexes(b, table)
        assert one == other, table
    writer.change(f"INSERT INTO {key} VALUES (_sjis x'5C')")
    error = running.ends()
    assert isinstance(error, DataError)
    assert "in a key is a second encoding" in str(error)


ODD_NAMES = [
    "select",
    "a b",
    "%s",
    "%(a)s",
    "q'u\"o",
    "back``tick",
    "Ünï 表",
    "a.b",
    "?",
    "\\",
    "#-- ",
]


def test_odd_names_and_wide_tables(servers, fresh_db, writer, position):
    def made(name, text):
        table = f"`{fresh_db}`.`{name}`"
        create(servers, f"CREATE TABLE {table} ({text})")
        return table

    odd = ", ".join(f"`{name.strip()}` VARCHAR(9)" for name in ODD_NAMES)
    tables = [made(name.strip(), f"`key` INT PRIMARY KEY, {odd}") for name in ODD_NAMES]
    wide = made("wide", "id INT PRIMARY KEY, " + ", ".join(f"c{i} INT" for i in range(1000)))
    serial = made("serial", "id INT AUTO_INCREMENT PRIMARY KEY, v INT")
    computed = made(
        "computed",
        "id INT PRIMARY KEY, s INT AS (id * 2) STORED, v INT AS (id * 3) VIRTUAL,"
        " u INT DEFAULT (1 + 1), hidden INT INVISIBLE, UNIQUE (s), KEY (v)",
    )
    a, b = servers
    running = lead_through_binlog(a, b, fresh_db, position)
    for table in tables:
        values = ", ".join(["'%s'"] * len(ODD_NAMES))
        writer.change(
            f"INSERT INTO {table} VALUES (1, {values}), (2, {values})",
            f"UPDATE {table} SET `%s` = '%', `back``tick` = '`', `key` = 3 WHERE `key` = 2",
            f"DELETE FROM {table} WHERE `key` = 1",
        )
    writer.change(
        f"INSERT INTO {wide} VALUES (1{', 7' * 1000})",
        f"UPDATE {wide} SET c0 = 8, c999 = NULL",
        f"INSERT INTO {serial} VALUES (0, 1), (7, 2)",
        f"UPDATE {serial} SET v = 3 WHERE id = 0",
        f"INSERT INTO {computed} (id, hidden) VALUES (1, 5), (2, 6), (3, 7)",
        f"UPDATE {computed} SET id = 20, hidden = NULL WHERE id = 2",
        f"DELETE FROM {computed} WHERE id = 3",
    )
    running.applied(writer.changes)
    for table in (*tables, wide, serial, computed):
        same(servers, table)
    assert execute(servers[1], f"SELECT hidden FROM {computed} ORDER BY id") == ((5,), (None,))


def test_every_type_without_a_key(servers, fresh_db, writer, position, spark):
    tables = tables_of_types(servers, fresh_db, key="NULL")
    running = lead_through_binlog(servers[0], servers[1], fresh_db, position)
    for _ in range(2):
        fill_types(tables, writer)
    running.applied(writer.changes)
    pipeline = one_way(servers[0], mysql(servers[1]), [{"from": f"{fresh_db}.*"}]).pipelines[0]
    settings = VerifySettings(rechecks=0)
    for verdict in verify_pipeline(spark, pipeline, sample=1000, settings=settings):
        # MariaDB makes 0 of -0.
        apart = Counter[str]()
        for each in verdict.sample_keys:
            apart[re.sub(r"-0\.0\b", "0.0", each.key)] += each.source_rows - each.target_rows
        assert not any(apart.values())
        assert verdict.equal or isinstance(servers[1], MariaDb) > isinstance(servers[0], MariaDb)
    # Of rows that only differ in one value each, some go, and they are at the target who goes.
    writer.change(*(f"UPDATE {table} SET id = 0" for table in tables))
    writer.change(*(f"DELETE FROM {table} LIMIT 5" for table in tables))
    writer.change(*(f"UPDATE {table} SET id = 1 LIMIT 7" for table in tables))
    running.applied(writer.changes)
    for table in tables:
        same(servers, table)
    writer.change(*(f"DELETE FROM {table}" for table in tables))
    running.applied(writer.changes)
    for table in tables:
        assert execute(servers[1], f"SELECT COUNT(*) FROM {table}") == ((0,),)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("id INT PRIMARY KEY, e {}", "INSERT INTO {} (id, e) VALUES (2, 2)"),
        ("e {} NOT NULL, id INT, PRIMARY KEY (id, e)", "DELETE FROM {} WHERE id = 9 AND e = 2"),
    ],
    ids=["column", "key"],
)
def test_labels_that_are_one_and_that_servers_do_not_show(
    servers, fresh_db, writer, position, table, change
):
    """To some collations all characters beyond the Basic Multilingual Plane are one."""
    a, b = servers
    for name in ("general_ci", "bin"):
        labels = f"ENUM('\U0001f600','\U0001f601','why?') COLLATE utf8mb4_{name}"
        create(servers, f"CREATE TABLE `{fresh_db}`.`{name}` ({table.format(labels)})")
    if "PRIMARY KEY (id, e)" in table:
        create(servers, f"INSERT INTO `{fresh_db}`.general_ci (id, e) VALUES (9, 1), (9, 2)")
    pipeline = one_way(a, mysql(b), [{"from": f"{fresh_db}.*"}])
    running = position.lead(pipeline)
    rows = "(id, e) VALUES (1, 1), (2, 2), (3, 3)"
    writer.change(
        f"INSERT INTO `{fresh_db}`.bin {rows}",
        f"INSERT INTO `{fresh_db}`.general_ci (id, e) VALUES (3, 3)",
        f"DELETE FROM `{fresh_db}`.bin WHERE id = 2",
    )
    running.applied(writer.changes)
    for name in ("general_ci", "bin"):
        same(servers, quoted(fresh_db, name))
    held = execute(b, f"SELECT id, e + 0 FROM `{fresh_db}`.general_ci ORDER BY 1, 2")
    writer.change(change.format(f"`{fresh_db}`.general_ci"))
    error = running.ends()
    assert isinstance(error, DataError)
    assert "column e would take another label for it" in str(error)
    assert execute(b, f"SELECT id, e + 0 FROM `{fresh_db}`.general_ci ORDER BY 1, 2") == held


def test_collations_that_ignore_case_alone(servers, fresh_db):
    """Servers are not asked whether labels of theirs are one, see `CASE_ALONE`."""
    printable = [chr(code) for code in range(33, 127) if chr(code) == chr(code).lower()]
    texts = {*printable, *map("".join, product(printable, repeat=2))}
    for one, two, three in product(ascii_lowercase, repeat=3):
        # Contractions, also written twice: in Hungarian "cscs" is "ccs".
        texts |= {one + two + three, one + two + one + two, one + one + two + three}
    values = ",".join(f"(x'{text.encode().hex()}')" for text in texts)
    seen = set[str]()
    for server in servers:
        table = quoted(fresh_db, "texts")
        execute(
            server,
            f"CREATE TABLE {table} (v VARCHAR(9) COLLATE utf8mb4_bin)",
            f"INSERT INTO {table} VALUES {values}",
        )
        for name in CASE_ALONE:
            text = f"CONVERT(v USING {name.partition('_')[0]}) COLLATE {name}"
            with suppress(pymysql.OperationalError):  # not all servers have all of them
                [(different,)] = execute(server, f"SELECT COUNT(DISTINCT {text}) FROM {table}")
                assert different == len(texts), name
                seen.add(name)
    assert len(seen) >= 9
