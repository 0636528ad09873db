"""Pipelines into Delta tables; DuckDB and pyarrow read what came of them."""

import json
import math
from datetime import UTC, timedelta
from decimal import Decimal
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from setl import failpoints
from setl.channel.file import Pipeline
from setl.errors import DataError, FatalError, TargetReplacedError
from setl.operate.verify import verify_pipeline
from setl.run.targets import identities
from tests.checking import check_channel
from tests.integration.every_type import TYPES
from tests.integration.pipelines import (
    ORDERS,
    execute,
    install_system_tables,
    new_database,
    on_a,
    one_way,
    rows,
    seven_changes,
)
from tests.mysql_servers import is_mariadb
from tests.waiting import eventually

LINES = """CREATE TABLE {db}.`lines` (shop VARCHAR(10), no BIGINT UNSIGNED, text TEXT,
    PRIMARY KEY (shop, no)) CHARACTER SET utf8mb4"""
db = on_a("lake", ORDERS, LINES, system_tables=True)


def target(folder, **options):
    return {"type": "delta", "path": str(folder), **options}


def table_at(folder, schema, table):
    return DeltaTable(f"{folder}/{schema}/{table}")


def seen(folder, schema, table, what="*", order="1"):
    """Rows as DuckDB reads them from the files that the log names."""
    files = table_at(folder, schema, table).file_uris()
    if not files:
        return []
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        reader = f"read_parquet({files}, union_by_name = true)"
        return connection.sql(f"SELECT {what} FROM {reader} ORDER BY {order}").fetchall()


def comparable(value):
    """A value of either client's in one form."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    if isinstance(value, timedelta):
        micros = round(abs(value) / timedelta(microseconds=1))
        sign = "-" if value < timedelta(0) else ""
        seconds, micros = divmod(micros, 1_000_000)
        minutes, hours = seconds // 60, seconds // 3600
        return f"{sign}{hours:02}:{minutes % 60:02}:{seconds % 60:02}.{micros:06}"
    if hasattr(value, "astimezone") and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def test_tables_follow_their_rows(site_a, db, position, spark, tmp_path):
    options = {"create": True, "load": True}
    tables = [{"from": f"{db}.*", **options}]
    execute(
        site_a,
        f"INSERT INTO {db}.orders (id, name) VALUES (7, 'loaded')",
        f"INSERT INTO {db}.`lines` VALUES ('a', 18446744073709551615, 'loaded'), ('A', 1, 'x')",
    )
    file = one_way(site_a, target(tmp_path, optimize=4, vacuum=True), tables)
    pipeline: Pipeline = file.pipelines[0]
    found = check_channel(file)
    assert [f.what for f in found if f.level in {"error", "warning"}] == []
    made = [f for f in found if "will create the Delta table" in f.what]
    assert "no decimal(20,0)" in made[0].mapping_lines + made[1].mapping_lines
    run = position.lead(file)
    lines = partial(seen, tmp_path, db, "lines")
    eventually(lambda: run.runs() and len(lines()) == 2, 90, message="the tables are loaded")
    execute(site_a, *seven_changes(db))
    execute(
        site_a,
        f"UPDATE {db}.`lines` SET text = 'again' WHERE no = 18446744073709551615",
        f"UPDATE {db}.`lines` SET shop = 'Z' WHERE no = 1",
    )
    run.applied(9)
    for table in ("orders", "lines"):
        there = {tuple(map(comparable, row)) for row in seen(tmp_path, db, table)}
        assert there == {tuple(map(comparable, r)) for r in rows(site_a, f"{db}.`{table}`")}
    # A reader finds a row by its key, whatever the log says of least and greatest values.
    largest = pc.field("no") == pc.scalar(Decimal(2**64 - 1))
    found = table_at(tmp_path, db, "lines").to_pyarrow_dataset().get_fragments(filter=largest)
    assert len([*found]) >= 1
    verdicts = verify_pipeline(spark, pipeline)
    counts = {(v.source_rows, v.target_rows, v.differences) for v in verdicts}
    assert counts == {(4, 4, 0), (2, 2, 0)}
    table_at(tmp_path, db, "orders").delete("id = 2")
    table_at(tmp_path, db, "orders").update({"name": "'other'"}, predicate="id = 7")
    verdicts = verify_pipeline(spark, pipeline, wait=lambda _: None)
    (verdict,) = [v for v in verdicts if v.differences]
    assert (verdict.missing, verdict.extra, verdict.different) == (1, 0, 1)
    assert {key.key for key in verdict.sample_keys} == {"2", "7"}
    run.stop()


def test_new_columns_are_added_and_whatever_says_nothing_of_rows_stops(
    site_a, db, position, tmp_path
):
    tables = [{"from": f"{db}.orders*", "create": True}]
    file = one_way(site_a, target(tmp_path), tables, ddl="pass")
    run = position.lead(file)
    eventually(lambda: DeltaTable.is_deltatable(f"{tmp_path}/{db}/orders"), 60)
    execute(
        site_a,
        f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a')",
        f"ALTER TABLE {db}.orders ADD COLUMN cost DECIMAL(30,4) NULL AFTER id, ADD INDEX (cost)",
        f"INSERT INTO {db}.orders (id, cost) VALUES (2, '12345678901234567890123456.7891')",
        f"ALTER TABLE {db}.orders DROP COLUMN name, COMMENT = 'x'",
        f"UPDATE {db}.orders SET cost = 1 WHERE id = 1",
        f"INSERT INTO {db}.orders (id) VALUES (3)",
    )
    run.applied(4)
    assert seen(tmp_path, db, "orders", "id, name, cost") == [
        (1, "a", Decimal("1.0000")),
        (2, None, Decimal("12345678901234567890123456.7891")),
        (3, None, None),
    ]
    execute(
        site_a,
        f"CREATE TABLE {db}.orders_2 (id INT PRIMARY KEY, name TEXT)",
        f"INSERT INTO {db}.orders_2 VALUES (1, 'new')",
    )
    run.applied(5)
    assert seen(tmp_path, db, "orders_2") == [(1, "new")]
    execute(site_a, f"ALTER TABLE {db}.orders ADD COLUMN n INT NOT NULL DEFAULT 7")
    error = run.ends()
    assert isinstance(error, FatalError)
    assert "rows that are there get a value in n" in error.message
    # As the hint says: by hand, past it, and on.
    table_at(tmp_path, db, "orders").alter.add_columns([Field("n", PrimitiveType("long"))])
    table_at(tmp_path, db, "orders").update({"n": "7"})
    ignoring = file.model_copy(
        update={"pipelines": [file.pipelines[0].model_copy(update={"ddl": "ignore"})]}
    )
    run = position.lead(ignoring)
    execute(site_a, f"UPDATE {db}.orders SET cost = 5 WHERE id = 3")
    last = (3, Decimal("5.0000"), 7)
    eventually(lambda: run.runs() and seen(tmp_path, db, "orders", "id, cost, n")[2] == last, 60)


def test_what_a_crash_repeats_changes_nothing(site_a, db, position, tmp_path, monkeypatch):
    """What a load brought is in the tables, and its checkpoint is not stored."""
    points = tmp_path / "points"
    points.mkdir()
    monkeypatch.setattr(failpoints, "_folder", str(points))
    file = one_way(site_a, target(tmp_path / "lake"), [{"from": f"{db}.*", "create": True}])
    run = position.lead(file)
    armed, taken = points / "load.after_job", points / "load.after_job.taken"
    for name in "ab":
        armed.write_text("error")
        execute(
            site_a,
            f"INSERT INTO {db}.orders (id, name) VALUES (1, '{name}'), (2, '{name}')",
            f"INSERT INTO {db}.`lines` VALUES ('{name}', 1, 'x')",
            f"UPDATE {db}.orders SET id = 3 WHERE id = 1",
        )
        eventually(lambda: taken.exists() or not run.thread.is_alive(), 60)
        assert taken.exists(), run.error
        taken.unlink()
        # Comes with what is loaded again, and takes some of it back.
        execute(site_a, f"DELETE FROM {db}.orders WHERE id IN (2, 3)")
    run.applied(12)
    assert seen(tmp_path / "lake", db, "orders") == []
    assert seen(tmp_path / "lake", db, "lines", "shop, no, text") == [
        ("a", Decimal(1), "x"),
        ("b", Decimal(1), "x"),
    ]


@pytest.fixture
def types(site_a):
    """A table with a column of each type, and the values for each."""
    install_system_tables(site_a)
    with site_a.connect() as connection:
        mariadb = is_mariadb(connection)
    named = {
        name: (definition, [*values, "NULL"])
        for name, (definition, values) in TYPES.items()
        if mariadb or not ("COMPRESSED" in definition or "UUID" in definition)
    }
    columns = ", ".join(f"`{name}` {definition}" for name, (definition, _) in named.items())
    create = f"CREATE TABLE {{db}}.t (no INT PRIMARY KEY, {columns})"
    with new_database([site_a], "types", create, options="CHARACTER SET utf8mb4") as schema:
        yield schema, {name: values for name, (_, values) in named.items()}


def test_values_of_all_types_arrive(site_a, types, position, spark, tmp_path):
    schema, named = types
    tables = [{"from": f"{schema}.t", "create": True}]
    file = one_way(site_a, target(tmp_path, zero_dates="as_null"), tables)
    assert [f.what for f in check_channel(file) if f.level == "error"] == []
    run = position.lead(file)
    count = max(map(len, named.values()))
    with site_a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'")
        cursor.execute("SET time_zone = '+00:00'")
        for no in range(count):
            row = ", ".join(values[no % len(values)] for values in named.values())
            cursor.execute(f"INSERT INTO {schema}.t VALUES ({no}, {row})")
    run.applied(count)
    there, here = seen(tmp_path, schema, "t"), rows(site_a, f"{schema}.t")
    assert len(there) == len(here) == count
    no_dates = 0
    for found, kept in zip(there, here, strict=True):
        for name, one, other in zip(["", *named], found, kept, strict=True):
            assert equal(name, one, other), (name, one, other)
            no_dates += (one is None) != (other is None)
    assert no_dates
    (verdict,) = verify_pipeline(spark, file.pipelines[0])
    assert (verdict.source_rows, verdict.target_rows, verdict.differences) == (count, count, 0)


def equal(name, found, kept):
    if name.startswith(("date", "timestamp")) and isinstance(kept, str):
        return found is None  # a date that no calendar has
    if name == "uuid" and kept is not None:
        return found.hex() == kept.replace("-", "")
    if name == "json" and kept is not None:
        return json.loads(found) == json.loads(kept)
    if name == "float" and kept is not None:
        return math.isclose(found, kept, rel_tol=1e-5)  # the server prints six digits
    if name.startswith("bit") and kept is not None:
        return int(found) == int.from_bytes(kept, "big")
    if name.startswith("decimal") and kept is not None:
        return Decimal(found) == kept
    return comparable(found) == comparable(kept)


def test_a_date_that_no_calendar_has_stops(site_a, db, position, tmp_path):
    file = one_way(site_a, target(tmp_path), [{"from": f"{db}.orders", "create": True}])
    run = position.lead(file)
    with site_a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute(f"INSERT INTO {db}.orders (id, at) VALUES (5, 0)")
    error = run.ends()
    assert isinstance(error, DataError)
    assert "zero_dates: as_null" in error.hint
    assert error.where["key"] == "5"


@pytest.mark.family("mariadb", why="what is about Delta tables is the same for both")
def test_what_others_changed_is_repaired(site_a, db, position, tmp_path):
    """As `setl verify --repair` and `setl load --replace` do: keys are read again at the source."""
    file = one_way(site_a, target(tmp_path), [{"from": f"{db}.orders", "create": True}])
    run = position.lead(file)
    execute(site_a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    run.applied(3)
    table = table_at(tmp_path, db, "orders")
    table.delete("id = 2")
    table.update({"name": "'other'"}, predicate="id = 3")
    table.update({"id": "99"}, predicate="id = 1")
    assert {row[0] for row in seen(tmp_path, db, "orders")} == {3, 99}
    execute(
        site_a,
        *(
            "INSERT INTO retl.retl_buffer (TABLE_ID, FULL_NAME, TYPE, PK_DATA)"
            f" VALUES (0, '{db}.orders', 'I', '{key}')"
            for key in (1, 2, 3, 99)
        ),
    )
    right = [(1, "a"), (2, "b"), (3, "c")]
    eventually(lambda: run.runs() and seen(tmp_path, db, "orders", "id, name") == right, 60)


@pytest.mark.family("mariadb", why="what is about Delta tables is the same for both")
def test_tables_that_are_not_those_of_before_stop(site_a, db, position, tmp_path, monkeypatch):
    """Of rows that are not there any more, the stream brings none again."""
    monkeypatch.setattr(identities, "LOOK_SECONDS", 0.2)
    lake, away = tmp_path / "lake", tmp_path / "away"
    file = one_way(site_a, target(lake), [{"from": f"{db}.orders", "create": True}])
    run = position.lead(file)
    execute(site_a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a')")
    run.applied(1)
    run.stop()
    # A node on which the disk is not there sees an empty folder.
    lake.rename(away)
    execute(site_a, f"INSERT INTO {db}.orders (id, name) VALUES (2, 'b')")
    error = position.lead(file).ends()
    assert isinstance(error, FatalError)
    assert "has no fence" in error.message
    assert not lake.exists()
    away.rename(lake)
    run = position.lead(file)
    run.applied(2)
    assert [row[0] for row in seen(lake, db, "orders")] == [1, 2]
    # Somebody makes the table again, as with mode="overwrite".
    table = table_at(lake, db, "orders")
    DeltaTable.create(f"{lake}/{db}/orders", table.schema(), mode="overwrite")
    error = eventually(lambda: write_until_it_ends(site_a, db, run), 60)
    assert isinstance(error, TargetReplacedError)
    assert "was replaced" in error.message
    assert 1 not in {row[0] for row in seen(lake, db, "orders")}


def write_until_it_ends(server, db, run):
    """Rows of a few seconds go to what is there, since nobody looks at it for each load."""
    execute(server, f"INSERT INTO {db}.orders (id) SELECT MAX(id) + 1 FROM {db}.orders")
    return run.error


@pytest.mark.family("mariadb", why="what is about Delta tables is the same for both")
def test_what_is_wrong_is_found_before(site_a, db, tmp_path):
    execute(
        site_a,
        f"CREATE TABLE {db}.a (id DOUBLE PRIMARY KEY, `a b` INT)",
        f"CREATE TABLE {db}.b (id INT, name TEXT)",
        f"CREATE TABLE {db}.c (id INT PRIMARY KEY, name TEXT)",
    )

    def errors(*tables, **options):
        file = one_way(site_a, target(tmp_path), list(tables), **options)
        return {f.code for f in check_channel(file) if f.level == "error"}

    orders, made = {"from": f"{db}.orders"}, {"create": True}
    assert errors(orders) == {"no-table"}
    assert errors(orders | made, faulty_rows="dead_letter") == {"no-dead-letters"}
    assert errors({"from": f"{db}.a"} | made) == {"float-key", "column-name"}
    assert errors({"from": f"{db}.b"} | made) == {"no-key"}
    assert errors(orders | made | {"to": "x.a/b"}) == {"not-readable"}
    schema = pa.schema([("id", pa.string()), ("name", pa.string())])
    DeltaTable.create(f"{tmp_path}/{db}/c", schema, partition_by=["name"])
    DeltaTable.create(f"{tmp_path}/{db}/orders", pa.schema([("id", pa.int64())]))
    assert errors({"from": f"{db}.c"} | made) == {"column-type", "table-form"}
    assert errors(orders) == {"no-column"}
    assert errors(orders | {"include": ["id"]}) == set()
