import pickle
import threading

from setl.load.worker import MAX_UNUSED_SECONDS, SinkCache
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
from setl.systems.search_index.load.sink import IndexSink, IndexSinkSettings
from tests.clocks import SetClock
from tests.loading import ticket_for

MYSQL = MysqlSinkSettings(MysqlEndpoint("db", password="secret1"), 7)
SEARCH = IndexSinkSettings(
    ElasticEndpoint(("http://u:secret2@es:9200",), "u", "secret3", api_key="secret4")
)


def test_the_settings_say_which_sink_it_is():
    assert isinstance(MYSQL.make_sink(), MysqlSink)
    assert isinstance(SEARCH.make_sink(), IndexSink)


def test_settings_travel_and_find_the_same_sink_and_show_no_secret():
    cache = SinkCache()
    for settings in (MYSQL, SEARCH):
        copy = pickle.loads(pickle.dumps(settings))
        assert cache.get(copy) is cache.get(settings)
        assert "secret" not in f"{settings!r} {settings.endpoint}"
    assert str(SEARCH.endpoint) == "es:9200"
    cache.close()


def test_nobody_waits_for_a_sink_that_is_closed_because_there_are_too_many(monkeypatch):
    """Its target may hang, and the load that comes may be another pipeline's."""
    cache, going, closed = SinkCache(limit=1), threading.Event(), threading.Event()

    def hangs():
        assert going.wait(60)
        closed.set()

    monkeypatch.setattr(cache.get(MYSQL), "close", hangs)
    assert isinstance(cache.get(SEARCH), IndexSink)
    going.set()
    assert closed.wait(20)
    cache.close()


def test_sinks_that_are_not_used_any_more_are_closed(monkeypatch):
    """A pipeline that has stopped keeps no connections to its target."""
    clock, closed = SetClock(), threading.Event()
    cache = SinkCache(clock=clock)
    mysql, search = cache.get(MYSQL), cache.get(SEARCH)
    monkeypatch.setattr(mysql, "close", closed.set)
    clock.time += MAX_UNUSED_SECONDS
    assert cache.get(SEARCH) is search
    clock.time += 1
    assert cache.get(SEARCH) is search
    assert closed.wait(20)
    assert cache.get(MYSQL) is not mysql
    cache.close()


def test_a_sink_that_is_used_now_and_then_stays():
    clock = SetClock()
    cache = SinkCache(clock=clock)
    search = cache.get(SEARCH)
    for _ in range(5):
        clock.time += MAX_UNUSED_SECONDS + 1
        assert cache.get(SEARCH) is search
    cache.close()


def test_a_fork_does_not_use_the_connections_of_its_parent(monkeypatch):
    cache = SinkCache()
    before = cache.get(MYSQL)
    closed = []
    monkeypatch.setattr(before, "close", lambda: closed.append(before))
    monkeypatch.setattr("setl.load.worker.os.getpid", lambda: -1)
    assert cache.get(MYSQL) is not before
    assert closed == []


def test_elasticsearch_stores_no_record_of_how_far_it_is():
    assert SEARCH.applied_through(ticket_for("p")) == 0
