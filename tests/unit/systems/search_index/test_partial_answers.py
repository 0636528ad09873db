"""Answers of a cluster of which some shards have said nothing."""

from typing import Any

import pytest

from setl.errors import TransientError
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index import index_target
from setl.systems.search_index.index_target import (
    DocumentShape,
    Found,
    Ids,
    IndexTarget,
    Slice,
    documents_in,
)

ALL = {"total": 2, "successful": 2, "failed": 0}
SOME = {"total": 2, "successful": 1, "failed": 1, "failures": [{"reason": {"type": "no_shard"}}]}
ENDPOINT = ElasticEndpoint(("http://es:9200",))
SHAPE = DocumentShape((Column("id", Kind.INTEGER),), (0,), DocumentForm.of_key(1))


class Client:
    """Answers every search and count with some of the documents."""

    def __init__(self, shards, docs=(), **more):
        self.answer = {"_shards": shards, "hits": {"hits": []}, "count": 0, **more}
        self.docs = list(docs)
        self.asked: dict[str, Any] = {}

    def exists(self, _):
        return True

    def refresh(self, *_, **__):
        pass

    def search(self, _, body, **params):
        self.asked = body | params
        return self.answer

    def count(self, *_, **__):
        return self.answer

    def many(self, *_):
        return self.docs

    def request(self, *_, **__):
        return {"id": "p"}

    def close(self):
        pass


@pytest.fixture
def cluster(monkeypatch):
    def answers(*args, **more):
        client = Client(*args, **more)
        monkeypatch.setattr(index_target, "make_client", lambda *_, **__: client)
        return client

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
