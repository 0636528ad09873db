from setl.errors import TransientError
from setl.run.stalls import target_sight as module
from setl.run.stalls.target_sight import target_sight
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.elasticsearch.load.sink import ElasticsearchSinkSettings
from setl.systems.elasticsearch.write_load import WriteLoad
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.load.sink import MysqlSinkSettings
from setl.systems.mysql.lock_waits import Connections

ELASTIC = ElasticsearchSinkSettings(ElasticEndpoint(("http://retl:secret@es1:9200",)))
MYSQL = MysqlSinkSettings(MysqlEndpoint("db1", 3307, "retl", "secret"), 7)


def answers(monkeypatch, name, *results):
    left = list(results)

    def look(*_):
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    where = module if name == "look_at_writes" else module.lock_waits
    monkeypatch.setattr(where, name, look)


def test_only_writes_that_were_rejected_since_the_last_look_count(monkeypatch):
    loads = [WriteLoad(rejected=900), WriteLoad(rejected=900), WriteLoad(rejected=912, queued=3)]
    answers(monkeypatch, "look_at_writes", *loads)
    sight = target_sight(ELASTIC, "shop/orders")
    assert [sight(7).rejecting for _ in loads] == [
        "",
        "",
        "12 writes were rejected since the last look, 3 writes wait in its queues",
    ]


def test_bulk_requests_are_statements_that_run(monkeypatch):
    answers(monkeypatch, "look_at_writes", WriteLoad(running=(64.0, 2.0), blind="x"))
    view = target_sight(ELASTIC, "shop/orders")(7)
    assert [s.seconds for s in view.statements] == [64.0, 2.0]
    assert (view.name, view.blind) == ("Elasticsearch es1:9200", "x")


def test_a_target_that_does_not_answer_says_why_and_no_password(monkeypatch):
    answers(monkeypatch, "look_at_writes", TransientError("no answer in time"))
    answers(monkeypatch, "look", TransientError("no connection"))
    for settings, error in ((ELASTIC, "no answer in time"), (MYSQL, "no connection")):
        view = target_sight(settings, "shop/orders")(7)
        assert view.error == error
        assert "secret" not in repr(view)


def test_rows_changed_so_far_are_what_moves_in_mysql(monkeypatch):
    seen = Connections(recorded=(5,), open=(5,), gone=(6,), modified=((5, "trx", 100),))
    answers(monkeypatch, "look", seen)
    view = target_sight(MYSQL, "shop/orders")(7)
    assert view.name == "MySQL db1:3307"
    assert (view.open, view.gone, view.movement) == (1, (6,), ((5, "trx", 100),))
