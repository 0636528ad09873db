"""Loads with expressions that share a query: each has to bring its own rows, and only those."""

from dataclasses import replace

import pytest
from elasticsearch import Elasticsearch

from setl.channel.routes.routing import Route, Router
from setl.errors import DataError
from setl.model.change import DecodedRows, Op
from setl.model.schema import Column, Kind, RowSchema
from setl.run.runners import prepared_queries
from setl.run.runners.prepared_queries import PreparedQueries
from setl.run.runners.work import LoadWork
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index.load.sink import IndexSinkSettings
from setl.transform.expressions import ExpressionBranch
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.work import TransformPlan, WorkItem
from tests.loading import ticket_for, unique

ID, NAME = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
PLAIN = 0


def schema(table, *more):
    return RowSchema("shop", table, (ID, NAME, *more), key=(0,))


class Shop:
    """A pipeline of three tables, the first of which has no expressions."""

    def __init__(self, spark, url):
        self.client = Elasticsearch(url)
        self.index = unique("shop")
        expressions = ({}, {"loud": "upper(name)"}, {"size": "length(name)"})
        routes = [
            Route(
                i, ("", self.index), expressions=each, where="name <> 'draft'" if i == 1 else None
            )
            for i, each in enumerate(expressions)
        ]
        by_table = {("shop", f"t{i}"): (route,) for i, route in enumerate(routes)}
        self.plan = TransformPlan("binlog", TableRouter(by_table))
        self.branches = {
            (route.index, *table): ExpressionBranch(spark.session, self.plan, route)
            for table, (route,) in by_table.items()
        }
        sink = IndexSinkSettings(ElasticEndpoint((url,)))
        self.jobs = PreparedQueries(spark, self.plan, self.branches, sink)
        self.version = 10

    def load(self, *rows, columns=(), plan=None):
        """Load rows, each (number of the table, id, name, …) with None as name for a delete."""
        work = LoadWork()
        for table, *row in rows:
            self.version += 1
            gone = row[1] is None
            image = (tuple(row), None) if gone else (None, tuple(row))
            decoded = DecodedRows(
                schema(f"t{table}", *columns), Op.DELETE if gone else Op.INSERT, [image]
            )
            position = (table, "shop", f"t{table}")
            item = WorkItem((), self.version, (), b"", position[1:], decoded)
            plain = table == PLAIN
            work.add(item, (PLAIN,) if plain else (), () if plain else (position,))
        ticket = ticket_for("search", through=self.version)
        return self.jobs.run(plan or self.plan, work, ticket, 1)

    def documents(self):
        self.client.indices.refresh(index=self.index)
        hits = self.client.search(index=self.index, size=100)["hits"]["hits"]
        return {hit["_source"]["id"]: hit["_source"] for hit in hits}


class TableRouter(Router):
    def __init__(self, by_table):
        self.by_table = by_table
        self.entries = ()

    def route(self, schema, table):
        return self.by_table[schema, table]


@pytest.fixture
def shop(spark, elasticsearch):
    made = Shop(SparkOnDemand.of(spark), elasticsearch.url)
    yield made
    made.client.close()


@pytest.fixture
def made(monkeypatch):
    """The queries that are made."""
    queries = []
    make = prepared_queries.prepared_query

    def noted(*args):
        queries.append(make(*args))
        return queries[-1]

    monkeypatch.setattr(prepared_queries, "prepared_query", noted)
    return queries


def test_a_query_serves_load_after_load(shop, made):
    (report,) = shop.load((1, 1, "ann"), (1, 2, "bob"), (1, 3, "draft"))
    assert (report.loaded.rows, report.loaded.upserts, report.loaded.deletes) == (3, 2, 1)
    (report,) = shop.load((1, 2, None), (1, 4, "dan"))
    assert (report.loaded.rows, report.loaded.upserts, report.loaded.deletes) == (2, 1, 1)
    (report,) = shop.load((1, 1, "draft"))
    assert (report.loaded.rows, report.loaded.upserts, report.loaded.deletes) == (1, 0, 1)
    assert shop.documents() == {4: {"id": 4, "name": "dan", "loud": "DAN"}}
    assert len(made) == 1


def test_tables_with_and_without_expressions_in_one_load(shop, made):
    for name in ("ann", "bob"):
        (report,) = shop.load((0, 1, name), (1, 2, name), (2, 3, name * 2))
        assert report.loaded.rows == 3
        assert shop.documents() == {
            1: {"id": 1, "name": name},
            2: {"id": 2, "name": name, "loud": name.upper()},
            3: {"id": 3, "name": name * 2, "size": 6},
        }
    assert len(made) == 1


def test_a_table_that_changed_has_a_query_of_its_own(shop, made):
    shop.load((1, 1, "ann"))
    shop.load((1, 1, "ann", 7), columns=(Column("age", Kind.INTEGER),))
    assert shop.documents() == {1: {"id": 1, "name": "ann", "age": 7, "loud": "ANN"}}
    assert len(made) == 2


def test_each_load_has_its_own_ticket_and_plan(shop):
    (report,) = shop.load((1, 1, "ann"), plan=replace(shop.plan, applied_through=shop.version + 1))
    assert report.loaded.redelivered == 1
    (report,) = shop.load((1, 1, "ann"))
    assert report.loaded.redelivered == 0
    key = (1, (2,), shop.version + 1)
    plan = replace(shop.plan, isolates=True, excluded={key: DataError("no")})
    assert shop.plan.isolates is False
    shop.jobs = PreparedQueries(shop.jobs._spark, plan, shop.branches, shop.jobs._sink)
    # Nobody takes faulty rows here, so that it is an error; what counts is that it came along.
    (report,) = shop.load((1, 2, "bob"), plan=plan)
    assert "no" in str(report.error)


def test_what_a_load_was_reported_is_gone_after_it(shop):
    shop.load((1, 1, "ann"))
    context = shop.jobs._spark.context
    assert context.getLocalProperty("setl.load") is None
    assert shop.documents() == {1: {"id": 1, "name": "ann", "loud": "ANN"}}


def test_large_loads_and_event_logs_are_left_to_others(shop, made):
    name = "x" * prepared_queries.MOST_BYTES
    assert shop.load((1, 1, name)) is None
    shop.jobs._allowed = False
    assert shop.load((1, 1, "ann")) is None
    assert made == []


def test_a_load_whose_table_nobody_can_read_is_left_to_others(shop):
    work = LoadWork(by_branch={(1, "shop", "t1"): [WorkItem((1,), 11, (), b"x", ("shop", "t1"))]})
    assert shop.jobs.run(shop.plan, work, ticket_for("search"), 1) is None
