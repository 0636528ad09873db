"""Rows whose generated columns the target computes in another way than the source did."""

from dataclasses import replace

import pytest

from setl.errors import DataError
from setl.model.schema import Column, Kind
from tests.integration.pipelines import execute
from tests.integration.targets.test_mysql_sink import ID, NAME, StartPoint
from tests.loading import rows_of

CREATED = Column("created", Kind.TIMESTAMP)
DAY = Column("day", Kind.DATE)
DAYS = (ID, CREATED, DAY)
NOON = "2026-01-01 12:00:00.000000"
NIGHT = "2026-01-01 02:00:00.000000"
EVENING = "2026-01-01 18:00:00.000000"


@pytest.fixture
def position(site_a):
    position = StartPoint(site_a)
    yield position
    position.sink.close()


def days(position):
    return position.rows("id, CAST(created AS CHAR), CAST(day AS CHAR)")


def test_a_value_that_no_session_gives_is_refused_and_nothing_is_written(position):
    position.table("id INT PRIMARY KEY, name VARCHAR(9), tripled INT AS (id * 3) STORED")
    columns = (ID, NAME, Column("tripled", Kind.INTEGER))
    with pytest.raises(DataError, match="another value for tripled") as caught:
        position.write(columns, [(1, "a", 3), (2, "b", 7)])
    assert caught.value.where["key"] == "2"
    assert "without GENERATED" in caught.value.hint
    assert position.rows() == []


def test_a_value_that_the_expression_cannot_compute_names_a_hint(position):
    position.table("id INT PRIMARY KEY, n BIGINT, doubled BIGINT AS (n * 2) STORED")
    columns = (ID, Column("n", Kind.INTEGER), Column("doubled", Kind.INTEGER))
    with pytest.raises(DataError, match="out of range") as caught:
        position.write(columns, [(1, 2, 4), (2, 2**62, -1)])
    assert caught.value.where["key"] == "2"
    assert "without GENERATED" in caught.value.hint


def test_faulty_rows_are_put_aside_and_leave_what_was_there(site_a):
    position = StartPoint(site_a, dead_letter_limit=5)
    position.table("id INT PRIMARY KEY, name VARCHAR(9), tripled INT AS (id * 3) STORED")
    columns = (ID, NAME, Column("tripled", Kind.INTEGER))
    position.write(columns, [(2, "old", 6)])
    loaded = position.write(columns, [(1, "a", 3), (2, "b", 7), (3, "c", 9), (4, "d", 1)])
    assert loaded.dead_letters == 2
    assert position.rows() == [(1, "a", 3), (2, "old", 6), (3, "c", 9)]
    position.sink.close()


def test_rows_of_several_time_zones_in_one_load(position):
    position.table("id INT PRIMARY KEY, created TIMESTAMP NULL, day DATE AS (DATE(created)) STORED")
    rows = [(1, NOON, "2026-01-01"), (2, EVENING, "2026-01-02"), (3, NIGHT, "2025-12-31")]
    position.write(DAYS, rows)
    assert days(position) == [(i, moment[:19], day) for i, moment, day in rows]
    position.write(DAYS, rows)
    assert days(position) == [(i, moment[:19], day) for i, moment, day in rows]


def test_columns_that_only_the_target_has_are_stored(position):
    position.table(
        "id INT PRIMARY KEY, created TIMESTAMP NULL, day DATE AS (DATE(created)) STORED,"
        " here VARCHAR(9) DEFAULT 'new'"
    )
    position.write(DAYS, [(1, EVENING, "2026-01-02"), (2, NOON, "2026-01-01")])
    execute(position.server, f"UPDATE {position.schema}.t SET here = 'mine'")
    position.write(DAYS, [(1, "2026-05-05 18:00:00.000000", "2026-05-06"), (3, NOON, "2026-01-01")])
    assert position.rows("id, CAST(day AS CHAR), here") == [
        (1, "2026-05-06", "mine"),
        (2, "2026-01-01", "mine"),
        (3, "2026-01-01", "new"),
    ]


def test_an_index_over_a_virtual_column_that_would_differ_is_refused(position):
    position.table(
        "id INT PRIMARY KEY, created TIMESTAMP NULL, day DATE AS (DATE(created)) VIRTUAL, KEY (day)"
    )
    position.write(DAYS, [(1, NOON, "2026-01-01")])
    with pytest.raises(DataError, match="another value for day") as caught:
        position.write(DAYS, [(2, EVENING, "2026-01-02")])
    assert "Drop the index" in caught.value.hint
    (check,) = rows_of(position.server, f"CHECK TABLE {position.schema}.t EXTENDED")
    assert check[-1] == "OK"


def test_a_virtual_column_without_an_index_is_the_readers_business(position):
    position.table(
        "id INT PRIMARY KEY, created TIMESTAMP NULL, day DATE AS (DATE(created)) VIRTUAL"
    )
    position.write(DAYS, [(2, EVENING, "2026-01-02")])
    assert days(position) == [(2, EVENING[:19], "2026-01-01")]


@pytest.mark.family("mariadb", why="MySQL has no type for addresses")
def test_an_address_beside_what_a_strict_session_refuses(position):
    position.table("id INT PRIMARY KEY, a INET4, u UUID, n INT, small TINYINT AS (n) STORED")
    columns = (
        ID, Column("a", Kind.BINARY), Column("u", Kind.BINARY), Column("n", Kind.INTEGER),
        Column("small", Kind.INTEGER),
    )  # fmt: skip
    position.write(
        columns, [(1, b"\x0a\0\0\x01", bytes(15) + b"\x01", 1000, 127), (2, None, None, 5, 5)]
    )
    assert position.rows() == [
        (1, "10.0.0.1", "00000000-0000-0000-0000-000000000001", 1000, 127),
        (2, None, None, 5, 5),
    ]


def test_a_note_about_a_generated_column_is_about_no_value_that_is_written(position):
    position.table(
        "id INT PRIMARY KEY, n DECIMAL(5,2), `V at row 1` DECIMAL(5,1) AS (n + 0.05) STORED"
    )
    # A number of another kind is written under watch: only the server tells what becomes of it.
    columns = (ID, Column("n", Kind.FLOAT), Column("V at row 1", Kind.DECIMAL, scale=1))
    position.write(columns, [(1, 1.5, "1.6"), (2, 1.25, "1.3")])
    held = [(i, str(n), str(v)) for i, n, v in position.rows()]
    assert held == [(1, "1.50", "1.6"), (2, "1.25", "1.3")]
    with pytest.raises(DataError, match="would change a value"):
        position.write(columns, [(3, 1.005, "1.1")])


@pytest.mark.family("mariadb", why="MySQL refuses such a row in any session")
@pytest.mark.parametrize(
    ("type_", "expression", "value", "computed"),
    [
        ("BIT(10)", "CAST(n AS CHAR(40) CHARACTER SET utf8mb4)", 1023, "\3"),
        ("BIT(10)", "JSON_TYPE(n)", 1, None),
    ],
)
def test_text_that_only_a_lenient_session_computes(position, type_, expression, value, computed):
    """INSERT IGNORE is such a session, too."""
    position.table(f"id INT PRIMARY KEY, n {type_}, v VARCHAR(40) AS ({expression}) STORED")
    execute(position.server, f"INSERT IGNORE INTO {position.schema}.t (id, n) VALUES (5, {value})")
    [(_, _, held)] = position.rows()
    columns = (ID, Column("n", Kind.BIT), Column("v", Kind.TEXT))
    position.write(columns, [(1, value, held)])
    assert [v for _, _, v in position.rows()] == [held, held]
    with pytest.raises(DataError) as caught:
        position.write(columns, [(2, value, "other")])
    assert "without GENERATED" in caught.value.hint


@pytest.mark.family("mysql", why="MariaDB takes no such default")
def test_a_default_that_a_strict_session_refuses_is_none_of_an_updates(position):
    """An update that is logged with binlog_row_image=MINIMAL does not say the column."""
    execute(
        position.server,
        "SET sql_mode = ''",
        f"CREATE TABLE {position.schema}.t (id INT PRIMARY KEY, n INT,"
        " x TINYTEXT CHARACTER SET ascii NOT NULL DEFAULT (CONCAT('é', '')))",
        f"INSERT INTO {position.schema}.t VALUES (1, 1, 'B')",
    )
    change = position.changes((ID, Column("n", Kind.INTEGER)), [(1, 2)])
    position.sink.apply(position.ticket, [replace(change, partial=True)])
    assert position.rows() == [(1, 2, "B")]
    unknown = replace(position.changes((ID, Column("n", Kind.INTEGER)), [(7, 2)]), partial=True)
    with pytest.raises(DataError, match="the target lacks this row"):
        position.sink.apply(position.ticket, [unknown])


def test_the_session_is_as_it_was_afterwards(position):
    position.table("id INT PRIMARY KEY, created TIMESTAMP NULL, day DATE AS (DATE(created)) STORED")
    position.table("id INT PRIMARY KEY, created TIMESTAMP NULL", name="plain")
    position.table("id INT PRIMARY KEY, name VARCHAR(3)", name="short")
    for _ in range(2):
        position.write(DAYS, [(1, EVENING, "2026-01-02")])
        position.write((ID, CREATED), [(1, EVENING)], name="plain")
        (row,) = rows_of(
            position.server, f"SELECT id, CAST(created AS CHAR) FROM {position.schema}.plain"
        )
        assert row == (1, EVENING[:19])
        with pytest.raises(DataError, match="too long"):
            position.write((ID, NAME), [(1, "far too long for it")], name="short")
