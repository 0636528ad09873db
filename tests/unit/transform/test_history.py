"""Rows that both sites write: what of their changes travels to the target."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.conflict import (
    RECENT_TABLE,
    Mark,
    SiteWrites,
    Step,
    WritesSeen,
    site_writes_text,
    values_of,
    values_text,
)
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.history import Histories, separated
from setl.transform.work import TransformPlan, WorkItem

SCHEMA = RowSchema(
    "shop",
    "stock",
    (Column("id", Kind.INTEGER), Column("name", Kind.TEXT), Column("own", Kind.TEXT)),
    (0,),
)
TOLD = (
    "number", "through", "passed", "schema_name", "table_name", "row_key", "column_names", "said",
)  # fmt: skip
MESSAGE = RowSchema("retl", "setl_recent", tuple(Column(n.upper(), Kind.TEXT) for n in TOLD))


def router(**mapping):
    table = {"from": "shop.stock", "conflict": {"newest": "name"}, "exclude": ["own"], **mapping}
    pipelines = [
        {
            "name": f"{a}{b}",
            "source": {"type": "mysql", "host": a, "user": "u"},
            "target": {"type": "mysql", "host": b, "user": "u"},
            "tables": [table, {"from": "shop.plain"}],
        }
        for a, b in (("a", "b"), ("b", "a"))
    ]
    return Router(parse_channel({"channel": "c", "pipelines": pipelines}).pipelines[0])


def steps_of(op, before, after, schema=SCHEMA):
    found = Histories(router())
    (route,) = router().route("shop", "stock")
    found.add(route, DecodedRows(schema, op, [(before, after)]), 7)
    return [step for one in found.collected() for step in one.steps]


def test_changes_say_which_row_they_replace():
    row, other = (1, "a", "x"), (1, "b", "y")
    assert steps_of(Op.INSERT, None, row) == [Step(7, (1,), None, (1, "a"))]
    assert steps_of(Op.UPDATE, row, other) == [Step(7, (1,), (1, "a"), (1, "b"))]
    assert steps_of(Op.DELETE, row, None) == [Step(7, (1,), (1, "a"), None)]


def test_a_key_that_changes_leaves_one_key_for_another():
    assert steps_of(Op.UPDATE, (1, "a", "x"), (2, "a", "x")) == [
        Step(7, (1,), (1, "a"), None),
        Step(7, (2,), None, (2, "a")),
    ]


def test_a_change_of_columns_that_do_not_pass_is_none():
    assert steps_of(Op.UPDATE, (1, "a", "x"), (1, "a", "y")) == []


@pytest.mark.parametrize(
    ("op", "before", "after"),
    [
        (Op.UPDATE, None, (1, "a", "x")),
        (Op.UPDATE, (1, ABSENT, "x"), (1, "a", "x")),
        (Op.UPDATE, (1, "a", "x"), (1, ABSENT, "x")),
        (Op.DELETE, (1, ABSENT, "x"), None),
        (Op.INSERT, None, (1, "a", ABSENT)),
    ],
)
def test_images_that_are_not_whole_are_refused(op, before, after):
    with pytest.raises(DataError, match="before and after"):
        steps_of(op, before, after)


SAID = SiteWrites(((5, "z"), (6, "a")), 4, (1, "a"))


def test_rows_that_do_not_say_what_the_server_computes_are_refused():
    with pytest.raises(DataError, match="does not say what v of its row holds"):
        steps_of(Op.INSERT, None, (1, "a", "x"), replace(SCHEMA, unlogged=("v",)))


def message(said: SiteWrites | None = SAID, **values):
    row = {
        "number": 3, "through": 8, "passed": 2, "schema_name": "shop", "table_name": "stock",
        "row_key": values_text({"id": 1}), "column_names": json.dumps(["id", "name"]),
        "said": said and site_writes_text(said, ("id", "name")), **values,
    }  # fmt: skip
    return DecodedRows(MESSAGE, Op.INSERT, [(None, tuple(row[name] for name in TOLD))])


def reported(of, **mapping):
    found = Histories(router(**mapping))
    found.add_report(of, 9)
    return found.collected()


def test_the_other_site_reports_what_it_has_taken_in():
    found, marks = reported(message())
    assert found.writes_seen == [WritesSeen(9, (1,), SAID)]
    assert (found.target, found.columns, found.key) == (("shop", "stock"), ("id", "name"), ("id",))
    assert (marks.target, marks.marks) == (RECENT_TABLE, [Mark(9, 3, 8, 2)])


def test_it_may_tell_no_more_than_how_far_it_has_come():
    (marks,) = reported(message(None, schema_name="", table_name="", row_key=""))
    assert marks.marks == [Mark(9, 3, 8, 2)]


def test_it_reports_of_deleted_rows_and_of_bytes():
    (found, _) = reported(message(SiteWrites(((5, b"\xff"),), 4, None)))
    assert found.writes_seen[0].writes == SiteWrites(((5, b"\xff"),), 4, None)


def test_names_are_those_of_this_sites_table():
    (found, _) = reported(message(), to="shop.goods", columns={"label": "name"})
    assert (found.target, found.columns, found.newest) == (
        ("shop", "goods"), ("id", "label"), "label",
    )  # fmt: skip


def test_only_inserted_rows_say_anything():
    deleted = message()._replace(op=Op.DELETE)
    assert reported(deleted) == []


def test_a_row_that_nobody_can_read_is_refused():
    with pytest.raises(DataError, match="cannot be read"):
        reported(message(column_names="{"))
    with pytest.raises(DataError, match="cannot be read"):
        reported(message(row_key="[1]"))


def test_a_partition_is_taken_apart():
    plan = TransformPlan("binlog", router(), applied_through=1)
    stock = DecodedRows(SCHEMA, Op.DELETE, [((1, "a", "x"), None)] * 2)
    items = [
        WorkItem((0,), 1, (), b"", ("shop", "stock"), stock),
        WorkItem((1,), 2, (), b"", ("shop", "plain")),
        WorkItem((-1,), 3, (), b"", ("retl", "setl_recent"), message()),
        WorkItem((0,), 4, (), b"", ("shop", "stock"), stock),
    ]
    parts = separated(plan, items)
    assert parts.rest == [items[1]]
    assert [step.version for one in parts.histories for step in one.steps] == [1, 1, 4, 4]
    assert [one.version for h in parts.histories for one in (*h.writes_seen, *h.marks)] == [3, 3]
    assert (parts.rows, parts.redelivered) == (4, 2)


def test_a_pipeline_without_policies_is_not_looked_at():
    plan = TransformPlan("binlog", router(conflict="source"))
    items = [WorkItem((0,), 1, (), b"undecodable", ("shop", "stock"))]
    assert separated(plan, items) == (items, [], 0, 0)


values = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
                   st.text(st.characters(codec=None)), st.binary())  # fmt: skip


@given(st.one_of(st.none(), st.dictionaries(st.text(), values)))
def test_rows_as_text_come_back_as_they_are(row):
    text = values_text(row)
    assert values_of(text) == row
    assert text is None or text.isascii()
