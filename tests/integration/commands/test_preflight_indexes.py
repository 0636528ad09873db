"""What `setl check` says of indexes: the mapping that setl will make, and what does not fit."""

import re

import pytest
from elasticsearch import Elasticsearch

from setl.channel.file import ElasticsearchTarget
from setl.channel.reading import parse_channel
from setl.model.schema import Column, Kind
from setl.systems.elasticsearch.client import elastic_endpoint
from setl.systems.finding import Report
from setl.systems.search_index.preflight.indexes import seconds
from setl.systems.search_index.preflight.target import check_search_target
from tests.checking import check_channel
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.search_server import SearchServer

TABLE = """CREATE TABLE {db}.orders (
    id BIGINT UNSIGNED PRIMARY KEY, small SMALLINT, name VARCHAR(40), price DECIMAL(20,2),
    born DATE, seen DATETIME(6), tags SET('a','b'), place POINT, doc LONGTEXT)"""
KEYWORD = "is a keyword without ignore_above, which refuses more than 32,766 bytes"
REMEMBERS = {"index": {"gc_deletes": "1h"}}


class Check:
    def __init__(self, server, url):
        self.server, self.client = server, Elasticsearch(url)
        self.target = {"type": "elasticsearch", "hosts": [url]}
        self.db, self.index = fresh_name("fit"), fresh_name("fit")
        execute(server, f"CREATE DATABASE {self.db}", TABLE.format(db=self.db))

    def findings(self, source=None, expressions=None, **mapping):
        tables = [{"from": f"{self.db}.orders", "to": self.index, **mapping}]
        pipeline = {"name": "p", "source": source or mysql(self.server), "target": self.target}
        file = parse_channel({"channel": "c", "pipelines": [{**pipeline, "tables": tables}]})
        found = check_channel(file, expressions=expressions)
        return [f for f in found if ", index " in f.where or f.where.endswith(".orders")]

    def faults(self, **mapping):
        return [(f.level, f.what) for f in self.findings(**mapping) if f.level != "ok"]

    def create(self, properties=None, settings=REMEMBERS, **mapping):
        self.client.indices.create(
            index=self.index,
            settings=settings,
            mappings={"properties": properties or {}, **mapping},
        )


@pytest.fixture
def check(site_a, elasticsearch):
    made = Check(site_a, elasticsearch.url)
    yield made
    execute(site_a, f"DROP DATABASE {made.db}")
    made.client.close()


def types(finding):
    return {name: field["type"] for name, field in finding.mapping["properties"].items()}


def test_the_whole_mapping_is_shown_before_there_is_an_index(check):
    (finding,) = check.findings(
        columns={"total": "price * 2", "title": "name"},
        expressions=lambda _route, _schema: [Column("total", Kind.DECIMAL)],
        geometry="wkt",
    )
    assert finding.what == "setl will create the index (gc_deletes 1h), with this mapping"
    assert types(finding) == {
        "id": "unsigned_long", "small": "long", "title": "text", "price": "double", "born": "date",
        "seen": "date", "tags": "keyword", "place": "geo_shape", "doc": "text", "total": "double",
    }  # fmt: skip
    assert not check.client.indices.exists(index=check.index)


def test_what_an_index_template_says_is_shown_and_compared(check):
    check.client.indices.put_index_template(
        name=check.index,
        index_patterns=[f"{check.index}*"],
        template={
            "settings": {"number_of_shards": 3, "gc_deletes": "10s"},
            "mappings": {"properties": {"name": {"type": "long"}, "price": {"type": "keyword"}}},
        },
    )
    *faults, shown = check.findings()
    assert shown.what == (
        "setl will create the index as index templates of the cluster say (gc_deletes 10s,"
        " number_of_shards 3), with this mapping"
    )
    assert types(shown)["price"] == "keyword"
    assert [f.what.partition("(")[0] for f in faults] == [
        "the field name is long, which does not take text values ",
        "the index forgets the versions of deleted documents after 10s ",
    ]
    check.client.indices.delete_index_template(name=check.index)


def test_an_index_that_fits(check):
    check.create({"id": {"type": "unsigned_long"}, "small": {"type": "short"},
                  "name": {"type": "keyword"}, "seen": {"type": "date"}})  # fmt: skip
    (finding,) = check.findings()
    assert finding.what == "setl will add fields for price, born, tags, place, doc"
    assert types(finding)["price"] == "double"


def test_fields_that_do_not_fit(check):
    check.create({
        "id": {"type": "long"}, "small": {"type": "byte"}, "name": {"type": "long"},
        "price": {"type": "float"}, "born": {"type": "date", "format": "epoch_second"},
        "doc": {"type": "keyword"}, "tags": {"properties": {"x": {"type": "long"}}},
    })  # fmt: skip
    of = re.compile(rf" \((\w+) of {check.db}\.orders\)$")
    found = [(level, *of.split(what)[:2]) for level, what in check.faults()]
    assert found == [
        ("error", "the field id is long; the column goes from 0 to 18446744073709551615",
         "integer"),
        ("error", "the field small is byte; the column goes from -32768 to 32767", "integer"),
        ("error", "the field name is long, which does not take text values", "text"),
        ("warning", "the field price is float, which distinguishes only 6 digits in searches",
         "decimal"),
        ("error", "the field born is date with the format epoch_second; setl writes 2026-01-02",
         "date"),
        ("error", "the field tags is object, which does not take set values", "set"),
        ("warning", f"the field doc {KEYWORD}", "text"),
    ]  # fmt: skip


@pytest.mark.parametrize(("dynamic", "level"), [("strict", "error"), (False, "warning")])
def test_an_index_that_takes_no_new_fields(check, dynamic, level):
    check.create({"id": {"type": "unsigned_long"}, "small": {"type": "long"}}, dynamic=dynamic)
    include = ["id", "small", "name"]
    (finding,) = [f for f in check.findings(include=include) if f.level != "ok"]
    assert finding.level == level
    assert finding.what.startswith("the index has no field for name, and takes none (dynamic: ")
    assert finding.hint[0].startswith(f'PUT /{check.index}/_mapping {{"properties": {{"name": ')


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"default_pipeline": "_none"}, []),
        ({"default_pipeline": "geo"}, ["geo (index.default_pipeline)"]),
        ({"default_pipeline": "a", "final_pipeline": "b"},
         ["a (index.default_pipeline)", "b (index.final_pipeline)"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("there", [True, False])
def test_ingest_pipelines_are_named(check, settings, said, there):
    settings = {"index": {"gc_deletes": "1h", **settings}}
    client, pattern = check.client, [check.index]
    if there:
        check.create(settings=settings)
    else:
        template = {"settings": settings}
        client.indices.put_index_template(
            name=check.index, index_patterns=pattern, template=template
        )
    whats = [what for _, what in check.faults()]
    assert [what.split(":")[0] for what in whats] == [
        f"documents pass through the ingest pipeline {each}" for each in said
    ]
    if not there:
        client.indices.delete_index_template(name=check.index)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, "60s"), ({"index": {"gc_deletes": "5m"}}, "5m"), (REMEMBERS, ""),
     ({"index": {"gc_deletes": "2d"}}, "")],
)  # fmt: skip
def test_how_long_an_index_remembers_deletes(check, settings, said):
    check.create(settings=settings)
    found = [f for f in check.findings() if f.level == "warning"]
    if not said:
        assert not found
        return
    (finding,) = found
    assert f"deleted documents after {said} (index.gc_deletes)" in finding.what
    assert finding.hint == (f'PUT /{check.index}/_settings {{"index": {{"gc_deletes": "1h"}}}}',)


def test_an_index_that_requires_a_routing(check):
    check.create(_routing={"required": True})
    assert check.faults() == [
        ("error", "the index requires a routing, and the mapping has none")
    ]  # fmt: skip
    assert check.faults(routing="name") == []


@pytest.mark.parametrize(
    "mapping", [{"_source": {"enabled": False}}, {"_source": {"excludes": ["name"]}}]
)
def test_an_index_that_does_not_keep_documents(check, mapping):
    check.create(**mapping)
    ((level, what),) = check.faults()
    assert level == "warning"
    assert "does not keep all of its documents" in what


def test_too_many_fields(check):
    check.create(settings={"index": {"gc_deletes": "1h", "mapping.total_fields.limit": 8}})
    ((level, what),) = check.faults()
    assert (level, what) == ("error", "the index would have 12 fields, more than its limit of 8")


def test_ids_and_routing_are_checked_against_the_table(check):
    ((_, what),) = check.faults(id="{name}-{id}")
    assert what.startswith("tables[0].id names name, which is not part of the key")
    assert [what for _, what in check.faults(routing="city")] == [
        "tables[0].routing names a column city, which the table does not have"
    ]
    assert [what for _, what in check.faults(routing="name", exclude=["name"])] == [
        "the column name, by which documents are routed, does not reach the target"
    ]


def test_names_that_no_field_can_have(check):
    execute(check.server, f"ALTER TABLE {check.db}.orders ADD `_id` INT, ADD `a..b` INT,"
            " ADD `name.first` INT")  # fmt: skip
    assert [what.partition(" of ")[0] for _, what in check.faults()] == [
        "'name'",
        "'_id'",
        "'a..b'",
    ]
    fixed = {"first": "`name.first`", "other_id": "_id", "ab": "`a..b`"}
    assert check.faults(columns=fixed) == []


def test_numbers_whose_sign_a_subscription_does_not_tell(check, kafka):
    database = {key: value for key, value in mysql(check.server).items() if key != "type"}
    source = {"type": "kafka", "brokers": [kafka.brokers], "topic": "none", "database": database}
    (finding,) = [f for f in check.findings(source=source) if f.level == "error"]
    assert finding.what.startswith("the field id would be long, since a subscription does not say")
    assert '"id": {"type": "unsigned_long"}' in finding.hint[0]
    check.create({"id": {"type": "unsigned_long"}})
    assert [f for f in check.findings(source=source) if f.level != "ok"] == []


@pytest.fixture
def cluster():
    """Says what a real cluster does and the embedded one does not."""
    answers = {
        "/": (200, {"version": {"number": "8.15.0"}}),
        "/_cluster/health": (200, {"status": "green"}),
    }
    unknown = 404, {"error": {"type": "none"}, "status": 404}
    with SearchServer(lambda _, path, __: answers.get(path, unknown)) as server:
        yield server.url, answers


def test_an_account_that_may_not_look_at_index_templates(site_a, cluster):
    url, answers = cluster
    made = Check(site_a, url)
    error = {"error": {"type": "security_exception", "reason": "no"}, "status": 403}
    answers[f"/_index_template/_simulate_index/{made.index}"] = 403, error
    (finding,) = made.findings()
    assert finding.what.endswith(
        "(whether an index template applies cannot be seen by this account)"
    )
    execute(site_a, f"DROP DATABASE {made.db}")


@pytest.mark.parametrize(
    "settings", [{"mapping": {"source": {"mode": "synthetic"}}}, {"mapping": {}}]
)
def test_documents_that_are_made_up_from_fields(site_a, cluster, settings):
    url, answers = cluster
    made = Check(site_a, url)
    mappings = {"properties": {}} | (
        {} if settings["mapping"] else {"_source": {"mode": "synthetic"}}
    )
    index = {"gc_deletes": "1h", **settings}
    described = {made.index: {"mappings": mappings, "settings": {"index": index}}}
    answers[f"/{made.index}"] = 200, described
    ((level, what),) = made.faults()
    assert level == "warning"
    assert "synthetic _source" in what
    execute(site_a, f"DROP DATABASE {made.db}")


def test_an_alias_that_shows_some_documents_only(site_a, cluster):
    url, answers = cluster
    made = Check(site_a, url)
    described = {
        "aliases": {made.index: {"filter": {"term": {"small": 1}}}, "other": {}},
        "mappings": {"properties": {}},
        "settings": {"index": {"gc_deletes": "1h"}},
    }
    answers[f"/{made.index}"] = 200, {"behind": described}
    ((level, what),) = made.faults()
    assert level == "warning"
    assert what.startswith("the alias has a filter: ")
    execute(site_a, f"DROP DATABASE {made.db}")


@pytest.mark.parametrize(
    ("written", "expected"),
    [("60s", 60), ("1h", 3600), ("2d", 172_800), ("500ms", 0.5), ("-1", -0.001), ("soon", None),
     ("5x", None), ("0", 0)],
)  # fmt: skip
def test_times(written, expected):
    assert seconds(written) == expected


@pytest.mark.parametrize(
    ("answer", "level", "expected"),
    [
        ([], "error", "the answer is not one of Elasticsearch"),
        ("<html>", "error", "the answer is not one of Elasticsearch"),
        ({}, "warning", "the cluster has unknown"),
    ],
)
def test_a_proxy_that_answers_for_the_cluster(cluster, answer, level, expected):
    url, answers = cluster
    answers["/"] = 200, answer
    target = ElasticsearchTarget(type="elasticsearch", hosts=[url])
    report = Report("c/p")
    with report.failing():
        check_search_target(elastic_endpoint(target), {}, "c/p", report)
    assert [f.level for f in report.findings if expected in f.what] == [level]
