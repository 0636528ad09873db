"""Which changes of a task share a transaction."""

from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.mysql.sink.transactions import transactions

COLUMNS = (Column("id", Kind.INTEGER),)


def changes(table, upserts, deletes=0, group=None):
    return TargetChanges(
        ("shop", table),
        COLUMNS,
        (0,),
        upserts=[(i,) for i in range(upserts)],
        deletes=[(i,) for i in range(deletes)],
        group=group,
    )


def dealt(*given, few=10):
    return [[c.target[1] for c in part] for part in transactions(given, few)]


def test_few_rows_partition_a_transaction():
    assert dealt(changes("a", 3), changes("b", 10), changes("c", 1)) == [["c", "a", "b"]]


def test_what_takes_long_comes_alone_and_last():
    given = changes("hot", 30), changes("a", 2), changes("warm", 8, deletes=3), changes("b", 1)
    assert dealt(*given) == [["b", "a"], ["warm"], ["hot"]]


def test_only_large_tables():
    assert dealt(changes("hot", 30), changes("warm", 20)) == [["warm"], ["hot"]]


def test_a_group_stays_together_and_counts_together():
    given = (changes("orders", 6, group="g"), changes("a", 7), changes("items", 6, group="g"))
    assert dealt(*given) == [["a"], ["orders", "items"]]


def test_all_changes_of_a_target_stay_together():
    # Rows that lack columns come apart from the others of their table.
    assert dealt(changes("t", 6), changes("u", 1), changes("t", 6)) == [["u"], ["t", "t"]]


def test_nothing():
    assert transactions([]) == []
