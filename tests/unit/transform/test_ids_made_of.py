"""What documents' ids are made of, as it is noted in an index."""

from dataclasses import replace

import pytest

from setl.channel.names.document_ids import IdsOf
from setl.channel.routes.routing import Route
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.projection import ids_made_of

ROUTE = Route(0, ("", "i"), ids_of=IdsOf("s.t -> i"))
FORM = DocumentForm.of_key(1)


def made_of(column, route=ROUTE, table="t"):
    schema = RowSchema("s", table, (column,), (0,))
    return ids_made_of(schema, route, FORM, ColumnPlan.build(schema, route))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Column("k", Kind.INTEGER), Column("K", Kind.BIT)),
        (Column("k", Kind.TEXT), Column("k", Kind.ENUM)),
        (Column("k", Kind.SET), Column("k", Kind.TEXT, binary_order=True)),
    ],
)
def test_types_that_are_written_alike_are_one(before, after):
    assert made_of(before) == made_of(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Column("k", Kind.INTEGER), Column("n", Kind.INTEGER)),
        (Column("k", Kind.TEXT), Column("k", Kind.BINARY)),
        (Column("k", Kind.DECIMAL, scale=2), Column("k", Kind.DECIMAL, scale=4)),
        (Column("k", Kind.FLOAT, width=4), Column("k", Kind.FLOAT, width=8)),
        (Column("k", Kind.BINARY, width=4), Column("k", Kind.BINARY, width=8)),
        (Column("k", Kind.BINARY, width=-1), Column("k", Kind.BINARY, width=8)),
    ],
)
def test_types_that_are_written_otherwise_are_two(before, after):
    assert made_of(before) != made_of(after)


def test_tables_of_an_entry_with_a_wildcard_are_reported_apart():
    column = Column("k", Kind.TEXT)
    assert made_of(column, table="t") == made_of(column, table="u")
    route = replace(ROUTE, ids_of=IdsOf("s.* -> i", of_each_table=True))
    assert made_of(column, route, "t").entry != made_of(column, route, "u").entry


def test_records_that_tell_the_type_of_a_value_are_not_asked_for_that_of_its_column():
    route = replace(ROUTE, ids_of=IdsOf("s.t -> i", distinguishes_types=False))
    assert made_of(Column("k", Kind.TEXT), route) == made_of(Column("k", Kind.BINARY), route)
