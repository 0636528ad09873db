import pickle
import re

import pytest

from setl.channel.routes.routing import Route
from setl.channel.rules.spark_sql import referenced_columns
from setl.errors import ConfigurationError
from setl.model.change import ABSENT, Row
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan, key_indexes

USERS = RowSchema(
    "shop",
    "users",
    (
        Column("id", Kind.INTEGER, unsigned=True),
        Column("Name", Kind.TEXT),
        Column("price", Kind.DECIMAL, precision=9, scale=2),
        Column("note", Kind.TEXT),
    ),
    key=(0,),
)
ROW: Row = (1, "ann", "2.50", ABSENT)


def route(**rules):
    return Route(index=3, target=("shop", "users"), **rules)


def names(plan):
    return [c.name for c in plan.columns]


def test_without_rules_rows_pass_as_they_are():
    plan = ColumnPlan.build(USERS, route())
    rows = [ROW]
    assert plan.row(ROW) is ROW
    assert plan.rows(rows) is rows
    assert (plan.columns, plan.sources, plan.key) == (USERS.columns, (0, 1, 2, 3), (0,))


@pytest.mark.parametrize(
    ("rules", "columns", "values"),
    [
        ({"include": ("NAME", "id")}, ["id", "Name"], (1, "ann")),
        ({"include": ("id",)}, ["id"], (1,)),
        ({"exclude": ("note", "PRICE")}, ["id", "Name"], (1, "ann")),
        ({"include": ("id", "note"), "exclude": ("note",)}, ["id"], (1,)),
        ({"renames": {"buyer": "name"}, "exclude": ("note",)}, ["id", "buyer", "price"], ROW[:3]),
        # A renamed column passes though `include` does not list it.
        ({"include": ("id",), "renames": {"buyer": "Name"}}, ["id", "buyer"], (1, "ann")),
        ({"renames": {"a": "Name", "b": "Name"}}, ["id", "a", "b", "price", "note"],
         (1, "ann", "ann", "2.50", ABSENT)),
        ({"renames": {"Name": "note", "note": "Name"}}, ["id", "note", "price", "Name"], ROW),
        # The target's `note` takes the name; the source's own `note` does not pass then.
        ({"renames": {"note": "Name"}}, ["id", "note", "price"], ROW[:3]),
        ({"renames": {"number": "id"}}, ["number", "Name", "price", "note"], ROW),
        ({"expressions": {"Price": "price * 2", "x": "1"}}, ["id", "Name", "note"],
         (1, "ann", ABSENT)),
    ],
)  # fmt: skip
def test_columns_pass_under_the_rules(rules, columns, values):
    plan = ColumnPlan.build(USERS, route(**rules))
    assert names(plan) == columns
    assert plan.row(ROW) == values
    assert plan.rows([ROW, ROW]) == [values, values]
    assert columns[plan.key[0]] in ("id", "number")
    assert pickle.loads(pickle.dumps(plan)).row(ROW) == values


def test_renamed_columns_keep_their_kind():
    plan = ColumnPlan.build(USERS, route(renames={"cost": "price", "number": "ID"}))
    assert plan.columns[2] == Column("cost", Kind.DECIMAL, precision=9, scale=2)
    assert plan.columns[0] == Column("number", Kind.INTEGER, unsigned=True)


def test_the_key_stores_its_order():
    schema = RowSchema("s", "t", USERS.columns, key=(2, 0))
    plan = ColumnPlan.build(schema, route(exclude=("Name",)))
    assert (names(plan), plan.key) == (["id", "price", "note"], (1, 0))
    plan = ColumnPlan.build(schema, route(key=("note", "name"), exclude=("id",)))
    assert (names(plan), plan.key) == (["Name", "price", "note"], (2, 0))


def test_all_that_is_wrong_is_said_at_once_with_its_position():
    rules = route(
        include=("Name", "nowhere"), exclude=("gone",), renames={"a": "missing"}, key=("id",)
    )
    with pytest.raises(ConfigurationError) as raised:
        ColumnPlan.build(USERS, rules)
    message = raised.value.message
    assert "tables[3].include names nowhere" in message
    assert "tables[3].exclude names gone" in message
    assert "tables[3].columns.a names missing" in message
    assert "tables[3].include leaves out the key column id" in message
    assert raised.value.where == {"table": "shop.users"}


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"exclude": ("ID",)}, "tables[3].exclude excludes the key column id"),
        ({"include": ("Name",)}, "tables[3].include leaves out the key column id"),
        ({"expressions": {"id": "id + 1"}}, "tables[3].columns replaces the key column id"),
        ({"renames": {"ID": "Name"}}, "tables[3].columns replaces the key column id"),
    ],
)
def test_a_key_column_must_reach_the_target(rules, problem):
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        ColumnPlan.build(USERS, route(**rules))


def test_partial_rows_may_lack_columns_that_rules_name():
    part = RowSchema("shop", "users", USERS.columns[:2], key=(0,))
    rules = route(exclude=("note",), renames={"cost": "price", "buyer": "Name"})
    plan = ColumnPlan.build(part, rules, incomplete=True)
    assert (names(plan), plan.key) == (["id", "buyer"], (0,))
    with pytest.raises(ConfigurationError):
        ColumnPlan.build(part, rules)


def test_key_columns_are_named_in_any_case():
    assert key_indexes(USERS) == (0,)
    assert key_indexes(USERS, ("NOTE", "name")) == (3, 1)


@pytest.mark.parametrize(
    ("expressions", "where", "found"),
    [
        (["upper(name)"], None, ["Name"]),
        (["PRICE * 2", "concat(`Name`, 'id')"], "note IS NOT NULL", ["Name", "price", "note"]),
        (["concat('name', \"note\")"], None, []),
        (["'it\\'s name' || id"], None, ["id"]),
        (["'it''s' || note"], None, ["note"]),
        (["r'\\' || note"], None, ["note"]),
        (["`odd '` || name || `it's`"], None, ["Name"]),
        (["1 -- name\n + id"], None, ["id"]),
        (["1 /* name */ + id"], None, ["id"]),
        (["struct(*)"], None, ["id", "Name", "price", "note"]),
        (["concat_ws(',', *)"], None, ["id", "Name", "price", "note"]),
        (["price*2"], None, ["price"]),
        (["(id) * price"], None, ["id", "price"]),
        (["users.name"], None, ["Name"]),
        (["id_name + names"], None, []),
        ([], "name = 'x'", ["Name"]),
        ([], None, []),
    ],
)
def test_columns_that_sql_may_refer_to(expressions, where, found):
    assert list(referenced_columns(expressions, where, USERS.names)) == found


def test_names_that_need_backticks_are_found():
    columns = ("two words", "back`tick", "it's", "größe", "1st")
    texts = ["`two words`", "`back``tick` + `it's`", "größe + 1st"]
    assert referenced_columns(texts, None, columns) == columns
