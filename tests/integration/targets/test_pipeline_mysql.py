"""Whole pipelines between real servers, with what happens to them at the worst moments."""

from functools import partial
from types import SimpleNamespace

import pytest

from setl.errors import ConfigurationError
from setl.run.runners import table_by_table
from setl.transform.spark_on_demand import SparkOnDemand
from tests.integration.pipelines import execute, mysql, one_way, rows


def test_expressions_where_and_column_lists(servers, db, position):
    a, b = servers
    execute(b, f"CREATE TABLE {db}.report (id BIGINT PRIMARY KEY, who TEXT, total DECIMAL(30,6))")
    mapping = {
        "from": f"{db}.orders",
        "to": f"{db}.report",
        "include": ["id"],
        "columns": {"who": "upper(name)", "total": "amount * 2"},
        "where": "kind = 'a'",
    }
    file = one_way(a, mysql(b), [mapping])
    execute(
        a,
        f"INSERT INTO {db}.orders (id, name, amount, kind) VALUES"
        " (1,'ann',1.5,'a'), (2,'bob',2,'a'), (3,'cy',3,'二手')",
        f"UPDATE {db}.orders SET kind = '二手' WHERE id = 2",
    )
    running = position.lead(file)
    running.applied(4)
    report = [(i, w, str(t)) for i, w, t in rows(b, f"{db}.report")]
    assert report == [(1, "ANN", "3.000000")]
    execute(a, f"UPDATE {db}.orders SET kind = 'a' WHERE id = 3")
    running.applied(5)
    assert [r[0] for r in rows(b, f"{db}.report")] == [1, 3]


@pytest.mark.parametrize("columns", [{}, {"name": "upper(name)"}], ids=["plain", "expressions"])
def test_a_large_batch_is_dealt_out_to_several_tasks(servers, db, position, columns):
    a, b = servers
    mapping = {"from": f"{db}.orders", "columns": columns}
    file = one_way(a, mysql(b), [mapping], rows_per_task=100)
    with a.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {db}.orders (id, name, amount) VALUES (%s, %s, %s)",
            [(i, f"name {i}", i) for i in range(3000)],
        )
        cursor.execute(f"UPDATE {db}.orders SET name = 'again' WHERE id % 3 = 0")
        cursor.execute(f"DELETE FROM {db}.orders WHERE id % 5 = 0")
        connection.commit()
    running = position.lead(file)
    running.applied(3000 + 1000 + 600)
    if columns:
        execute(a, f"UPDATE {db}.orders SET name = upper(name)")
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


def test_a_take_over_inside_a_large_transaction_applies_each_row_once(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}], batch_rows=500, window=1)
    with a.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {db}.orders (id, name) VALUES (%s, %s)",
            [(i, "x" * 30) for i in range(20_000)],
        )
        connection.commit()
    done = position.lead(file, dies_when=lambda f: f.rows_total > 0).dies().rows_total
    assert 0 < done < 20_000, "the first leader was to be stopped inside the transaction"
    second = position.lead(file, nid="n2")
    figures = second.applied(20_000)
    assert figures.rows_total == 20_000
    assert figures.rows_applied < 20_000, "the second leader began at the start again"
    assert len(rows(b, f"{db}.orders")) == 20_000


def test_a_table_that_is_missing_stops_the_pipeline_and_nothing_is_lost(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
    execute(a, f"CREATE TABLE {db}.late (id INT PRIMARY KEY)", f"INSERT INTO {db}.late VALUES (1)")
    execute(a, f"INSERT INTO {db}.orders (id) VALUES (1)")
    running = position.lead(file)
    error = running.ends()
    assert isinstance(error, ConfigurationError)
    assert f"{db}.late" in str(error)
    execute(b, f"CREATE TABLE {db}.late (id INT PRIMARY KEY)")
    position.lead(file).applied(2)
    assert rows(b, f"{db}.late") == ((1,),)
    assert len(rows(b, f"{db}.orders")) == 1


def test_what_tasks_measure_comes_back_with_what_they_return(servers, db, position):
    a, b = servers
    seen = []
    reported = SimpleNamespace(export=seen.extend)
    position.build_run = partial(position.build_run, tracer=reported)
    file = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'one'), (2, 'two')")
    running = position.lead(file)
    running.applied(2)
    measured = {
        (measure.name, label): histogram
        for (measure, label), histogram in running.progress.measured().items()
    }
    assert measured["setl_statement_duration_seconds", ""].count == 1
    assert measured["setl_load_rows", ""].total == 2
    assert measured["setl_batch_rows", ""].count >= 1
    loads = [trace for trace in seen if len(trace.stages) == 4]
    assert [span.stage for span in loads[0].stages] == ["select", "extract", "transform", "load"]
    times = [moment for span in loads[0].stages for moment in (span.begun, span.ended)]
    assert times == sorted(times)
    assert loads[0].stages[3].ended > loads[0].stages[3].begun, "a task has said when it wrote"


class NoSession(SparkOnDemand):
    """Gives the context, and notes who asks for the session, which takes seconds to make."""

    asked = 0

    @property
    def session(self):
        self.asked += 1
        return super().session


def test_only_spark_sql_needs_a_session(servers, db, position, spark):
    a, b = servers
    on_demand = NoSession(lambda: spark.sparkContext)
    position.build_run = partial(position.build_run, spark=on_demand)
    plain = one_way(a, mysql(b), [{"from": f"{db}.orders"}])
    some = one_way(a, mysql(b), [{"from": f"{db}.orders", "where": "id > 1"}])
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'one'), (2, 'two')")
    running = position.lead(plain)
    running.applied(2)
    running.stop()
    assert on_demand.asked == 0
    position.lead(some).applied(1)
    assert on_demand.asked > 0
    assert on_demand.session is spark, "there is one in a process"


def test_rows_that_move_between_tables_of_one_target_are_right_where_each_task_has_whole_tables(
    servers, db, position, monkeypatch
):
    """The key of a row says nothing of the order between its tables; one task has both."""
    dealt, as_ever = [], table_by_table.by_task

    def by_task(*arguments):
        dealt.append(as_ever(*arguments))
        return dealt[-1]

    monkeypatch.setattr(table_by_table, "by_task", by_task)
    a, b = servers
    columns = "(id INT PRIMARY KEY, note VARCHAR(300))"
    for name in ("old", "new", "other"):
        execute(a, f"CREATE TABLE {db}.{name} {columns}")
    for name in ("notes", "other"):
        execute(b, f"CREATE TABLE {db}.{name} {columns}")
    tables = [{"from": f"{db}.{name}", "to": f"{db}.notes"} for name in ("old", "new")]
    tables.append({"from": f"{db}.other"})
    # All changes are one load, whose work is enough for two tasks. By their sizes alone, `new`
    # and `other` would have one of them.
    changes = 40 + 40 + 20 * 4 + 15
    options = {"batch_rows": changes, "batch_wait": 60, "rows_per_task": 5}
    file = one_way(a, mysql(b), tables, **options)
    text = "x" * 250
    with a.connect() as connection, connection.cursor() as cursor:

        def write(name, n, what):
            cursor.execute(f"INSERT INTO {db}.{name} VALUES (%s, %s)", (n, f"{what} {text}"))

        def remove(name, n):
            cursor.execute(f"DELETE FROM {db}.{name} WHERE id = %s", (n,))

        for n in range(40):
            write("old", n, "first")
        for n in range(40):
            write("other", n, "first")
        for n in range(20):  # there
            remove("old", n)
            write("new", n, "moved")
        for n in range(10):  # and back
            remove("new", n)
            write("old", n, "back")
        for n in range(20, 30):
            remove("old", n)
            write("new", n, "moved")
        change = f"UPDATE {db}.other SET note = %s WHERE id = %s"
        for n in range(15):
            cursor.execute(change, (f"later {text}", n))
        connection.commit()
    position.lead(file).applied(changes)
    assert [sorted({item.table[1] for item in mine}) for mine in dealt[0]] in (
        [["new", "old"], ["other"]],
        [["other"], ["new", "old"]],
    )
    moved = sorted([*rows(a, f"{db}.old"), *rows(a, f"{db}.new")])
    assert sorted(rows(b, f"{db}.notes")) == moved
    assert rows(b, f"{db}.other") == rows(a, f"{db}.other")


def test_a_row_that_went_unseen_and_came_again_is_right_although_all_rows_are_new(
    servers, db, position, caplog
):
    """What a cascade, or a session without a binlog, deletes is in no stream."""
    logger = "setl.run.runners.insert_partitions"
    caplog.set_level("INFO", logger=logger)
    a, b = servers
    for server in servers:
        execute(server, f"CREATE TABLE {db}.notes (id INT PRIMARY KEY, note VARCHAR(9000))")
    # Forty rows are one load, whose work is enough for two tasks.
    options = {"batch_rows": 40, "batch_wait": 60, "rows_per_task": 5}
    file = one_way(a, mysql(b), [{"from": f"{db}.notes"}], **options)
    text = "x" * 8000  # short entries travel together
    with a.connect() as connection, connection.cursor() as cursor:
        write = f"INSERT INTO {db}.notes (id, note) VALUES (%s, %s)"
        for n in range(20):
            cursor.execute(write, (n, f"older {text}"))
        connection.commit()
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"DELETE FROM {db}.notes WHERE id < 5")
        connection.commit()
        cursor.execute("SET SESSION sql_log_bin = 1")
        for n in (*range(20, 35), *range(5)):
            cursor.execute(write, (n, f"newer {text}"))
        connection.commit()
    running = position.lead(file)
    running.applied(40)
    assert rows(b, f"{db}.notes") == rows(a, f"{db}.notes")
    said = [record.getMessage() for record in caplog.records if record.name == logger]
    assert said == ["rows of these tables are shuffled by key from now on"]
    # Its other loads are right, too.
    with a.connect() as connection, connection.cursor() as cursor:
        for n in range(9000, 9040):
            cursor.execute(write, (n, f"last {text}"))
        connection.commit()
    running.applied(80)
    assert rows(b, f"{db}.notes") == rows(a, f"{db}.notes")
