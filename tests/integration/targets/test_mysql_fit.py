"""Values that a target's column does not hold are refused, with the row and the column named."""

from contextlib import closing

import pytest

from setl.errors import DataError
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from tests.loading import (
    create_system_tables,
    execute,
    fence_for,
    rows_of,
    sink_on,
    ticket_for,
    unique,
)

LENIENT = "SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'"
ID = Column("id", Kind.INTEGER)


class Target:
    """A table `t` with a key and one column; a sink that writes into it."""

    def __init__(self, server):
        create_system_tables(server)
        self.server, self.schema = server, unique("fit")
        self.ticket = ticket_for(self.schema)
        fence_for(server, self.ticket).raise_to(1, "n1")
        execute(server, f"CREATE DATABASE {self.schema} DEFAULT CHARACTER SET utf8mb4")
        self.sink = sink_on(server)

    def make(self, definition, key="PRIMARY KEY (id)"):
        execute(
            self.server,
            LENIENT,
            f"CREATE TABLE {self.schema}.t (id INT NOT NULL, c {definition}, {key})",
        )

    def load(self, kind, *values, deletes=(), **facts):
        columns = (ID, Column("c", kind, **facts))
        rows = list(enumerate(values))
        changes = TargetChanges((self.schema, "t"), columns, (0,), rows, list(deletes))
        changes.upsert_versions.extend([1] * len(rows))
        changes.delete_versions.extend([1] * len(changes.deletes))
        self.sink.apply(self.ticket, [changes])

    def held(self, form="c"):
        return rows_of(self.server, f"SELECT {form} FROM {self.schema}.t ORDER BY id")


@pytest.fixture
def target(site_a):
    target = Target(site_a)
    with closing(target.sink):
        yield target
    execute(site_a, f"DROP DATABASE {target.schema}")


FITTING = [
    ("TINYINT", Kind.INTEGER, 127, 128),
    ("INT UNSIGNED", Kind.INTEGER, 0, -1),
    ("BIGINT", Kind.INTEGER, 2**63 - 1, 2**63),
    ("INT", Kind.FLOAT, 2.0, 2.5),
    ("INT", Kind.DECIMAL, "2.0", "2.5"),
    ("DECIMAL(5,2)", Kind.DECIMAL, "999.990", "1.005"),
    ("DECIMAL(5,2)", Kind.DECIMAL, "-1.5", "1000"),
    ("DECIMAL(5,2)", Kind.TEXT, "1.50", "1.005"),
    ("DECIMAL(5,2)", Kind.FLOAT, 1.5, 1.005),
    ("FLOAT", Kind.FLOAT, 0.1, 0.1234567890123),
    ("FLOAT(7,2)", Kind.FLOAT, 12345.67, 0.125),
    ("FLOAT(7,2)", Kind.FLOAT, -0.1, -0.125),
    ("FLOAT(10,5)", Kind.FLOAT, 100000.0, 100000.0078125),  # as it holds 99999.99999
    ("FLOAT(10,5)", Kind.FLOAT, -100000.0, 1e6),
    ("DOUBLE(10,5)", Kind.FLOAT, -0.09999999999999998, -0.1),
    ("FLOAT", Kind.INTEGER, 16777216, 16777217),
    ("DOUBLE", Kind.INTEGER, 2**53, 2**53 + 1),
    ("DATETIME", Kind.TEXT, "2026-01-02 03:04:05.0", "2026-01-02 03:04:05.6"),
    ("TIMESTAMP(3)", Kind.TEXT, "2026-01-02 03:04:05.123000", "20260102030405.1234"),
    ("TIME(6)", Kind.TEXT, "-03:04:05.123456", "-03:04:05.1234567"),
    ("VARCHAR(3)", Kind.TEXT, "né🙂", "four"),
    ("VARCHAR(3)", Kind.TEXT, "ab ", "abc "),
    ("CHAR(3)", Kind.TEXT, "ab", "ab "),
    ("VARCHAR(9) CHARACTER SET latin1", Kind.TEXT, "café €", "汉"),
    ("VARCHAR(9) CHARACTER SET latin1", Kind.TEXT, "?", "🙂"),
    ("VARCHAR(9) CHARACTER SET gbk", Kind.TEXT, "汉", "é̂🙂"),
    ("VARCHAR(9) CHARACTER SET ascii", Kind.TEXT, "a", "é"),
    ("VARCHAR(9) CHARACTER SET utf8mb3", Kind.TEXT, "汉", "🙂"),
    ("TEXT CHARACTER SET latin1", Kind.TEXT, "é", "汉"),
    ("ENUM('a','b') CHARACTER SET latin1", Kind.ENUM, "a", "汉"),
    ("TINYTEXT", Kind.TEXT, "x" * 255, "x" * 256),
    ("BINARY(3)", Kind.BINARY, b"a\0\0", b"a"),
    ("VARBINARY(3)", Kind.BINARY, b"a", b"abcd"),
    ("ENUM('a','b')", Kind.ENUM, "a", "A"),
    ("ENUM('a','b')", Kind.ENUM, "b", "c"),
    ("SET('a','b')", Kind.SET, "a,b", "a,c"),
    ("SET('a','b')", Kind.SET, "", "A"),
    ("BIT(3)", Kind.BIT, 7, 8),
    ("YEAR", Kind.YEAR, 2155, 2156),
    ("DATE", Kind.DATETIME, "2026-01-02 00:00:00.000000", "2026-01-02 00:00:00.000001"),
    ("DATE", Kind.DATE, "2023-02-31", "2023-02-32"),
    ("TIME", Kind.TIME, "-838:59:59.000000", "00:00:00.400000"),
    ("TIME(3)", Kind.TIME, "-00:00:00.001000", "00:00:00.000400"),
    ("DATETIME", Kind.DATETIME, "0000-00-00 00:00:00.000000", "2026-01-02 03:04:05.400000"),
    ("DATETIME(5)", Kind.DATETIME, "2026-01-02 03:04:05.678900", "2026-01-02 03:04:05.678901"),
    ("TIMESTAMP NULL", Kind.TIMESTAMP, "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.5"),
    ("TIMESTAMP NOT NULL DEFAULT 0", Kind.TIMESTAMP, "2026-01-02 03:04:05.000000", None),
    ("INT NOT NULL", Kind.INTEGER, 0, None),
    ("POINT", Kind.GEOMETRY, None, b"not a geometry at all"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "kind", "fits", "lost"), FITTING)
def test_what_does_not_fit_is_refused(target, definition, kind, fits, lost):
    refuses(target, "PRIMARY KEY (id)", definition, kind, fits, lost)


@pytest.mark.parametrize(("definition", "kind", "fits", "lost"), FITTING[::7])
def test_nor_where_rows_are_deleted_and_inserted(target, definition, kind, fits, lost):
    refuses(target, "KEY (id)", definition, kind, fits, lost)


def refuses(target, key, definition, kind, fits, lost):
    target.make(definition, key)
    target.load(kind, fits)
    before = target.held()
    with pytest.raises(DataError) as caught:
        target.load(kind, fits, fits, lost, fits)
    assert caught.value.where["key"] == "2", caught.value
    assert caught.value.where["table"] == f"{target.schema}.t"
    assert "c" in caught.value.message
    assert target.held() == before


@pytest.mark.parametrize(
    ("definition", "kind", "fits", "changed"),
    [
        ("YEAR", Kind.INTEGER, [0, 1901], [5, 70]),
        ("YEAR", Kind.DECIMAL, ["2026"], ["0", "70"]),
        ("YEAR", Kind.TEXT, ["0000", "1999"], ["1", "2.5", "70"]),
        ("BIT(64)", Kind.INTEGER, [5], [-1]),
        ("BIT(64)", Kind.FLOAT, [2.0], [2.5, 1e20]),
        ("BIT(64)", Kind.DECIMAL, [], ["2"]),
        ("BIT(8)", Kind.TEXT, [], ["", "A"]),
        ("INT", Kind.TEXT, ["2", "007", "1e2"], ["2.5"]),
        ("DOUBLE", Kind.DECIMAL, ["0.10"], ["123456789012345678.12"]),
        ("DOUBLE", Kind.TEXT, ["0.1"], ["0.12345678901234567890"]),
        ("FLOAT", Kind.DECIMAL, ["0.1"], ["16777217"]),
        ("DOUBLE", Kind.BIT, [2**53], [2**53 + 1]),
        ("DECIMAL(9,2)", Kind.BINARY, [], [b"", b"\0\1"]),
        ("VARCHAR(5)", Kind.FLOAT, [1.25, 1e99], [1.23456789]),
        ("VARBINARY(5)", Kind.FLOAT, [1.25], [1.23456789]),
        ("BINARY(3)", Kind.TEXT, ["abc", "né"], ["a"]),
        ("BINARY(3)", Kind.INTEGER, [123], [1]),
        ("ENUM('a','b')", Kind.FLOAT, [], [1.5]),
        ("ENUM('a?','b')", Kind.INTEGER, [], [1]),
        ("SET('a','b')", Kind.INTEGER, [], [1]),
        ("SET('a','b')", Kind.BINARY, [], [b"a"]),
        ("DATE", Kind.INTEGER, [20260102], [0, 101, 101010]),
        ("DATETIME", Kind.DECIMAL, ["20260102030405"], ["101"]),
        ("DATE", Kind.TEXT, ["2026-01-02"], ["12-1-2", "10:00:00"]),
        ("DATETIME", Kind.TIME, [], ["10:00:00.000000", "00:00:00.000000"]),
        ("TIME", Kind.TEXT, ["10:00:00", "-1 2:03"], ["", "1e2", "2.5"]),
        ("TIME", Kind.FLOAT, [], [1.5]),
        ("TIME", Kind.YEAR, [], [2026]),
        ("TIME", Kind.DATETIME, [], ["0000-00-00 00:00:00.000000"]),
        ("JSON", Kind.DECIMAL, ["2.5"], ["123456789012345678.12"]),
    ],
)  # fmt: skip
def test_what_becomes_another_value_in_a_column_of_another_kind_is_refused(
    target, definition, kind, fits, changed
):
    target.make(definition)
    target.load(kind, *fits)
    before = target.held()
    assert len(before) == len(fits)
    for value in changed:
        if definition == "JSON" and not _is_json(target):
            continue  # the text of a number is kept
        with pytest.raises(DataError, match="column c would make another value"):
            target.load(kind, value)
        assert target.held() == before, value


@pytest.mark.parametrize(
    ("definition", "kind", "key", "neighbour"),
    [
        ("VARCHAR(30)", Kind.INTEGER, 2**53 + 1, str(2**53)),
        ("VARCHAR(30)", Kind.DECIMAL, "1.50", "1.5"),
        ("VARBINARY(30)", Kind.INTEGER, 65, "065"),
        ("BIGINT", Kind.TEXT, str(2**53 + 1), str(2**53)),
    ],
)
def test_a_row_whose_key_is_of_another_kind_there_is_the_one_that_goes(
    target, definition, kind, key, neighbour
):
    execute(
        target.server,
        f"CREATE TABLE {target.schema}.t (id INT, c {definition}, PRIMARY KEY (id, c))",
        f"INSERT INTO {target.schema}.t VALUES (0, '{neighbour}'), (0, '{key}')",
    )
    columns = (ID, Column("c", kind, precision=9, scale=2))
    gone = TargetChanges((target.schema, "t"), columns, (0, 1), [], [(0, key)])
    gone.delete_versions.append(1)
    target.sink.apply(target.ticket, [gone])
    assert target.held("CAST(c AS CHAR)") == [(neighbour,)]


def _is_json(target):
    named = f"TABLE_SCHEMA = '{target.schema}' AND COLUMN_NAME = 'c'"
    columns = f"SELECT DATA_TYPE FROM information_schema.COLUMNS WHERE {named}"
    return rows_of(target.server, columns) == [("json",)]


_MARIADB = pytest.mark.family("mariadb", why="MySQL has no such variable")


@pytest.mark.family("mariadb", why="MySQL has no UUID")
def test_a_uuid_that_would_be_spelt_in_another_way_is_refused(target):
    target.make("UUID")
    given = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
    target.load(Kind.TEXT, given)
    with pytest.raises(DataError, match="make another value of it, as uuid"):
        target.load(Kind.TEXT, given.upper())
    assert target.held() == [(given,)]


@pytest.fixture(
    params=[
        "sql_notes = 0",
        "max_error_count = 0",
        pytest.param("note_verbosity = ''", marks=_MARIADB),
    ]
)
def silent(site_a, request):
    """The server tells no session, or none that does not ask for it, that it rounds."""
    name = request.param.partition(" ")[0]
    [(before,)] = rows_of(site_a, f"SELECT @@GLOBAL.{name}")
    execute(site_a, f"SET GLOBAL {request.param}")
    yield
    execute(site_a, f"SET GLOBAL {name} = {before!r}")


@pytest.mark.usefixtures("silent")
def test_a_server_that_makes_no_notes_changes_no_value(target):
    target.make("DECIMAL(5,2)")
    target.load(Kind.TEXT, "1.50")
    for number in range(3):
        with pytest.raises(DataError, match="the target"):
            target.load(Kind.TEXT, *["1.50"] * number, "1.005")
    assert {str(value) for (value,) in target.held()} == {"1.50"}


def test_what_is_no_label_of_an_enum_arrives_beside_rows_that_have_one(target):
    target.make("ENUM('a','b')")
    target.load(Kind.ENUM, "a", "", None, "b", "")
    assert target.held("c+0") == [(1,), (0,), (None,), (2,), (0,)]
    with pytest.raises(DataError, match="lack that label"):
        target.load(Kind.ENUM, "a", "", "A")
    target.load(Kind.ENUM, "", "b")
    assert target.held("c+0") == [(0,), (2,), (None,), (2,), (0,)]
    with pytest.raises(DataError):
        target.load(Kind.ENUM, "a", "none of them")


def test_the_session_is_strict_again_after_an_enum_without_a_label(target):
    target.make("ENUM('a','b'), d TINYINT")
    columns = (ID, Column("c", Kind.ENUM), Column("d", Kind.INTEGER))

    def load(*rows):
        changes = TargetChanges((target.schema, "t"), columns, (0,), list(rows))
        changes.upsert_versions.extend([1] * len(rows))
        target.sink.apply(target.ticket, [changes])

    with pytest.raises(DataError, match="d"):
        load((1, "", 300))
    load((1, "", 7), (2, "a", 8))
    with pytest.raises(DataError, match="d"):
        load((3, "a", 300))
    assert target.held("c+0, d") == [(0, 7), (1, 8)]


def test_the_largest_float_is_refused_in_a_key(target):
    """MySQL would not find the row by it again."""
    target.make("FLOAT(10,5) NOT NULL", "PRIMARY KEY (c)")
    columns = (Column("c", Kind.FLOAT),)
    changes = TargetChanges((target.schema, "t"), (ID, *columns), (1,), [(1, 100000.0)], [])
    with pytest.raises(DataError, match=r"[Oo]ut of range"):
        target.sink.apply(target.ticket, [changes])
    assert target.held() == []


def test_a_value_that_does_not_fit_names_a_hint(target):
    target.make("TINYINT")
    with pytest.raises(DataError, match=r"[Oo]ut of range") as caught:
        target.load(Kind.INTEGER, 128)
    assert "Let the target's column hold what the source's does" in caught.value.hint
    target.sink.close()
    execute(target.server, f"ALTER TABLE {target.schema}.t MODIFY c INT")
    target.load(Kind.INTEGER, 128)
    assert target.held() == [(128,)]


@pytest.mark.family("mysql", why="MariaDB 10.11 has no VECTOR")
def test_a_vector_without_a_value_is_the_fault_of_its_row(target):
    """As rows have it that were there when VECTOR NOT NULL was added."""
    target.make("VECTOR(2) NOT NULL")
    with pytest.raises(DataError, match="cannot be converted to 'vector'") as caught:
        target.load(Kind.BINARY, bytes(8), b"")
    assert caught.value.where["key"] == "1"
    assert "UPDATE" in caught.value.hint
    assert "dead_letter" in caught.value.hint


@pytest.mark.family("mysql", why="MariaDB has no indexes over expressions")
def test_a_value_that_an_index_over_an_expression_cannot_hold(target):
    target.make("JSON, KEY i ((CAST(c->'$.n' AS UNSIGNED ARRAY)))")
    with pytest.raises(DataError, match="index") as caught:
        target.load(Kind.JSON, '{"n": [1]}', '{"n": [-1]}')
    assert caught.value.where["key"] == "1"
    assert "drop the index at the target" in caught.value.hint
