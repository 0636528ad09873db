"""Processors in whole pipelines: shipped to the tasks, mapped, verified, and failing."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from setl.bulk.comparison import What
from setl.bulk.verify_target import VerifySettings
from setl.errors import DataError
from setl.operate.verify import verify_pipeline
from setl.run.verification.comparers import standing_comparers
from setl.transform.processing import processor_named
from setl.transform.spark_on_demand import SparkOnDemand
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows

SETL = str(Path(sys.executable).with_name("setl"))
CODE = """
    def split(change):
        # Rows of one customer in two tables' worth of keys, the even half upside down.
        def rewrite(row):
            number = row.as_integer("id")
            return {"id": number * 10, "name": (row.as_text("name") or "")[::-1]}

        if change.row.as_text("name") == "secret":
            return change.as_delete().mapped(rewrite)
        return change.mapped(rewrite)

    def loud(change):
        return change.mapped(lambda row: {"name": (row.as_text("name") or "").upper()})

    def longer(change):
        return change.with_values({"length": len(change.row.as_text("name") or "")})

    def fails(change):
        return change.with_values({"amount": 1 / (change.row.as_integer("id") - 3)})
"""


@pytest.fixture(scope="module")
def rules(spark, tmp_path_factory):
    name = fresh_name("rules")
    file = tmp_path_factory.mktemp("code") / f"{name}.py"
    file.write_text(textwrap.dedent(CODE))
    spark.sparkContext.addPyFile(str(file))
    yield name
    processor_named.cache_clear()


def changes(db):
    """Inserts, updates, deletes and key changes, in one statement each: 9 row changes."""
    return (
        f"INSERT INTO {db}.orders (id, name) VALUES (1, 'one'), (2, 'secret'), (3, 'three')",
        f"UPDATE {db}.orders SET name = 'secret' WHERE id = 1",
        f"UPDATE {db}.orders SET name = 'told' WHERE id = 2",
        f"UPDATE {db}.orders SET id = 4 WHERE id = 3",
        f"INSERT INTO {db}.orders (id, name) VALUES (5, 'five'), (6, 'six')",
        f"DELETE FROM {db}.orders WHERE id = 6",
    )


@pytest.mark.parametrize("rows_per_task", [2_500, 1])
def test_what_a_processor_returns_is_what_the_target_holds(
    servers, db, position, spark, rules, rows_per_task
):
    a, b = servers
    mapping = {"from": f"{db}.orders", "processor": f"{rules}:split"}
    file = one_way(a, mysql(b), [mapping], rows_per_task=rows_per_task)
    execute(a, *changes(db))
    position.lead(file).applied(9)
    found = [(row[0], row[2]) for row in rows(b, f"{db}.orders")]
    assert found == [(20, "dlot"), (40, "eerht"), (50, "evif")]
    (verdict,) = verify_pipeline(spark, file.pipelines[0], None, 20)
    assert verdict.equal, verdict
    execute(b, f"UPDATE {db}.orders SET name = 'x' WHERE id = 40")
    (verdict,) = verify_pipeline(spark, file.pipelines[0], None, 20)
    assert not verdict.equal


def by_ranges(spark, file, rows):
    """What differs by key, in how many ranges it was compared, and why as a whole."""
    settings = VerifySettings(rechecks=1, pause=0.0)
    pipeline, on_demand = file.pipelines[0], SparkOnDemand.of(spark)
    (comparer,) = standing_comparers(on_demand, pipeline, NobodyKnows(), settings)
    found: dict[str, What] = {}
    after, ranges = None, 0
    while True:
        outcome = comparer.compare(after, rows)
        after, ranges = outcome.last, ranges + 1
        found |= {each.key: each.what for each in outcome.verdict.sample_keys}
        if after is None:
            return found, ranges, comparer.whole


def test_rows_of_a_processor_are_compared_in_ranges_unless_they_differ(
    servers, db, position, spark, rules
):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders", "processor": f"{rules}:loud"}])
    values = ", ".join(f"({i}, 'name {i}')" for i in range(1, 31))
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES {values}")
    position.lead(file).applied(30)
    assert by_ranges(spark, file, 10) == ({}, 4, "")
    execute(
        b,
        f"UPDATE {db}.orders SET name = 'x' WHERE id = 15",
        f"DELETE FROM {db}.orders WHERE id = 25",
    )
    found, ranges, whole = by_ranges(spark, file, 10)
    assert found == {"15": What.DIFFERENT, "25": What.MISSING}
    assert ranges == 2, "the second range differs, and so all rows are compared"
    assert "may have given it the key of another range" in whole
    # One that gives rows other keys: what is not in a range is no difference.
    other = one_way(a, mysql(b), [{"from": f"{db}.orders", "processor": f"{rules}:split"}])
    execute(
        b,
        f"UPDATE {db}.orders SET name = REVERSE(LOWER(name)), id = -id",
        f"REPLACE INTO {db}.orders (id, name) VALUES (-15, '51 eman'), (-25, '52 eman')",
        f"UPDATE {db}.orders SET id = -10 * id",
    )
    assert by_ranges(spark, other, 10)[:2] == ({}, 1)


class NobodyKnows:
    """See `PositionWaiter`."""

    def end(self):
        return None

    def wait(self, end):
        raise AssertionError(end)


def test_columns_that_a_processor_adds(servers, db, position, rules):
    a, b = servers
    execute(b, f"ALTER TABLE {db}.orders ADD COLUMN length INT NOT NULL")
    file = one_way(a, mysql(b), [{"from": f"{db}.orders", "processor": f"{rules}:longer"}])
    execute(a, *changes(db))
    position.lead(file).applied(9)
    found = execute(b, f"SELECT id, name, length FROM {db}.orders ORDER BY id")
    assert list(found) == [(1, "secret", 6), (2, "told", 4), (4, "three", 5), (5, "five", 4)]


def test_a_processor_and_an_expression(servers, db, position, rules):
    a, b = servers
    columns = {"name": "upper(name)"}
    mapping = {"from": f"{db}.orders", "processor": f"{rules}:split", "columns": columns}
    file = one_way(a, mysql(b), [{**mapping, "where": "id <> 50"}])
    execute(a, *changes(db))
    position.lead(file).applied(9)
    found = [(row[0], row[2]) for row in rows(b, f"{db}.orders")]
    assert found == [(20, "DLOT"), (40, "EERHT")]


def test_an_error_of_a_processor_names_the_row(servers, db, position, rules):
    a, b = servers
    mapping = {"from": f"{db}.orders", "processor": f"{rules}:fails"}
    file = one_way(a, mysql(b), [mapping])
    execute(a, f"INSERT INTO {db}.orders (id) VALUES (1), (2), (3), (4)")
    error = position.lead(file).ends()
    assert isinstance(error, DataError)
    assert "raised ZeroDivisionError" in error.message
    assert error.where["key"] == "3"
    assert error.where["table"] == f"{db}.orders"
    assert rows(b, f"{db}.orders") == ()


@pytest.mark.parametrize(
    ("option", "function", "status", "text"),
    [
        (True, "split", 0, "are right"),
        (True, "nothing", 1, "has no function nothing"),
        (False, "split", 1, "Give the file with --py-files"),
    ],
)
def test_check_imports_the_processors(servers, db, tmp_path, option, function, status, text):
    a, b = servers
    module = fresh_name("checked")
    (tmp_path / f"{module}.py").write_text(textwrap.dedent(CODE))
    source = {**mysql(a), "password": "${SITE_A_PASSWORD}"}
    target = {**mysql(b), "password": "${SITE_B_PASSWORD}"}
    tables = [{"from": f"{db}.orders", "processor": f"{module}:{function}"}]
    pipeline = {"name": "p", "source": source, "target": target, "tables": tables}
    (tmp_path / "channel.json").write_text(json.dumps({"channel": db, "pipelines": [pipeline]}))
    code = ["--py-files", f"{module}.py"] if option else []
    done = subprocess.run(
        [SETL, "check", *code, "channel.json"],
        cwd=tmp_path,
        env={**os.environ, "SITE_A_PASSWORD": a.password, "SITE_B_PASSWORD": b.password},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert text in done.stdout
