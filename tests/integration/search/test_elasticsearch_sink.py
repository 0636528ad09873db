"""The Elasticsearch sink against a server: versions, outcomes of single items, indexes, errors."""

import threading
from contextlib import ExitStack
from dataclasses import replace

import pytest
from elasticsearch import Elasticsearch

from setl.errors import ConfigurationError, DataError, TransientError
from setl.model.change import TargetChanges
from setl.model.document import DocumentForm
from setl.model.schema import COLUMN_KINDS, Column, Kind
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index.client import make_client
from setl.systems.search_index.load.index import ensure_index
from setl.systems.search_index.load.sink import IndexSink, IndexSinkSettings
from setl_embedded.ports import free_port
from tests.loading import ticket_for, unique
from tests.search_server import SearchServer

ID = Column("id", Kind.INTEGER)
NAME = Column("name", Kind.TEXT)
BORN = Column("born", Kind.DATE)
TICKET = ticket_for("to-search")
ROUTED = DocumentForm(("", ""), (0,), routing=1)


def changes(index, columns, upserts=(), deletes=(), *, version=1, key=(0,)):
    return TargetChanges(
        ("", index),
        columns,
        key,
        list(upserts),
        list(deletes),
        [version] * len(upserts),
        [version] * len(deletes),
    )


class Search:
    def __init__(self, url, **options):
        self.client = Elasticsearch(url)
        self.naps = []
        self.endpoint = ElasticEndpoint((url,))
        settings = IndexSinkSettings(self.endpoint, **options)
        self.sink = IndexSink(settings, sleep=self.naps.append)
        self.index = unique("docs")

    def write(self, columns, upserts=(), deletes=(), version=1):
        part = changes(self.index, columns, upserts, deletes, version=version)
        return self.sink.apply(TICKET, [part])

    def documents(self):
        self.client.indices.refresh(index=self.index)
        hits = self.client.search(index=self.index, size=1000)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    def mapping(self):
        (found,) = self.client.indices.get_mapping(index=self.index).values()
        return found["mappings"]

    def settings(self):
        (found,) = self.client.indices.get_settings(index=self.index).values()
        return found["settings"]["index"]

    def close(self):
        self.sink.close()
        self.client.close()


@pytest.fixture
def search(elasticsearch):
    made = Search(elasticsearch.url)
    yield made
    made.close()


def test_what_is_older_than_the_document_is_refused_and_counts_as_done(search):
    search.write((ID, NAME), [(1, "new"), (2, "new")], version=10)
    loaded = search.write((ID, NAME), [(1, "old"), (3, "old")], [(2,)], version=9)
    assert (loaded.upserts, loaded.deletes, loaded.stale) == (2, 1, 2)
    assert search.documents() == {
        "1": {"id": 1, "name": "new"},
        "2": {"id": 2, "name": "new"},
        "3": {"id": 3, "name": "old"},
    }


def test_a_delete_that_is_older_than_the_document_is_refused(search):
    # The other way round, a write that is older than a delete, cannot be shown here: the
    # embedded server forgets the version of what is deleted, unlike Elasticsearch.
    search.write((ID, NAME), [(1, "a")], version=7)
    assert search.write((ID, NAME), [], [(1,)], version=6).stale == 1
    assert search.write((ID, NAME), [], [(1,)], version=7).stale == 0
    assert search.documents() == {}


def test_documents_that_are_refused_are_named_and_the_others_are_written(search):
    search.client.indices.create(
        index=search.index, mappings={"properties": {"name": {"type": "date"}}}
    )
    rows = [(i, "2026-01-01" if i % 2 else f"no date {i}") for i in range(10)]
    with pytest.raises(DataError, match="refuses 5 documents") as caught:
        search.write((ID, NAME), rows)
    text = str(caught.value)
    assert f"{search.index}/0: [400] document_parsing_exception" in text
    assert f"{search.index}/4: " in text
    assert "and 2 more" in text
    assert f"{search.index}/6: " not in text
    assert caught.value.where["index"] == search.index
    assert caught.value.where["id"] == "0"
    assert caught.value.where["pipeline"] == TICKET.pipeline_key
    assert sorted(search.documents()) == ["1", "3", "5", "7", "9"]


def test_a_row_that_no_document_can_hold_is_named_before_anything_is_sent(search):
    with pytest.raises(DataError, match="column born holds a value") as caught:
        search.write((ID, BORN), [(1, "2026-01-01"), (2, "0000-00-00")])
    assert caught.value.where["key"] == "2"
    assert not search.client.indices.exists(index=search.index)


# -- indexes -------------------------------------------------------------------------------


def test_a_missing_index_is_created_for_the_columns(search):
    columns = tuple(Column(kind.value, kind) for kind in COLUMN_KINDS)
    search.write(
        (ID, Column("n", Kind.INTEGER, unsigned=True), *columns),
        [(1, 2**64 - 1, *(None for _ in columns))],
    )
    properties = search.mapping()["properties"]
    assert {name: field["type"] for name, field in properties.items()} == {
        "id": "long", "n": "unsigned_long", "integer": "long", "decimal": "double",
        "float": "double", "text": "text", "enum": "keyword", "set": "keyword", "json": "object",
        "date": "date", "time": "keyword", "datetime": "date", "timestamp": "date",
        "year": "long", "bit": "unsigned_long", "binary": "binary", "geometry": "binary",
    }  # fmt: skip
    assert search.settings()["gc_deletes"] == "1h"


def test_every_kind_of_value_is_stored_as_it_is_written_and_can_be_searched(search):
    columns = (
        ID,
        Column("price", Kind.DECIMAL),
        Column("name", Kind.TEXT),
        Column("at", Kind.TIMESTAMP),
        Column("extra", Kind.JSON),
        Column("big", Kind.INTEGER, unsigned=True),
        Column("raw", Kind.BINARY),
    )
    row = (1, "12.5000", "Big 😀 Shop", "2026-01-02 03:04:05.000006", '{"a":[1.0,\n"x"]}',
           2**64 - 1, b"\x00\xff")  # fmt: skip
    other = (2, "3.0000", "small", "2025-01-02 03:04:05.000000", '"text"', 0, b"")
    search.write(columns, [row, other])
    assert search.documents()["1"] == {
        "id": 1,
        "price": "12.5000",
        "name": "Big 😀 Shop",
        "at": "2026-01-02T03:04:05.000006Z",
        "extra": {"a": [1.0, "x"]},
        "big": 2**64 - 1,
        "raw": "AP8=",
    }
    # No range of `price`: the embedded server does not read numbers out of text, as
    # Elasticsearch does for numeric fields (``coerce``).
    for query in (
        {"match": {"name": "shop"}},
        {"term": {"name.keyword": "Big 😀 Shop"}},
        {"range": {"at": {"gte": "2026-01-01"}}},
        {"term": {"big": 2**64 - 1}},
    ):
        found = search.client.search(index=search.index, query=query)["hits"]["hits"]
        assert [hit["_id"] for hit in found] == ["1"], query


def test_an_index_template_counts_more_than_the_defaults(search):
    search.client.indices.put_index_template(
        name=search.index,
        index_patterns=[search.index],
        template={
            "settings": {"number_of_shards": 2, "gc_deletes": "2h"},
            "mappings": {"properties": {"name": {"type": "keyword"}}},
        },
    )
    search.write((ID, NAME), [(1, "a")])
    types = {n: f["type"] for n, f in search.mapping()["properties"].items()}
    assert types == {"id": "long", "name": "keyword"}
    settings = search.settings()
    assert (settings["number_of_shards"], settings["gc_deletes"]) == ("2", "2h")
    search.client.indices.delete_index_template(name=search.index)


def test_an_index_that_is_empty_is_completed_and_others_keep_their_settings(search):
    search.client.indices.create(index=search.index)
    search.write((ID, NAME), [(1, "a")])
    assert search.settings()["gc_deletes"] == "1h"
    search.client.indices.put_settings(index=search.index, settings={"gc_deletes": "5m"})
    search.write((ID, NAME, BORN), [(1, "a", None)], version=2)
    assert search.settings()["gc_deletes"] == "5m"
    assert "born" in search.mapping()["properties"]


def test_fields_are_added_for_new_columns_and_existing_ones_left_alone(search):
    search.client.indices.create(
        index=search.index, mappings={"properties": {"id": {"type": "keyword"}}}
    )
    search.write((ID, NAME), [(1, "2026-01-01")])
    search.write((ID, NAME, BORN), [(2, "no date", "2026-01-01")], version=2)
    types = {n: f["type"] for n, f in search.mapping()["properties"].items()}
    assert types == {"id": "keyword", "name": "text", "born": "date"}
    assert len(search.documents()) == 2


@pytest.mark.parametrize("dynamic", ["strict", False])
def test_an_index_that_takes_no_new_fields_gets_none(search, dynamic):
    search.client.indices.create(
        index=search.index, mappings={"dynamic": dynamic, "properties": {"id": {"type": "long"}}}
    )
    if dynamic == "strict":
        with pytest.raises(DataError, match="strict_dynamic_mapping_exception"):
            search.write((ID, NAME), [(1, "a")])
    else:
        search.write((ID, NAME), [(1, "a")])
        assert search.documents() == {"1": {"id": 1, "name": "a"}}
    assert set(search.mapping()["properties"]) == {"id"}


def test_an_index_may_be_made_by_several_at_once(search):
    ready = threading.Barrier(4)
    failures = []

    def make():
        client = make_client(search.endpoint)
        ready.wait(30)
        try:
            ensure_index(client, search.index, (ID, NAME))
        except Exception as error:  # noqa: BLE001 - shown by the test's thread
            failures.append(error)
        client.close()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert set(search.mapping()["properties"]) == {"id", "name"}


def test_an_alias_is_written_through(search):
    real = unique("real")
    search.client.indices.create(index=real, aliases={search.index: {"is_write_index": True}})
    search.write((ID, NAME), [(1, "a")])
    assert search.documents() == {"1": {"id": 1, "name": "a"}}
    assert search.client.count(index=real)["count"] == 1


def test_a_name_that_no_index_can_have_is_a_configuration_error(search):
    search.index = "Not A Name"
    with pytest.raises(ConfigurationError, match="invalid_index_name_exception") as caught:
        search.write((ID,), [(1,)])
    assert caught.value.where["index"] == "Not A Name"


# -- a cluster in trouble ------------------------------------------------------------------


def test_a_server_that_is_down_is_transient_after_several_attempts():
    search = Search(f"http://user:secret@127.0.0.1:{free_port()}", attempts=3)
    with pytest.raises(TransientError, match="no connection") as caught:
        search.write((ID,), [(1,)])
    assert search.naps == [0.2, 0.4]
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(search.sink._settings)
    search.close()


INDEX = {"i": {"mappings": {"properties": {"id": {}, "name": {}}}}}


class Cluster(SearchServer):
    """Answers bulk requests as told: for each one, statuses of its items, or of the request."""

    def __init__(self, answers):
        super().__init__(self.said)
        self.answers = list(answers)
        self.ids = []
        self.meeting = None

    def said(self, method, _, lines):
        if method == "GET":
            return 200, INDEX
        # A delete has no document in the line after it.
        actions = [line for line in lines if {"index", "delete"} & line.keys()]
        self.ids.append([next(iter(a.values()))["_id"] for a in actions])
        reported = self.answers.pop(0)
        if isinstance(reported, int):
            return reported, {"error": {"type": "told", "reason": "so"}, "status": reported}
        items = []
        for action, status in zip(actions, reported, strict=False):
            (operation,) = action
            result = {"status": status}
            if status >= 300:
                result["error"] = {"type": f"type_{status}", "reason": "because"}
            if status == 404:
                result["error"]["type"] = "index_not_found_exception"
            items.append({operation: result})
        if self.meeting is not None:  # until as many have come as are to be under way at once
            self.meeting.wait()
        return 200, {"errors": any(status >= 300 for status in reported), "items": items}


@pytest.fixture
def cluster():
    with ExitStack() as running:

        def start(*answers, **options):
            server = running.enter_context(Cluster(answers))
            search = Search(server.url, **options)
            running.callback(search.close)
            return server, search

        yield start


def test_only_items_that_may_yet_succeed_are_sent_again(cluster):
    server, search = cluster([201, 429, 409, 503], [429, 200], [200])
    loaded = search.write((ID,), [(i,) for i in range(4)])
    assert server.ids == [["0", "1", "2", "3"], ["1", "3"], ["1"]]
    assert loaded.stale == 1
    assert search.naps == [0.2, 0.4]


def test_an_item_that_stays_busy_is_transient(cluster):
    server, search = cluster([200, 429], [429], [429], attempts=3)
    with pytest.raises(TransientError, match=r"has not taken 1 of 1 change: \[429\]") as caught:
        search.write((ID,), [(1,), (2,)])
    assert caught.value.where["id"] == "2"
    assert server.ids == [["1", "2"], ["2"], ["2"]]


def test_refused_items_do_not_keep_busy_ones_from_being_sent_again(cluster):
    server, search = cluster([400, 429, 201], [201])
    with pytest.raises(DataError, match=r"refuses 1 document: .*/0: .400. type_400: because"):
        search.write((ID,), [(0,), (1,), (2,)])
    assert server.ids == [["0", "1", "2"], ["1"]]


def test_a_request_without_an_answer_is_sent_again(cluster):
    server, search = cluster(503, 502, [201])
    search.write((ID,), [(1,)])
    assert server.ids == [["1"]] * 3


def test_a_missing_index_is_made_again_and_its_items_sent_again(cluster):
    server, search = cluster([404, 201], [201])
    search.write((ID,), [(0,), (1,)])
    assert server.ids == [["0", "1"], ["0"]]


def test_a_forbidden_write_is_a_configuration_error(cluster):
    _, search = cluster([403])
    with pytest.raises(ConfigurationError, match="forbids writing"):
        search.write((ID,), [(1,)])
    _, search = cluster(401)
    with pytest.raises(ConfigurationError, match="401"):
        search.write((ID,), [(1,)])


def test_a_request_that_is_too_large_is_divided(cluster):
    server, search = cluster(413, [201, 201], 413, [201], [201])
    search.write((ID,), [(i,) for i in range(4)])
    assert server.ids == [["0", "1", "2", "3"], ["0", "1"], ["2", "3"], ["2"], ["3"]]
    _, search = cluster(413)
    with pytest.raises(DataError, match="larger than Elasticsearch accepts") as caught:
        search.write((ID,), [(7,)])
    assert caught.value.where["id"] == "7"


def test_requests_are_limited_by_count_and_by_size(cluster):
    # Requests come in any order, so every answer is long enough for the longest.
    server, search = cluster(*[[201, 201]] * 3, actions_per_request=2)
    search.write((ID,), [(i,) for i in range(5)])
    assert sorted(server.ids) == [["0", "1"], ["2", "3"], ["4"]]
    server, search = cluster([201], [201], [201], request_size=60)
    search.write((ID,), [(i,) for i in range(3)])
    assert sorted(server.ids) == [["0"], ["1"], ["2"]]


def test_a_document_that_is_routed_again_is_deleted_and_written_in_one_request(cluster):
    def moved(search):
        part = changes(search.index, (ID, NAME), [(1, "b"), (2, "b")], [(2, "a")], key=(0, 1))
        return search.sink.apply(TICKET, [replace(part, document=ROUTED)])

    server, search = cluster([201, 201], [201, 201], actions_per_request=1, requests_at_once=1)
    moved(search)
    assert server.ids == [["1"], ["2", "2"]]
    # What belongs to an action that is sent again is sent again with it.
    server, search = cluster([201, 429, 201], [200, 200])
    assert moved(search).stale == 0
    assert server.ids == [["1", "2", "2"], ["2", "2"]]
    server, search = cluster([201, 200, 429], [200])
    moved(search)
    assert server.ids == [["1", "2", "2"], ["2"]]
    server, search = cluster(413, [201], 413, [200], [200])
    moved(search)
    assert server.ids == [["1", "2", "2"], ["1"], ["2", "2"], ["2"], ["2"]]


def test_two_requests_are_under_way_at_once(cluster):
    # Each of them is answered when the other one has come; alone, they would wait in vain.
    server, search = cluster([201], [201], actions_per_request=1)
    server.meeting = threading.Barrier(2, timeout=20)
    search.write((ID,), [(1,), (2,)])
    assert sorted(server.ids) == [["1"], ["2"]]


def test_what_several_requests_met_is_counted_together(cluster):
    _, search = cluster([409, 201], [201, 409], actions_per_request=2)
    assert search.write((ID,), [(i,) for i in range(4)]).stale == 2
    _, search = cluster([400], [400], actions_per_request=1)
    with pytest.raises(DataError, match=r"refuses 2 documents: .*/0: .*/1: "):
        search.write((ID,), [(0,), (1,)])


def test_nothing_is_under_way_any_more_when_a_request_fails(cluster):
    # All of them are in the first round; what is left then is not begun.
    server, search = cluster(*[[403]] * 6, actions_per_request=1)
    with pytest.raises(ConfigurationError, match="forbids writing"):
        search.write((ID,), [(i,) for i in range(6)])
    sent = len(server.ids)
    assert sent < 6
    server.answers[:] = [[201]]
    search.write((ID,), [(9,)])
    assert server.ids[sent:] == [["9"]]


def test_a_request_that_stores_failing_is_transient(cluster):
    _, search = cluster(500, 500, attempts=2)
    with pytest.raises(TransientError, match="told: so"):
        search.write((ID,), [(1,)])


@pytest.mark.parametrize("answer", [[], [201], [409]])
def test_an_answer_that_lacks_items_is_not_trusted(cluster, answer):
    server, search = cluster(answer, [201, 201])
    search.write((ID,), [(1,), (2,)])
    assert server.ids == [["1", "2"], ["1", "2"]]


def test_one_half_of_a_divided_request_may_fail(cluster):
    _, search = cluster(413, [201, 201], [409, 400])
    with pytest.raises(DataError, match=r"refuses 1 document: .*/3: "):
        search.write((ID,), [(i,) for i in range(4)])


def test_addresses_that_are_none_are_configuration_errors():
    with pytest.raises(ConfigurationError, match="no Elasticsearch client"):
        make_client(ElasticEndpoint(("es1:9200",)))
