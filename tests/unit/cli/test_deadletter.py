import json
from contextlib import contextmanager

import pymysql
import pytest

from arbiter.values import ChannelState
from setl.cli.terminal import confirmation
from setl.load.deadletters.dead_letter import State
from setl.systems.mysql.target_system import MysqlTargetSystem
from tests.letters import MemoryDeadLetters, letter
from tests.unit.cli.cluster_in_memory import AB

PIPELINE = "shop/ab"


@pytest.fixture
def store(shop, monkeypatch):
    """The letters of two pipelines; those of one keeps dead letters, as its file says."""
    tables = [{"from": "shop.*"}]
    shop.put("shop", pipelines=["ab"], tables=tables, faulty_rows="dead_letter")
    shop.put("other", pipelines=["quiet"], tables=tables)
    store = MemoryDeadLetters()

    @contextmanager
    def opened(_):
        yield store

    monkeypatch.setattr(MysqlTargetSystem, "dead_letters", opened)
    monkeypatch.setattr("setl.operate.dead_letters._POLL_SECONDS", 0.01)
    store.keep([letter(PIPELINE, n, payload='{"form": "row"}') for n in (1, 2)])
    store.keep([letter(PIPELINE, 3, state=State.SUPERSEDED, target="shop.items")])
    store.keep([letter(PIPELINE, 4, key_hash="", key_values=None)])
    store.keep([letter("other/quiet", 5)])
    return store


def ids(*numbers):
    return [letter(PIPELINE, n).id for n in numbers]


def listed(shop, capsys, *arguments):
    assert shop.run("deadletter", "list", *arguments, "-o", "json") == 0
    return [row["version"] - 1000 for row in json.loads(capsys.readouterr().out)]


def test_the_list(shop, store, capsys):
    assert listed(shop, capsys) == [1, 2, 4]
    assert listed(shop, capsys, "shop") == [1, 2, 4]
    assert listed(shop, capsys, "ab", "--all") == [1, 2, 3, 4]
    assert listed(shop, capsys, "--table", "shop.items", "--all") == [3]
    assert listed(shop, capsys, "-n", "2") == [2, 4]
    # Somebody may have gone back to `faulty_rows: stop`.
    assert listed(shop, capsys, "other/quiet") == [5]
    assert shop.run("deadletter", "list") == 0
    shown = capsys.readouterr().out
    assert ids(1)[0] in shown
    assert "not known" in shown


def test_one_letter_in_full(shop, store, capsys):
    payload = {
        "form": "row",
        "operation": "upsert",
        "columns": [{"name": "id"}, {"name": "name"}],
        "key": [0],
        "values": [7, "täxt"],
    }
    store.letters[ids(1)[0]] = letter(PIPELINE, 1, payload=json.dumps(payload))
    assert shop.run("deadletter", "show", *ids(1)) == 0
    shown = capsys.readouterr().out
    assert "täxt" in shown
    assert "fix 'it'" in shown
    assert shop.run("deadletter", "show", *ids(1), "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["payload"] == payload
    assert shop.run("deadletter", "show", "ffff") == 1


def test_a_channel_that_cannot_be_read_here_is_named_and_hides_no_letters(shop, store, capsys):
    """As where its password is not in this environment."""
    end = {"type": "mysql", "host": "db1", "user": "u", "password": "${NOT_HERE}"}
    shop.put("another", pipelines=["p"], source=end)
    assert shop.run("deadletter", "list") == 2
    reported = capsys.readouterr()
    assert ids(1)[0] in reported.out
    assert "NOT_HERE is not set (channel another)" in reported.err
    assert shop.run("deadletter", "show", *ids(1)) == 0
    assert shop.run("deadletter", "retry", *ids(1), "--timeout", "0") in {0, 1}
    assert store.letters[ids(1)[0]].state is State.RETRY
    # Nobody knows whether it has the letter.
    assert shop.run("deadletter", "show", "feedfeedfeedfeed") == 2
    assert "(channel another)" in capsys.readouterr().err


def test_a_retry_waits_for_the_leader_and_reports_the_outcome(shop, store, capsys, monkeypatch):
    shop.node("n1").leads(AB)
    mark = store.mark

    def loaded(chosen, state):
        mark(chosen, state)
        store.remove(ids(1))
        mark(ids(2), State.OPEN)

    monkeypatch.setattr(store, "mark", loaded)
    assert shop.run("deadletter", "retry", "ab", *ids(1, 2), "-o", "json") == 1
    reported = capsys.readouterr()
    outcome = json.loads(reported.out)
    assert (outcome["loaded"], outcome["refused"], outcome["waiting"]) == (1, 1, 0)
    assert "1 were refused again" in reported.err


def test_a_letter_that_is_superseded_meanwhile_is_not_loaded(shop, store, capsys, monkeypatch):
    shop.node("n1").leads(AB)
    mark = store.mark

    def overtaken(chosen, state):
        mark(ids(1), State.SUPERSEDED)
        mark(chosen, state)
        store.remove(ids(2))

    monkeypatch.setattr(store, "mark", overtaken)
    assert shop.run("deadletter", "retry", "ab", "--all") == 0
    assert "1 loaded, 0 refused again" in capsys.readouterr().out
    assert store.letters[ids(1)[0]].state is State.SUPERSEDED


def test_a_letter_that_somebody_drops_meanwhile_is_not_reported_as_loaded(
    shop, store, capsys, monkeypatch
):
    shop.node("n1").leads(AB)
    mark = store.mark

    def dropped(chosen, state):
        mark(chosen, state)
        assert shop.run("deadletter", "drop", "ab", *ids(1), "--yes") == 0
        store.remove(ids(2))

    monkeypatch.setattr(store, "mark", dropped)
    assert shop.run("deadletter", "retry", "ab", "--all", "-o", "json") == 1
    reported = capsys.readouterr()
    outcome = json.loads(reported.out[reported.out.index("{") :])
    assert (outcome["loaded"], outcome["loaded_or_dropped"], outcome["refused"]) == (0, 2, 0)
    assert "it is not known which of these were loaded" in reported.err


def test_waiting_for_a_retry_reads_no_rows(shop, store, monkeypatch):
    """Each look would bring thousands of letters with their rows from the target otherwise."""
    shop.node("n1").leads(AB)
    find, states, looks = store.find, store.states, []

    def looked(*of, **options):
        looks.append(None)
        if len(looks) == 4:
            store.remove(ids(1, 2))
        return states(*of, **options)

    monkeypatch.setattr(store, "states", looked)
    read = []
    monkeypatch.setattr(store, "find", lambda *of, **o: read.append(None) or find(*of, **o))
    assert shop.run("deadletter", "retry", "ab", *ids(1, 2)) == 0
    assert len(looks) >= 4
    assert len(read) == 1


def test_a_retry_of_a_pipeline_that_does_not_run_waits_for_nobody(shop, store, capsys):
    shop.state(ChannelState.STOP)
    assert shop.run("deadletter", "retry", "ab", "--all") == 0
    reported = capsys.readouterr()
    assert "0 loaded, 0 refused again, 2 waiting" in reported.out
    assert "1 left out" in reported.err
    retried = {x.version - 1000 for x in store.letters.values() if x.state is State.RETRY}
    assert retried == {1, 2}


def test_a_retry_that_takes_too_long_is_not_done(shop, store, capsys):
    shop.node("n1").leads(AB)
    assert shop.run("deadletter", "retry", "ab", *ids(1), "--timeout", "0.1") == 1
    assert "1 are not loaded yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("numbers", "options", "status", "said"),
    [
        ((1, 3), (), 1, "is superseded"),
        ((4,), (), 1, "--force loads it"),
        ((), (), 2, "give the ids"),
        ((1,), ("--all",), 2, "give the ids"),
    ],
)
def test_what_cannot_be_loaded_again_is_refused(
    shop, store, capsys, numbers, options, status, said
):
    assert shop.run("deadletter", "retry", "ab", *ids(*numbers), *options) == status
    assert said in capsys.readouterr().err
    assert not [x for x in store.letters.values() if x.state is State.RETRY]


def test_an_unknown_row_is_loaded_by_force(shop, store):
    shop.state(ChannelState.STOP)
    assert shop.run("deadletter", "retry", "ab", *ids(4), "--force") == 0
    assert store.letters[ids(4)[0]].state is State.RETRY


def test_an_id_that_is_not_there_stops_everything(shop, store, capsys):
    for command in (("retry",), ("drop", "--yes")):
        assert shop.run("deadletter", command[0], "ab", *ids(1), "beef", *command[1:]) == 1
        assert "no dead letter beef" in capsys.readouterr().err
    assert store.letters[ids(1)[0]].state is State.OPEN


def test_letters_of_another_mapping_are_loaded_only_by_force(shop, store, capsys):
    store.keep([letter(PIPELINE, 6, target="shop.before")])
    assert shop.run("deadletter", "retry", "ab", *ids(1, 6)) == 1
    assert "maps shop.orders in another way" in capsys.readouterr().err
    assert shop.run("deadletter", "retry", "ab", "--all") == 0
    assert (
        "1 left out, whose tables the channel file maps in another way" in capsys.readouterr().err
    )
    assert store.letters[ids(6)[0]].state is State.OPEN
    assert shop.run("deadletter", "retry", "ab", *ids(6), "--force") == 0
    forced = store.letters[ids(6)[0]]
    # Without a key, so that the next leader does not ask again.
    assert (forced.state, forced.key_hash) == (State.RETRY, "")


def test_ids_tell_their_pipeline(shop, store, capsys):
    shop.state(ChannelState.STOP)
    assert shop.run("deadletter", "retry", *ids(1, 2)) == 0
    assert capsys.readouterr().out.startswith("shop/ab: 0 loaded")
    assert {x.state for x in store.find(PIPELINE, ids=ids(1, 2))} == {State.RETRY}
    assert shop.run("deadletter", "drop", *ids(1), "--yes") == 0
    assert "shop/ab: 1 dropped" in capsys.readouterr().out
    assert ids(1)[0] not in store.letters


def test_ids_that_do_not_tell_one_pipeline_are_refused(shop, store, capsys):
    shop.put("other", pipelines=["quiet"], faulty_rows="dead_letter")
    foreign = letter("other/quiet", 5).id
    assert shop.run("deadletter", "retry", *ids(1), foreign) == 2
    assert "shop/ab" in (reported := capsys.readouterr().err)
    assert "other/quiet" in reported
    assert shop.run("deadletter", "retry", *ids(1), "feedfeedfeedfeed") == 1
    assert "there is no dead letter feedfeedfeedfeed; nothing was done" in capsys.readouterr().err
    assert shop.run("deadletter", "retry", "feed") == 2
    assert "there is no pipeline 'feed'" in capsys.readouterr().err
    assert not [x for x in store.letters.values() if x.state is State.RETRY]


def test_dropping_asks_and_drops(shop, store, capsys, monkeypatch):
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(confirmation.click, "confirm", lambda *_, **__: False)
    assert shop.run("deadletter", "drop", "ab", *ids(1)) == 1
    assert ids(1)[0] in store.letters
    assert shop.run("deadletter", "drop", "ab", "--superseded", "--yes") == 0
    assert "1 dropped" in capsys.readouterr().out
    assert shop.run("deadletter", "drop", "ab", "--all", "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"pipeline": "shop/ab", "dropped": 3}
    assert list(store.letters) == [letter("other/quiet", 5).id]


def test_a_target_without_the_table_is_named_in_plain_words(shop, monkeypatch, capsys):
    """What the server says of it, error 1146, tells nobody what to do."""
    shop.put("shop", pipelines=["ab"], faulty_rows="dead_letter")
    connection = FakeConnection(pymysql.err.ProgrammingError(1146, "Table 'retl.x' doesn't exist"))
    monkeypatch.setattr("setl.systems.mysql.stored.deadletters.connect", lambda _: connection)
    assert shop.run("deadletter", "list") == 2
    reported = capsys.readouterr()
    assert reported.out == ""
    assert reported.err.startswith(
        "Error: the target has no table retl.setl_deadletter, so no faulty row was ever put aside"
        " there (server db2:3306, pipeline shop/ab). With `faulty_rows: dead_letter`"
    )
    assert "1146" not in reported.err
    assert connection.closed


class FakeConnection:
    """A server's answer that takes a table to be dropped at the right moment."""

    def __init__(self, error):
        self.error, self.closed = error, False

    def cursor(self):
        raise self.error

    def close(self):
        self.closed = True
