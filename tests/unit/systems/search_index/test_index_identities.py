"""What Elasticsearch says of an index that tells it from another one of its name."""

import pytest

from setl.errors import ConfigurationError
from setl.load.identities import Identity
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index import identities
from setl.systems.search_index.errors import AnswerError
from setl.systems.search_index.identities import index_identities

ENDPOINT = ElasticEndpoint(("http://es:9200",))


def refusal(status, type_):
    return AnswerError(status, {"error": {"type": type_, "reason": ""}, "status": status})


def index(uuid, *, aliases=None, **settings):
    reported = {"uuid": uuid, **settings}
    return {"settings": {"index": reported}} | ({"aliases": aliases} if aliases else {})


class Client:
    """A cluster with some indexes; refuses a request that names one that is not there."""

    def __init__(self, indexes):
        self.indexes, self.asked = indexes, []

    def describe(self, index, wanted):
        self.asked.append(index)
        found = {}
        for name in index.split(","):
            named = {
                own: each
                for own, each in self.indexes.items()
                if own == name or name in each.get("aliases", {})
            }
            if not named:
                raise refusal(404, "index_not_found_exception")
            found |= named
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def cluster(monkeypatch):
    def has(**indexes):
        client = Client(indexes)
        monkeypatch.setattr(identities, "make_client", lambda _: client)
        return client

    return has


def test_indexes_are_reported_by_their_uuid_and_their_history(cluster):
    cluster(a=index("u1"), b=index("u2", history={"uuid": "h"}))
    assert index_identities(ENDPOINT, ["a", "b"]) == {
        "a": Identity("u1", "a"),
        "b": Identity("u2/h", "b"),
    }


def test_names_under_which_there_is_nothing_are_left_out(cluster):
    client = cluster(a=index("u1"))
    assert index_identities(ENDPOINT, ["a", "b"]) == {"a": Identity("u1", "a")}
    assert client.asked == ["a,b", "a", "b"]
    assert index_identities(ENDPOINT, ["b"]) == {}


def test_an_alias_is_what_is_written_through_it(cluster):
    cluster(
        a1=index("u1", aliases={"a": {}, "x": {}}),
        b1=index("u2", aliases={"b": {"is_write_index": False}, "x": {}}),
        b2=index("u3", aliases={"b": {"is_write_index": True}}),
    )
    assert index_identities(ENDPOINT, ["a", "b", "x"]) == {
        "a": Identity("u1", "a1", alias=True),
        "b": Identity("u3", "b2", alias=True, several=("b1", "b2")),
        "x": Identity("u1+u2", "a1+b1", alias=True, several=("a1", "b1")),
    }


def test_many_names_go_in_several_requests(cluster):
    names = [f"index-{number:04}-{'x' * 50}" for number in range(100)]
    client = cluster(**{name: index(name) for name in names})
    assert len(index_identities(ENDPOINT, names)) == 100
    assert len(client.asked) > 1
    assert 1_900 < max(map(len, client.asked)) < 2_000


def test_an_account_that_must_not_look_is_reported_so(cluster):
    client = cluster()

    def refuse(*_):
        raise refusal(403, "security_exception")

    client.describe = refuse
    with pytest.raises(ConfigurationError, match="security_exception"):
        index_identities(ENDPOINT, ["a"])
