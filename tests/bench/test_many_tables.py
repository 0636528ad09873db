"""The benchmark over many tables, in small: what it writes, what it sees, and a whole run."""

import json
from itertools import chain

import pytest
from rich.console import Console

from setl.codec.dts.wire import read_whole
from setl.model.change import Op
from tests.bench import many_tables_workload as tables
from tests.bench.many_tables import Bench, Case
from tests.bench.many_tables_contenders import CONTENDERS, Place
from tests.bench.many_tables_report import Delay, Result, delays, print_results, write_results
from tests.bench.many_tables_workload import Change, Row, Workload
from tests.bench.servers import add_system_tables
from tests.bench.visibility import Commit, differences, orphans, seen_at

SMALL = Workload(changes=400, hot_keys=5, tables=8)


def insert(table, key, number, parent=0):
    return Change(table, Op.INSERT, None, Row(key, parent, number, "x"))


def shown(at, numbers, parents=()):
    return Commit(at, numbers, dict(parents))


@pytest.mark.parametrize("hot_keys", [5, 0])
def test_a_workload_is_the_same_on_every_run_and_in_the_proportions_it_says(hot_keys):
    workload = Workload(20_000, hot_keys)
    written = tables.transactions(workload)
    changes = list(chain.from_iterable(written))
    assert written == tables.transactions(workload)
    assert all(c.after is None or c.after.number == n for n, c in enumerate(changes, 1))
    hot = sum(change.table == tables.HOT for change in changes)
    grouped = sum(change.table in tables.GROUP for change in changes)
    assert hot / len(changes) == pytest.approx(0.6, abs=0.02)
    assert grouped / len(changes) == pytest.approx(0.1, abs=0.01)
    assert len({change.table for change in changes}) == 50
    assert all(5 <= len(transaction) < 40 for transaction in written)
    gone = set()
    for change in changes:
        assert change.key not in gone
        if change.op is Op.DELETE:
            gone.add(change.key)


def test_no_part_of_an_order_is_without_it_at_the_source():
    commits, order_of = [], {}
    for transaction in tables.transactions(Workload(5_000, 5)):
        numbers = {c.key: c.after.number if c.after else None for c in transaction}
        order_of |= {c.key: c.after.parent for c in transaction if c.after and c.after.parent}
        parents = {key: order_of[key] for key in numbers if key in order_of}
        commits.append(Commit(0.0, numbers, parents))
    assert orphans(commits) == (0, len(commits))


def test_records_say_what_the_changes_do():
    change = tables.transactions(SMALL)[0][0]
    begin, row, commit = (read_whole(r)[0] for r in tables.records(7, [change]))
    assert [begin["operation"], row["operation"], commit["operation"]] == [
        "BEGIN", change.op.name, "COMMIT",
    ]  # fmt: skip
    assert row["objectName"] == f"{tables.SCHEMA}.{change.table}"
    assert row["afterImages"][0]["integer"] == str(change.key[1])


def test_a_change_is_seen_with_the_first_commit_that_shows_it_or_a_later_one():
    row = Row(1, 0, 1, "x")
    changes = [
        insert("a", 1, 1),
        Change("a", Op.UPDATE, row, row._replace(number=2)),
        insert("b", 1, 3),
        Change("a", Op.DELETE, row._replace(number=2), None),
        insert("c", 1, 5),
    ]
    seen = seen_at(
        [
            shown(10.0, {("a", 1): 2}),
            shown(11.0, {("a", 1): 2, ("b", 1): 3}),  # a row that is written again
            shown(12.0, {("a", 1): None}),
        ],
        changes,
    )
    assert seen == {1: 10.0, 2: 10.0, 3: 11.0, 4: 12.0}
    assert delays(changes, seen, [9.0] * 5, ["a", "c"]).median == 1.0


def test_orphans_are_counted_until_their_order_comes():
    item, payment = ("order_items", 5), ("order_payments", 6)
    assert orphans(
        [
            shown(1.0, {item: 2}, {item: 4}),  # nothing but the item
            shown(2.0, {payment: 3}, {payment: 4}),
            shown(3.0, {("orders", 4): 1}),
            shown(4.0, {("orders", 4): None, item: None}, {item: 4}),  # the payment is left
            shown(5.0, {payment: None}, {payment: 4}),
        ]
    ) == (3, 5)


def test_ratios_are_of_the_demo_in_the_same_case(tmp_path, capsys):
    results = [
        Result("c", "demo", 100, 10.0, Delay(4.0, 8.0), Delay(4.0, 8.0)),
        Result("c", "setl", 100, 2.0, Delay(1.0, 2.0), Delay(2.0, 2.0), orphans=1, commits=9),
        Result("c", "setl", 100, problems=["it broke"]),
    ]
    print_results(results, Console(width=200))
    printed = capsys.readouterr().out
    for text in ("50 (5x)", "1.00 (4x) / 2.00 (4x)", "1 of 9", "c, setl: it broke"):
        assert text in printed
    write_results(results, tmp_path / "f.json")
    assert json.loads((tmp_path / "f.json").read_text())["runs"][1]["rate"] == 50


@pytest.fixture
def target(site_b):
    add_system_tables(site_b)
    yield site_b
    with site_b.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {tables.SCHEMA}")


@pytest.mark.parametrize("case", [Case("updated", SMALL), Case("paced", SMALL, 200.0)])
def test_the_demos_consumer_and_setl_bring_everything(tmp_path, kafka, target, case):
    bench = Bench(Place(tmp_path, kafka.brokers, target), 0.001, Console(quiet=True))
    results = list(bench.run(case, [c for c in CONTENDERS if c.name in {"demo", "setl"}], 1))
    assert [(r.contender, r.problems, r.orphans) for r in results] == [
        ("demo", [], 0), ("setl", [], 0),
    ]  # fmt: skip
    assert all(r.commits and r.seconds and r.cold.median and r.hot.p95 for r in results)
    expected = tables.contents(tables.transactions(SMALL))
    with target.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE {tables.SCHEMA}.hot SET note = 'other' WHERE id = -1")
        cursor.execute(f"INSERT INTO {tables.SCHEMA}.orders VALUES (-7, 0, 1, '')")
    assert differences(target, expected) == [
        "hot: 1 rows missing or wrong, 0 too many",
        "orders: 0 rows missing or wrong, 1 too many",
    ]
