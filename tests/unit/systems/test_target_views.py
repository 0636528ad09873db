from setl.channel.file import ElasticsearchTarget, MysqlTarget
from setl.errors import TransientError
from setl.systems.mysql.locks import waits as lock_waits
from setl.systems.mysql.locks.waits import Connections
from setl.systems.registry import system_of
from setl.systems.search_index import target_system
from setl.systems.search_index.target_view import WriteLoad

ELASTIC = ElasticsearchTarget(
    type="elasticsearch", hosts=["http://es1:9200"], user="retl", password="secret"
)
MYSQL = MysqlTarget(type="mysql", host="db1", port=3307, user="retl", password="secret")


def answers(monkeypatch, name, *results):
    left = list(results)

    def look(*_):
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    where = target_system if name == "look_at_writes" else lock_waits
    monkeypatch.setattr(where, name, look)


def test_only_writes_that_were_rejected_since_the_last_look_count(monkeypatch):
    loads = [WriteLoad(rejected=900), WriteLoad(rejected=900), WriteLoad(rejected=912, queued=3)]
    answers(monkeypatch, "look_at_writes", *loads)
    look = system_of(ELASTIC).view("shop/orders")
    assert [look(7).rejecting for _ in loads] == [
        "",
        "",
        "12 writes were rejected since the last look, 3 writes wait in its queues",
    ]


def test_bulk_requests_are_statements_that_run(monkeypatch):
    answers(monkeypatch, "look_at_writes", WriteLoad(running=(64.0, 2.0), blind="x"))
    view = system_of(ELASTIC).view("shop/orders")(7)
    assert [s.seconds for s in view.statements] == [64.0, 2.0]
    assert (view.name, view.blind) == ("Elasticsearch es1:9200", "x")


def test_a_target_that_does_not_answer_says_why_and_no_password(monkeypatch):
    answers(monkeypatch, "look_at_writes", TransientError("no answer in time"))
    answers(monkeypatch, "look", TransientError("no connection"))
    for settings, error in ((ELASTIC, "no answer in time"), (MYSQL, "no connection")):
        view = system_of(settings).view("shop/orders")(7)
        assert view.error == error
        assert "secret" not in repr(view)


def test_rows_changed_so_far_are_what_moves_in_mysql(monkeypatch):
    seen = Connections(recorded=(5,), open=(5,), gone=(6,), modified=((5, "trx", 100),))
    answers(monkeypatch, "look", seen)
    view = system_of(MYSQL).view("shop/orders")(7)
    assert view.name == "MySQL db1:3307"
    assert (view.open, view.gone, view.movement) == (1, (6,), ((5, "trx", 100),))
