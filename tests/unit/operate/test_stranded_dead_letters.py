"""What a plan says of dead letters that wait, when their pipeline or mapping changes."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from setl.channel.reading import resolve_and_parse
from setl.channel.routes.routing import Router
from setl.errors import ConfigurationError, LoginRefusedError, TransientError
from setl.load.deadletters.dead_letter import State
from setl.operate.planning import make_plan
from setl.systems.mysql.target_system import MysqlTargetSystem
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.letters import MemoryDeadLetters, letter

END = {"type": "mysql", "user": "u"}
DEFINITION = {
    "channel": "shop",
    "pipelines": [
        {
            "name": "ab",
            "source": {**END, "host": "db1"},
            "target": {**END, "host": "db2"},
            "tables": [{"from": "s.t"}, {"from": "s.u"}],
            "faulty_rows": "dead_letter",
        }
    ],
}


def mapped_by(table):
    (route,) = Router(resolve_and_parse(DEFINITION, {}).pipelines[0]).route("s", table)
    return route.mapped_by


@pytest.fixture
def store(monkeypatch):
    """Two open letters of s.t, one of s.u, and one that is superseded."""
    store = MemoryDeadLetters()

    @contextmanager
    def dead_letters(_):
        yield store

    made = [("t", State.OPEN), ("t", State.RETRY), ("t", State.SUPERSEDED), ("u", State.OPEN)]
    for number, (table, state) in enumerate(made):
        payload = json.dumps({"mapped_by": mapped_by(table)})
        name = f"s.{table}"
        made_of = {"state": state, "source": name, "target": name, "payload": payload}
        store.keep([letter("shop/ab", number, **made_of)])
    monkeypatch.setattr(MysqlTargetSystem, "dead_letters", dead_letters)
    monkeypatch.setattr("setl.operate.planning.check_channel", lambda *_, **__: [])
    return store


def reported(change, *, ask_servers=True):
    arbiter = MemoryArbiter(MemoryCluster())
    arbiter.channels.put("shop", DEFINITION)
    definition = json.loads(json.dumps(DEFINITION))
    change(definition, definition["pipelines"][0])
    channel = resolve_and_parse(definition, {})
    plan = make_plan(arbiter, definition, channel, {}, ask_servers=ask_servers)
    return [(c.what, c.effect) for c in plan.changes if "dead letter" in c.what and c.warns]


@pytest.mark.parametrize("field", [{"where": "id > 1"}, {"to": "s.x"}, {"columns": {"a": "b"}}])
def test_letters_of_a_table_that_is_mapped_in_another_way_need_force(store, field):
    ((what, effect),) = reported(lambda d, p: p["tables"][0].update(field))
    assert what == "2 open dead letters of s.t, put aside under the mapping before"
    assert "only with --force" in effect
    assert "`setl resend`" in effect


def test_letters_of_a_table_that_is_removed_need_force(store):
    ((what, _),) = reported(lambda d, p: p["tables"].pop())
    assert what == "1 open dead letter of s.u, put aside under the mapping before"


def test_a_letter_that_needs_force_already_is_no_news(store):
    for key, each in store.letters.items():
        store.letters[key] = replace(each, target="s.before")
    assert reported(lambda d, p: p["tables"].pop()) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d, p: p.update(name="ba"), "no pipeline loads them then"),
        (lambda d, p: p["target"].update(host="db3"), "they stay at db2:3306, where no command"),
        (lambda d, p: p.pop("faulty_rows"), "nothing loads them then"),
    ],
)
def test_letters_that_would_be_out_of_reach_are_reported(store, change, why):
    ((what, effect),) = reported(change)
    assert what == "3 open dead letters"
    assert effect.startswith(why)
    assert effect.endswith("Load them again before the file is applied")


def test_no_server_is_asked_where_nothing_changes_for_letters(store, monkeypatch):
    def asked(_):
        raise AssertionError("nobody has to be asked")

    monkeypatch.setattr(MysqlTargetSystem, "dead_letters", asked)
    assert reported(lambda d, p: p.update(window=7)) == []
    assert reported(lambda d, p: p["tables"].pop(), ask_servers=False) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TransientError("no connection"), ["whether dead letters wait is not known"]),
        (LoginRefusedError("no such account"), ["whether dead letters wait is not known"]),
        (ConfigurationError("no such table"), []),
    ],
)
def test_a_target_that_does_not_say(store, monkeypatch, error, words):
    def silent(_):
        raise error

    monkeypatch.setattr(MysqlTargetSystem, "dead_letters", silent)
    found = reported(lambda d, p: p["tables"].pop())
    assert [what.partition(":")[0] for what, _ in found] == words
