"""Answers of a cluster of which some shards have said nothing."""

import json
from typing import Any

import pytest

from setl.errors import TransientError
from setl.load.deadletters.dead_letter import State
from setl.model.document import DocumentForm, DocumentOrigin
from setl.model.schema import Column, Kind
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index import index_target
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.deadletters import IndexDeadLetters
from setl.systems.search_index.index_target import (
    DocumentShape,
    Found,
    Ids,
    IndexTarget,
    Slice,
    documents_in,
)
from setl.systems.search_index.load.document_origin import check_ids
from setl.systems.search_index.port import Answer

ALL = {"total": 2, "successful": 2, "failed": 0}
SOME = {"total": 2, "successful": 1, "failed": 1, "failures": [{"reason": {"type": "no_shard"}}]}
ENDPOINT = ElasticEndpoint(("http://es:9200",))
IDS = DocumentOrigin("shop.t -> i", "id (number)")
SHAPE = DocumentShape((Column("id", Kind.INTEGER),), (0,), DocumentForm.of_key(1))


class Cluster:
    """A `Connection` that answers every search and count with some of the documents."""

    def __init__(self, shards, docs=(), **more):
        self.answer = {"_shards": shards, "hits": {"hits": []}, "count": 0, **more}
        self.docs = list(docs)
        self.asked: dict[str, Any] = {}

    def ask(self, method, path, params, body, kind):
        found = self.answer
        if path.endswith("/_search"):
            self.asked = {**json.loads(body), **params}
        elif path.endswith("/_mget"):
            found = {"docs": self.docs}
        elif path.endswith("/_pit"):
            found = {"id": "p"}
        elif path.endswith("/_mapping"):
            found = {"i": {"mappings": {"_meta": {"setl_ids": {f"c/p {IDS.entry}": "another"}}}}}
        return Answer(200, json.dumps(found).encode())

    def close(self):
        pass


@pytest.fixture
def cluster(monkeypatch):
    def answers(*args, **more):
        found = Cluster(*args, **more)
        monkeypatch.setattr(index_target, "make_client", lambda *_, **__: SearchClient(found))
        return found

    return answers


def read(part):
    return list(IndexTarget(ENDPOINT, "i", SHAPE).read(part))


@pytest.mark.parametrize("part", [Slice("p", 0, 2), Found({"match_all": {}})])
def test_a_search_that_misses_a_shard_says_nothing_of_what_is_there(cluster, part):
    client = cluster(ALL)
    assert read(part) == []
    assert client.asked["allow_partial_search_results"] == "false"
    cluster(SOME)
    with pytest.raises(TransientError, match=r"has not read all documents: .*no_shard"):
        read(part)
    cluster(ALL, timed_out=True)
    with pytest.raises(TransientError, match="has not read all documents"):
        read(part)


def test_a_point_in_time_may_get_another_id_with_each_page(cluster):
    client = cluster(ALL, pit_id="q")
    client.answer["hits"]["hits"] = [{"_id": "1", "_source": {"id": 1}, "sort": [1]}]
    pages = IndexTarget(ENDPOINT, "i", SHAPE).read(Slice("p", 0, 1))
    for wanted in ("p", "q"):
        assert len(next(pages)) == 1
        assert client.asked["pit"]["id"] == wanted


def test_an_index_is_cut_into_no_more_parts_than_the_cluster_takes(cluster):
    """Elasticsearch refuses a search with more slices than ``index.max_slices_per_pit``, 1,024."""
    cluster(ALL, count=200_000_000)
    target = IndexTarget(ENDPOINT, "i", SHAPE)
    assert target.parts(50_000) == [Slice("p", number, 1024) for number in range(1024)]
    cluster(ALL, count=100_000)
    assert len(target.parts(50_000)) == 3


def test_a_document_that_cannot_be_read_is_not_one_that_is_gone(cluster):
    cluster(ALL, [{"_id": "1", "found": False}])
    assert read(Ids(("1",))) == [[]]
    cluster(ALL, [{"_id": "1", "error": {"type": "no_shard_available_action_exception"}}])
    with pytest.raises(TransientError, match="no_shard_available"):
        read(Ids(("1",)))


def test_an_index_of_which_a_shard_is_away_is_not_empty(cluster):
    cluster(ALL)
    assert documents_in(ENDPOINT, "i") == 0
    cluster(SOME)
    with pytest.raises(TransientError, match="has not read all documents"):
        documents_in(ENDPOINT, "i")


def test_documents_with_other_ids_may_be_in_the_shard_that_is_away(cluster):
    client = SearchClient(cluster(SOME))
    with pytest.raises(TransientError, match="has not read all documents"):
        check_ids(client, "i", client.mappings("i"), "c/p", IDS)


def test_dead_letters_of_a_shard_that_is_away_are_not_forgotten(cluster):
    away = {"_id": "1", "error": {"type": "no_shard_available_action_exception"}}
    letters = IndexDeadLetters(SearchClient(cluster(SOME, [away])))
    for look in (lambda: letters.tally("c/p"), lambda: letters.find("c/p")):
        with pytest.raises(TransientError, match="has not read all documents"):
            look()
    with pytest.raises(TransientError, match="no_shard_available"):
        letters.mark(["1"], State.SUPERSEDED)
