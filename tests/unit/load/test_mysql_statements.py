import pytest

from setl.errors import ConfigurationError, DataError
from setl.load.mysql.statements import Limits, RowStatement, Strategy, plan_writes
from setl.model.schema import Column, Kind, RowSchema

ID = Column("id", Kind.INTEGER, binary_order=True)
CODE = Column("code", Kind.TEXT)
NAME = Column("name", Kind.TEXT)
NOTE = Column("note", Kind.TEXT)
TWICE = Column("twice", Kind.INTEGER, generated=True, binary_order=True)


def table(columns, key=(), unique=()):
    return RowSchema("shop", "t", columns, key, unique)


def insert(writes, *rows):
    return writes.inserts.text(rows).decode()


def delete(writes, *keys):
    return writes.deletes.text(keys).decode()


def test_an_upsert_by_the_primary_key():
    writes = plan_writes((ID, NAME), (0,), table((ID, NAME, NOTE), (0,)))
    assert writes.strategy is Strategy.UPSERT
    assert insert(writes, (1, "a"), (2, None)) == (
        "INSERT INTO `shop`.`t` (`id`,`name`) VALUES (1,'a'),(2,NULL)"
        " ON DUPLICATE KEY UPDATE `name`=VALUES(`name`)"
    )
    assert delete(writes, (1,), (2,)) == "DELETE FROM `shop`.`t` WHERE (`id`) IN ((1),(2)) LIMIT 2"


def test_a_composite_key_in_the_order_of_the_key_not_of_the_columns():
    writes = plan_writes((ID, NAME, CODE), (2, 0), table((ID, NAME, CODE), (2, 0)))
    assert delete(writes, ("x", 1)) == (
        "DELETE FROM `shop`.`t` WHERE (`code`,`id`) IN (('x',1)) LIMIT 1"
    )
    # `code` does not compare byte by byte, so the row may be there under another spelling.
    assert insert(writes, (1, "a", "x")).endswith(
        " ON DUPLICATE KEY UPDATE `name`=VALUES(`name`),`code`=VALUES(`code`)"
    )


def test_a_table_of_nothing_but_its_key():
    writes = plan_writes((ID,), (0,), table((ID,), (0,)))
    assert insert(writes, (1,)).endswith(" ON DUPLICATE KEY UPDATE `id`=VALUES(`id`)")


def test_a_further_unique_key_makes_it_replace():
    writes = plan_writes((ID, CODE), (0,), table((ID, CODE), (0,), ((1,),)))
    assert writes.strategy is Strategy.REPLACE
    assert insert(writes, (1, "a")) == "REPLACE INTO `shop`.`t` (`id`,`code`) VALUES (1,'a')"


def test_columns_of_the_target_alone_are_kept_and_rivals_deleted_first():
    target = table((ID, CODE, NAME, NOTE), (0,), ((1, 2), (2,)))
    writes = plan_writes((ID, CODE, NAME), (0,), target)
    assert writes.strategy is Strategy.UPSERT
    assert insert(writes, (1, "a", "b")).startswith("INSERT INTO")
    first, second = writes.rivals
    [(text, rows)] = first.divided([(1, "a", "b"), (2, None, "c"), (3, "x", "y")], Limits())
    assert text.decode() == (
        "DELETE FROM `shop`.`t` WHERE (`code`,`name`)=('a','b') AND NOT (`id`)=(1)"
        " OR (`code`,`name`)=('x','y') AND NOT (`id`)=(3) LIMIT 2"
    )
    assert rows == [(1, "a", "b"), (3, "x", "y")]
    [(text, _)] = second.divided([(2, None, "c")], Limits())
    assert text.decode() == (
        "DELETE FROM `shop`.`t` WHERE (`name`)=('c') AND NOT (`id`)=(2) LIMIT 1"
    )
    assert not list(second.divided([(2, "a", None)], Limits()))


@pytest.mark.parametrize(
    ("columns", "key", "target", "strategy"),
    [
        # A unique key that holds the primary key collides with the same row only.
        ((ID, CODE), (0,), table((ID, CODE), (0,), ((0, 1),)), Strategy.UPSERT),
        # The target's own key, filled by itself.
        ((CODE, NAME), (0,), table((ID, CODE, NAME), (0,), ((1,),)), Strategy.UPSERT),
        # A further unique key with a default, which two rows may both get.
        ((ID, NAME), (0,), table((ID, NAME, CODE), (0,), ((1, 2),)), Strategy.REPLACE),
        # Computed from columns of the row.
        ((ID, NAME), (0,), table((ID, NAME, TWICE), (0,), ((2,),)), Strategy.REPLACE),
        # A part of the mapping's key identifies the row.
        ((ID, CODE), (0, 1), table((ID, CODE), (0,)), Strategy.UPSERT),
        ((ID, CODE), (0, 1), table((ID, CODE), (0,), ((1,),)), Strategy.REPLACE),
        # No key, or one that is not in the mapping's.
        ((ID, CODE), (0,), table((ID, CODE)), Strategy.RENEW),
        ((ID, CODE), (0,), table((ID, CODE), (0, 1)), Strategy.RENEW),
        ((ID, CODE), (0,), table((ID, CODE), (), ((1,),)), Strategy.RENEW),
    ],
)
def test_the_strategy_follows_from_the_keys_of_the_target(columns, key, target, strategy):
    assert plan_writes(columns, key, target).strategy is strategy


def test_without_a_key_of_the_target_a_delete_takes_all_there_are():
    writes = plan_writes((ID, NAME), (0,), table((ID, NAME)))
    assert delete(writes, (1,)) == "DELETE FROM `shop`.`t` WHERE (`id`) IN ((1))"
    assert insert(writes, (1, "a")) == "INSERT INTO `shop`.`t` (`id`,`name`) VALUES (1,'a')"


def test_columns_that_the_target_computes_are_left_out():
    writes = plan_writes((ID, TWICE, NAME), (0,), table((ID, TWICE, NAME), (0,)))
    assert insert(writes, (1, 2, "a")) == (
        "INSERT INTO `shop`.`t` (`id`,`name`) VALUES (1,'a')"
        " ON DUPLICATE KEY UPDATE `name`=VALUES(`name`)"
    )


def test_names_are_matched_whatever_their_case_and_written_as_the_target_has_them():
    writes = plan_writes(
        (Column("ID", Kind.INTEGER), Column("Name", Kind.TEXT)), (0,), table((ID, NAME), (0,))
    )
    assert writes.strategy is Strategy.UPSERT
    assert "(`id`,`name`)" in insert(writes, (1, "a"))


def test_what_the_target_lacks_is_named_all_at_once():
    with pytest.raises(ConfigurationError, match="lacks the columns code, note") as caught:
        plan_writes((ID, CODE, NOTE), (0,), table((ID, NAME), (0,)))
    assert caught.value.where["table"] == "shop.t"


def test_rows_without_a_key_are_refused():
    with pytest.raises(ConfigurationError, match="rows without a key"):
        plan_writes((ID, NAME), (), table((ID, NAME), (0,)))


def test_only_keys_that_the_server_would_take_as_null_are_looked_at():
    by_unique = plan_writes((CODE, NAME), (0,), table((ID, CODE, NAME), (0,), ((1,),)))
    with pytest.raises(DataError, match="is NULL"):
        insert(by_unique, ("a", "b"), (None, "b"))
    by_primary = plan_writes((ID, NAME), (0,), table((ID, NAME), (0,)))
    assert "(NULL,'b')" in insert(by_primary, (None, "b"))


# -- division ------------------------------------------------------------------------------

WRITES = plan_writes((ID, NAME), (0,), table((ID, NAME), (0,)))


def test_statements_hold_so_many_rows():
    rows = [(i, "a") for i in range(7)]
    parts = list(WRITES.inserts.divided(rows, Limits(rows=3)))
    assert [held for _, held in parts] == [rows[0:3], rows[3:6], rows[6:7]]
    assert [text for text, _ in parts] == [WRITES.inserts.text(held) for _, held in parts]


def test_statements_are_divided_by_their_size():
    rows = [(i, "x" * 100) for i in range(40)]
    parts = list(WRITES.inserts.divided(rows, Limits(size=1000)))
    assert [row for _, held in parts for row in held] == rows
    assert all(len(text) <= 1000 for text, _ in parts)
    assert len(parts) <= 8


def test_one_row_may_be_larger_than_the_size_but_not_than_the_packet():
    rows = [(1, "a"), (2, "é" * 1000), (3, "b")]
    parts = list(WRITES.inserts.divided(rows, Limits(size=500, packet=3000)))
    assert [held for _, held in parts] == [[(1, "a")], [(2, "é" * 1000)], [(3, "b")]]
    with pytest.raises(DataError, match="accepts 2000") as caught:
        list(WRITES.inserts.divided(rows, Limits(size=500, packet=2000)))
    assert caught.value.where == {"table": "shop.t", "key": "2"}


def test_a_value_that_is_refused_is_placed():
    rows = [(1, "a"), (2, "caf\udce9"), (3, "b")]
    with pytest.raises(DataError) as caught:
        list(WRITES.inserts.divided(rows, Limits()))
    assert caught.value.where == {"table": "shop.t", "key": "2"}
    by_code = plan_writes((CODE, NAME), (0,), table((CODE, NAME), (0,)))
    with pytest.raises(DataError) as caught:
        list(by_code.deletes.divided([("a",), ("caf\udce9",)], Limits()))
    # It can be logged.
    assert caught.value.where["key"] == "caf\\udce9"
    assert str(caught.value).encode()


def test_statements_of_long_rows_are_not_made_to_be_thrown_away(monkeypatch):
    made = []
    text = RowStatement.text
    monkeypatch.setattr(
        RowStatement, "text", lambda self, rows: made.append(rows) or text(self, rows)
    )
    rows = [(n, "x" * 5_000) for n in range(1_000)]
    parts = list(WRITES.inserts.divided(rows, Limits(size=200_000)))
    assert [row for _, held in parts for row in held] == rows
    assert len(made) == len(parts)
    assert all(len(statement) <= 200_000 for statement, _ in parts)
