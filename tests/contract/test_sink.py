"""What every `Sink` does, whatever it writes to."""

from contextlib import suppress
from dataclasses import replace
from importlib import import_module

import pytest

from setl.channel.fields.endpoints import BUILT_IN_TARGETS
from setl.errors import FencedError
from setl.load.version_fence import VersionFence
from setl.model.change import TargetChanges
from setl.model.loaded import Loaded
from setl.model.schema import Column, Kind
from setl.systems.search_index.client import make_client
from setl.systems.search_index.load.ids import document_id
from setl.systems.search_index.load.sink import IndexSink, IndexSinkSettings
from setl_jsonlines.lines import file_of, original, rows_in
from setl_jsonlines.sink import JsonLinesSinkSettings
from tests.databases import EACH
from tests.families import Pair
from tests.index_products import PRODUCTS, endpoint_of, type_of
from tests.loading import (
    create_system_tables,
    execute,
    fence_for,
    rows_of,
    sink_on,
    ticket_for,
    unique,
)

# Kinds that rows and documents write in the same way, so that one expectation fits both.
ID = Column("id", Kind.INTEGER)
NAME = Column("name", Kind.TEXT)
PRICE = Column("price", Kind.DECIMAL, 14, 4)
SIZE = Column("size", Kind.FLOAT)
SHOP = Column("shop", Kind.TEXT)

ITEM = (ID, NAME, PRICE, SIZE)
STOCK = (SHOP, ID, NAME)

FOLDERS = [
    type_of(form)
    for form in BUILT_IN_TARGETS
    if not form.holds_documents and not form.is_log and type_of(form) != "mysql"
]
"""Targets that are folders: `tests.contract.sinks` has a module for each."""


class MysqlTarget:
    """A schema of its own on a shared server."""

    def __init__(self, server):
        create_system_tables(server)
        self._server = server
        self._schema = unique("sink")
        self.ticket = ticket_for(self._schema)
        self.fence = fence_for(server, self.ticket)
        execute(
            server,
            f"CREATE DATABASE {self._schema} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            f"CREATE TABLE {self._schema}.item (id BIGINT PRIMARY KEY, name VARCHAR(200) NULL, "
            "price DECIMAL(14,4) NULL, size DOUBLE NULL)",
            f"CREATE TABLE {self._schema}.stock (shop VARCHAR(40), id BIGINT, "
            "name VARCHAR(200) NULL, PRIMARY KEY (shop, id))",
        )
        self.sink = sink_on(server, rows_per_statement=100)

    def target(self, table):
        return self._schema, table

    def rows(self, table, columns):
        names = ", ".join(c.name for c in columns)
        found = rows_of(self._server, f"SELECT {names} FROM {self._schema}.{table}")
        return {tuple(str(v) if c.kind is Kind.DECIMAL and v is not None else v
                      for c, v in zip(columns, row, strict=True)) for row in found}  # fmt: skip


class IndexTarget:
    """Indexes of its own on a shared server, whose `endpoint` says which product it is."""

    def __init__(self, endpoint):
        self._prefix = unique("sink")
        self.ticket = ticket_for(self._prefix)
        self.fence = VersionFence()
        self.client = make_client(endpoint)
        self.sink = IndexSink(IndexSinkSettings(endpoint, actions_per_request=100))

    def target(self, table):
        return "", f"{self._prefix}_{table}"

    def rows(self, table, columns):
        index = self.target(table)[1]
        self.client.refresh(index)
        hits = self.client.search(index, {"size": 10_000})["hits"]["hits"]
        key = 2 if columns is STOCK else 1
        for hit in hits:
            row = [hit["_source"][c.name] for c in columns]
            assert hit["_id"] == document_id(tuple(row[:key]))
            assert hit["_source"].keys() == {c.name for c in columns}
        return {tuple(hit["_source"][c.name] for c in columns) for hit in hits}


class JsonLinesTarget:
    """A folder: the target of another package, see `tests/plugins`."""

    def __init__(self, folder):
        self._folder = folder
        self.fence = VersionFence()
        self.ticket = ticket_for("lines")
        self.sink = JsonLinesSinkSettings(str(folder)).make_sink()

    def target(self, table):
        return "shop", table

    def rows(self, table, columns):
        found = rows_in(file_of(str(self._folder), "shop", table)).values()
        return {original(row, [column.name for column in columns]) for row in found}


@pytest.fixture(params=[*EACH, *PRODUCTS, *FOLDERS, "jsonlines"])
def target(request, tmp_path):
    if isinstance(request.param, Pair):
        made = MysqlTarget(request.getfixturevalue("databases").site(request.param, 0))
    elif request.param == "jsonlines":
        made = JsonLinesTarget(tmp_path)
    elif request.param in FOLDERS:
        side = import_module(f"tests.contract.sinks.{request.param}")
        made = side.Target(tmp_path, {"item": ITEM, "stock": STOCK})
    else:
        server = request.getfixturevalue(request.param)
        made = IndexTarget(endpoint_of(request.param, server.url))
    made.fence.raise_to(1, "n1")
    yield made
    made.sink.close()
    made.sink.close()


class Stream:
    """Applies changes one call after another, each newer than the one before."""

    def __init__(self, target, table="item", columns=ITEM, key=(0,)):
        self._target = target
        self._table = table
        self._columns = columns
        self._key = key
        self._calls = []

    def apply(self, upserts=(), deletes=()):
        version = 100 + len(self._calls)
        changes = TargetChanges(
            self._target.target(self._table),
            self._columns,
            self._key,
            list(upserts),
            list(deletes),
            [version] * len(upserts),
            [version] * len(deletes),
        )
        self._calls.append(changes)
        return self._target.sink.apply(self._target.ticket, [changes])

    def replay(self, first, count=None):
        for changes in self._calls[first:][:count]:
            self._target.sink.apply(self._target.ticket, [changes])

    def rows(self):
        return self._target.rows(self._table, self._columns)


def item(number, name: str | None = "n", price="1.0000", size=0.5):
    return (number, name, price, size)


def test_rows_that_are_new_are_inserted_and_counted(target):
    stream = Stream(target)
    loaded = stream.apply([item(1), item(2)])
    assert stream.rows() == {item(1), item(2)}
    assert (loaded.upserts, loaded.deletes, loaded.stale) == (2, 0, 0)
    assert loaded.seconds > 0


def test_a_row_that_is_there_is_replaced(target):
    stream = Stream(target)
    stream.apply([item(1, "old"), item(2)])
    stream.apply([item(1, "new", "2.5000", 1e300)])
    assert stream.rows() == {item(1, "new", "2.5000", 1e300), item(2)}


def test_deletes_take_rows_away(target):
    stream = Stream(target)
    stream.apply([item(1), item(2), item(3)])
    loaded = stream.apply(deletes=[(1,), (3,)])
    assert stream.rows() == {item(2)}
    assert loaded.deletes == 2


def test_deleting_what_is_not_there_is_no_error(target):
    stream = Stream(target)
    stream.apply([item(1)])
    stream.apply(deletes=[(7,), (8,)])
    assert stream.rows() == {item(1)}


def test_deletes_and_upserts_of_several_tables_in_one_call(target):
    items, stock = Stream(target), Stream(target, "stock", STOCK, (0, 1))
    items.apply([item(1), item(2)])
    stock.apply([("a", 1, "x")])
    target.sink.apply(
        target.ticket,
        [
            TargetChanges(target.target("item"), ITEM, (0,), [item(3)], [(1,)], [200], [200]),
            TargetChanges(
                target.target("stock"), STOCK, (0, 1), [("b", 1, "y")], [("a", 1)], [200], [200]
            ),
        ],
    )
    assert items.rows() == {item(2), item(3)}
    assert stock.rows() == {("b", 1, "y")}


def test_the_same_changes_again_change_nothing(target):
    stream = Stream(target)
    stream.apply([item(1), item(2)])
    stream.apply([item(1, "b")], [(2,)])
    stream.replay(1)
    assert stream.rows() == {item(1, "b")}


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_any_suffix_applied_again_ends_in_the_same_state(target, first):
    stream = Stream(target)
    stream.apply([item(1, "a"), item(2, "a"), item(3, "a")])
    stream.apply([item(1, "b"), item(4, "b")], [(2,)])
    stream.apply([item(2, "c")], [(1,), (4,)])
    stream.apply([item(3, "d"), item(1, "d")])
    expected = {item(1, "d"), item(2, "c"), item(3, "d")}
    assert stream.rows() == expected
    stream.replay(first)
    assert stream.rows() == expected


def test_what_a_former_leader_still_writes_changes_nothing(target):
    """It may be refused, or be as if it had not been sent; see `setl.load.sink.Fence`.

    The embedded Elasticsearch forgets the versions of what was deleted: for deletes see
    `tests/integration/search/test_elasticsearch_late_writes.py`.
    """
    stream = Stream(target)
    stream.apply([item(1, "old"), item(2, "old")])
    former = target.ticket
    target.fence.raise_to(2, "n2")
    target.ticket = replace(former, leadership=former.leadership._replace(nid="n2", epoch=2))
    stream.apply([item(1, "new")])
    target.ticket = former
    with suppress(FencedError):
        stream.replay(0, count=1)
    assert stream.rows() == {item(1, "new"), item(2, "old")}


def test_null_clears_a_value(target):
    stream = Stream(target)
    stream.apply([item(1, "a")])
    stream.apply([(1, None, None, None)])
    assert stream.rows() == {(1, None, None, None)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "😀 四 ñ",
        "it's \"quoted\" \\ back\\'slash",
        "%s %d %%",
        "a\nb\r\tc\0d\x1a\x7f",
        "﷽\u2028",
    ],
)
def test_text_arrives_as_it_left(target, text):
    stream = Stream(target)
    stream.apply([item(1, text), item(2, None)])
    assert stream.rows() == {item(1, text), item(2, None)}


def test_a_composite_key_reports_rows_apart(target):
    stream = Stream(target, "stock", STOCK, (0, 1))
    rows = {("a", 1, "x"), ("a", 2, "x"), ("b", 1, "x"), ("a,1", 1, "x"), ("a\\", 1, "x")}
    stream.apply(sorted(rows))
    assert stream.rows() == rows
    stream.apply(deletes=[("a", 2), ("a,1", 1), ("b", 2)])
    assert stream.rows() == {("a", 1, "x"), ("b", 1, "x"), ("a\\", 1, "x")}


def test_a_large_call_is_complete(target):
    stream = Stream(target)
    stream.apply([item(i, f"name {i}") for i in range(1_234)])
    stream.apply(
        [item(i, f"new {i}") for i in range(1_234, 1_500)], [(i,) for i in range(0, 1_234, 2)]
    )
    expected = {item(i, f"name {i}") for i in range(1, 1_234, 2)}
    expected |= {item(i, f"new {i}") for i in range(1_234, 1_500)}
    assert stream.rows() == expected


def test_nothing_to_write_is_no_work(target):
    empty = TargetChanges(target.target("item"), ITEM, (0,))
    assert target.sink.apply(target.ticket, []) == Loaded()
    assert target.sink.apply(target.ticket, [empty]).upserts == 0
