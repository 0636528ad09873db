"""Rows by key, as a repair or `setl resend --keys` sends them again."""

from types import SimpleNamespace
from typing import Any, cast

from setl.bulk.comparison import NOTHING, Difference, What
from setl.bulk.key_rows import KeyRows
from setl.bulk.two_sides import TwoSides
from setl.channel.routes.routing import Route
from setl.model.change import Op
from setl.model.checkpoint import ShownPosition
from setl.model.document import DocumentForm
from setl.model.load_request import LoadRequest
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.model.table_load import TableLoad
from setl.run.table_loads.items import MappedTable, StepSize, keys_of
from setl.systems.search_index.index_target import DocumentShape
from setl.transform.compaction import Compactor

ID, SHOP, V = Column("id", Kind.INTEGER), Column("shop", Kind.TEXT), Column("v", Kind.INTEGER)
ORDERS = RowSchema("s", "orders", (ID, SHOP, V), key=(0,))
ROWS = [(1, "a", 10), (2, None, 20)]
ROUTED = Route(0, ("", "orders"), routing="Shop")
PLAIN = Route(0, ("s", "orders"))


class Reader:
    """Finds rows by the columns that it is given."""

    schema = ORDERS
    name = "s.orders"

    def reading_at(self, position, *, inside):
        return self

    def parts_of_keys(self, key, keys):
        positions = [ORDERS.index[column.name] for column in key]
        return [[row for row in ROWS if tuple(row[i] for i in positions) in keys]]

    def read(self, columns, part):
        yield part


def survivors(route, names, *keys):
    """What becomes of a request for keys."""
    request = LoadRequest(tables=("s.orders",), key=names, keys=keys)
    table = MappedTable(("s", "orders"), (route,), frozenset())
    there = cast("Any", SimpleNamespace(readers=lambda _: [Reader()]))
    size = StepSize(100, 1, 1, 100, ShownPosition(BinlogPosition("b.1", 4)))
    step = keys_of(TableLoad("1"), {"s.orders": table}, request, there, size)
    compactor = Compactor(route.key, route.routing)
    for item, _ in step.items:
        for decoded in cast("KeyRows", item.table_rows).read():
            compactor.add_many(decoded, 7)
    found = compactor.survivors()
    upserts = [row for part in found for row in part.upserts]
    return sorted(map(str, upserts)), sorted((k for part in found for k in part.deletes), key=str)


def test_a_document_is_deleted_where_it_is_and_written_where_it_belongs():
    names = ("id", "shop")
    # Both are told together, as a change that moves the document would be.
    assert survivors(ROUTED, names, (1, "b")) == ([str(ROWS[0])], [(1, "b")])
    assert survivors(ROUTED, names, (1, "a")) == ([str(ROWS[0])], [])
    assert survivors(ROUTED, names, (2, "x"), (2, None)) == ([str(ROWS[1])], [(2, "x")])
    assert survivors(ROUTED, names, (3, "a"), (4, None)) == ([], [(3, "a"), (4, None)])
    assert survivors(ROUTED, ("id",), (3,)) == ([], [])  # nobody knows where it is


def test_a_row_whose_other_columns_differ_is_not_deleted():
    assert survivors(PLAIN, ("id", "shop"), (1, "b")) == ([str(ROWS[0])], [])
    assert survivors(PLAIN, ("id", "v"), (3, 1), (2, 1)) == ([str(ROWS[1])], [(3,)])
    assert survivors(PLAIN, ("shop",), ("b",), ("a",)) == ([str(ROWS[0])], [])


def test_rows_come_behind_the_keys_without_one():
    rows = KeyRows(cast("Any", Reader()), (ID,), ((1,), (3,)))
    assert [decoded.op for decoded in rows.read()] == [Op.DELETE, Op.INSERT]


def differing(route, form, *keys):
    key = (0,) if form.routing is None else (0, 1)
    target = SimpleNamespace(shape=DocumentShape((ID, SHOP, V), key, form))
    source = SimpleNamespace(route=route, reader=Reader(), key_columns=(ID,), keyless=False)
    sides = TwoSides(cast("Any", None), [cast("Any", source)], cast("Any", target), cast("Any", 0))
    one = [Difference(k, What.EXTRA, lookup, NOTHING, NOTHING) for k, lookup in keys]
    return sides.differing(one, one[:1])


def test_a_repair_names_what_routes_a_document():
    keys = ('["1", "b"]', "[1]"), ('["2", null]', "[2]"), ('["x", "b"]', None)
    found = differing(ROUTED, DocumentForm(("", ""), (0,), routing=1), *keys)
    assert found.columns == ("id", "shop")
    assert [key for key, _ in found.keys] == [(1, "b"), (2, None)]
    assert (found.unknown, found.undecided) == (1, ((1, "b"),))
    found = differing(PLAIN, DocumentForm.of_key(1), ("1", None))
    assert (found.columns, found.undecided) == (("id",), ((1,),))
