from dataclasses import replace

import pytest

from setl.errors import ConfigurationError, DataError
from setl.model.schema import Capacity, Column, Kind, RowSchema
from setl.systems.mysql.load.row_statement import Limits, RowStatement
from setl.systems.mysql.load.statements import Strategy, plan_writes

ID = Column("id", Kind.INTEGER, binary_order=True)
CODE = Column("code", Kind.TEXT)
NAME = Column("name", Kind.TEXT)
NOTE = Column("note", Kind.TEXT)
TWICE = Column("twice", Kind.INTEGER, generated=True, binary_order=True)


NUMBERED = replace(ID, capacity=Capacity("int", nullable=False, fills_null=True))
CI = 45  # utf8mb4_general_ci


def collated(column, number):
    return replace(column, collation=number)


def table(columns, key=(), unique=(), **more):
    return RowSchema("shop", "t", columns, key, unique, **more)


def guarded(held, given, bearer="`id`=", value="VALUES(`id`)"):
    """The first assignment: it overflows unless both are equal."""
    return (
        f" ON DUPLICATE KEY UPDATE {bearer}IF({held}<=>{given} OR 18446744073709551615"
        f" + (1 + (`shop`.`t`.`id` IS NULL)),{value},{value})"
    )


BY_ID = guarded("`shop`.`t`.`id`", "VALUES(`id`)")


def insert(writes, *rows):
    return writes.inserts.text(rows).decode()


def delete(writes, *keys):
    return writes.deletes.text(keys).decode()


def test_an_upsert_by_the_primary_key():
    writes = plan_writes((ID, NAME), (0,), table((ID, NAME, NOTE), (0,)))
    assert writes.strategy is Strategy.UPSERT
    assert insert(writes, (1, "a"), (2, None)) == (
        f"INSERT INTO `shop`.`t` (`id`,`name`) VALUES (1,'a'),(2,NULL){BY_ID},`name`=VALUES(`name`)"
    )
    assert delete(writes, (1,), (2,)) == "DELETE FROM `shop`.`t` WHERE (`id`) IN ((1),(2)) LIMIT 2"


def test_a_composite_key_in_the_order_of_the_key_not_of_the_columns():
    columns = (ID, NAME, collated(CODE, CI))
    writes = plan_writes(columns, (2, 0), table(columns, (2, 0)))
    assert writes.strategy is Strategy.UPSERT
    assert delete(writes, ("x", 1)) == (
        "DELETE FROM `shop`.`t` WHERE (`code`,`id`) IN (('x',1)) LIMIT 1"
    )
    # `code` does not compare byte by byte, so the row may be there under another spelling.
    assert insert(writes, (1, "a", "x")).endswith(
        " ON DUPLICATE KEY UPDATE `code`=IF(`shop`.`t`.`code`<=>VALUES(`code`)"
        " AND `shop`.`t`.`id`<=>VALUES(`id`)"
        " OR 18446744073709551615 + (1 + (`shop`.`t`.`code` IS NULL))"
        ",VALUES(`code`),VALUES(`code`))"
        ",`name`=VALUES(`name`)"
    )


def test_a_key_whose_collation_may_not_be_the_sources_is_compared_byte_by_byte():
    writes = plan_writes((ID, CODE), (1, 0), table((ID, collated(CODE, CI)), (1, 0)))
    assert writes.strategy is Strategy.EXACT
    assert delete(writes, ("ü", 1)) == (
        "DELETE FROM `shop`.`t` WHERE ((`code`,`id`) IN (('ü',1)))"
        " AND (CAST(CONVERT(`code` USING utf8mb4) AS BINARY),`id`) IN ((x'c3bc',1)) LIMIT 1"
    )
    assert (
        "IF(CAST(CONVERT(`shop`.`t`.`code` USING utf8mb4) AS BINARY)"
        "<=>CAST(CONVERT(VALUES(`code`) USING utf8mb4) AS BINARY) AND"
    ) in insert(writes, (1, "ü"))


def test_the_row_given_has_a_name_where_the_server_wants_one():
    writes = plan_writes((ID, NAME), (0,), table((ID, NAME), (0,)), row_alias=True)
    assert insert(writes, (1, "a")).endswith(
        " AS `new row`"
        + guarded("`shop`.`t`.`id`", "`new row`.`id`", value="`new row`.`id`")
        + ",`name`=`new row`.`name`"
    )


def test_a_table_of_nothing_but_its_key():
    writes = plan_writes((ID,), (0,), table((ID,), (0,)))
    assert insert(writes, (1,)).endswith(BY_ID)


def test_a_table_with_a_further_unique_key_is_for_one_task_and_no_row_is_replaced():
    writes = plan_writes((ID, CODE), (0,), table((ID, CODE), (0,), ((1,),)))
    assert writes.strategy is Strategy.EXACT
    assert writes.single_writer
    assert insert(writes, (1, "a")).endswith(f"{BY_ID},`code`=VALUES(`code`)")


@pytest.mark.parametrize(
    ("columns", "key", "target", "strategy"),
    [
        # A unique key that holds the primary key collides with the same row only.
        ((ID, CODE), (0,), table((ID, CODE), (0,), ((0, 1),)), Strategy.UPSERT),
        # The target's own key, filled by itself.
        (
            (collated(CODE, CI), NAME),
            (0,),
            table((NUMBERED, collated(CODE, CI), NAME), (0,), ((1,),)),
            Strategy.UPSERT,
        ),
        # The target's own key, filled by a default.
        ((ID, NAME), (0,), table((CODE, ID, NAME), (0,), ((1,),)), Strategy.EXACT),
        # Text by another collation than the source's, or one that nobody knows.
        ((CODE,), (0,), table((CODE,), (0,)), Strategy.EXACT),
        ((CODE,), (0,), table((collated(CODE, CI),), (0,)), Strategy.EXACT),
        ((collated(CODE, 46),), (0,), table((collated(CODE, CI),), (0,)), Strategy.EXACT),
        ((collated(CODE, CI),), (0,), table((collated(CODE, CI),), (0,)), Strategy.UPSERT),
        ((CODE,), (0,), table((replace(CODE, binary_order=True),), (0,)), Strategy.UPSERT),
        # Prefixes and expressions.
        ((ID, NAME), (0,), table((ID, NAME), (0,), odd_keys=True), Strategy.EXACT),
        # A further unique key with a default, which two rows may both get.
        ((ID, NAME), (0,), table((ID, NAME, CODE), (0,), ((1, 2),)), Strategy.EXACT),
        # Computed from columns of the row.
        ((ID, NAME), (0,), table((ID, NAME, TWICE), (0,), ((2,),)), Strategy.EXACT),
        # A part of the mapping's key finds the row, and maybe that of another key.
        ((ID, CODE), (0, 1), table((ID, CODE), (0,)), Strategy.EXACT),
        ((ID, CODE), (0, 1), table((ID, CODE), (0,), ((1,),)), Strategy.EXACT),
        # No key, or one that is not in the mapping's.
        ((ID, CODE), (0,), table((ID, CODE)), Strategy.DELETE_INSERT),
        ((ID, CODE), (0,), table((ID, CODE), (0, 1)), Strategy.DELETE_INSERT),
        ((ID, CODE), (0,), table((ID, CODE), (), ((1,),)), Strategy.DELETE_INSERT),
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
        f"INSERT INTO `shop`.`t` (`id`,`name`) VALUES (1,'a'){BY_ID},`name`=VALUES(`name`)"
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
