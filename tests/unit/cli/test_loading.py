import json
import threading

import pytest

from arbiter.values import ChannelState, SignalKind, SignalState
from setl.channel.reading import parse_channel
from setl.cli.access.cluster import AnswerNo
from setl.cli.rows import asking, loading
from setl.cli.rows.selection import read_keys
from setl.errors import ConfigurationError
from setl.model.load_request import LoadRequest, RequestState, in_pieces
from setl.run.table_loads.requests import MAX_ENDED, StoredLoadRequests
from tests.unit.cli.cluster_in_memory import AB
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(asking, "POLL_SECONDS", 0.01)


def requests(shop, pipeline=AB):
    return StoredLoadRequests(shop.arbiter, pipeline)


def shown(shop, capsys, *arguments):
    assert shop.run(*arguments, "-o", "json") == 0
    return json.loads(capsys.readouterr().out)


class Leader(threading.Thread):
    """Answers every request, as a leader does."""

    def __init__(self, shop, state=RequestState.DONE, text="3 rows are in the target", pipeline=AB):
        super().__init__(daemon=True)
        self.requests, self.state, self.text = requests(shop, pipeline), state, text
        self.count = 0
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(0.01):
            for request in self.requests.unanswered():
                self.requests.answer(request, self.state, self.text, rows=3, at=5.0)
                self.count += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


def test_a_load_is_asked_for_and_the_leader_reported(shop, capsys):
    leader = shop.node("n1").leads(AB)
    (row,) = shown(shop, capsys, "load", "ab", "--table", "s.t", "--where", "a > 1", "--no-wait")
    assert (row["pipeline"], row["what"], row["state"]) == ("shop/ab", "s.t where a > 1", "waiting")
    (request,) = requests(shop).all()
    assert (request.tables, request.where, request.reason) == (("s.t",), "a > 1", "load")
    (signal,) = shop.arbiter.signals.all(AB)
    assert (signal.kind, signal.epoch) == (SignalKind.LOADS, leader.epoch)
    assert signal.state is SignalState.PENDING


def test_the_command_waits_for_the_outcome(shop, capsys):
    shop.node("n1").leads(AB)
    with Leader(shop):
        assert shop.run("load", "ab") == 0
    assert capsys.readouterr().out == "shop/ab load 0: 3 rows are in the target\n"


def test_a_load_that_fails_is_reported(shop, capsys):
    shop.node("n1").leads(AB)
    with Leader(shop, RequestState.FAILED, "it has no column x"):
        assert shop.run("load", "ab") == 1
    assert "load 0: it has no column x" in capsys.readouterr().err


def test_nobody_leads(shop, capsys):
    assert shop.run("load", "ab", "--no-wait") == 0
    assert "waits for a leader" in capsys.readouterr().out
    shop.state(ChannelState.STOP)
    assert shop.run("load", "ab", "--no-wait") == 0
    assert "waits until the channel shop runs" in capsys.readouterr().out
    assert shop.run("load", "ab", "--timeout", "0.05") == 1
    assert "it goes on" in capsys.readouterr().err


def test_a_load_of_a_pipeline_that_has_failed_says_what_it_waits_for(shop, capsys):
    shop.node("n1").leads(AB, state="failed", error="position lost")
    assert shop.run("load", "ab", "--timeout", "0.8") == 1
    reported = capsys.readouterr().err
    why = "waits, since the pipeline has failed; once it is fixed, `setl start shop`: position lost"
    assert reported.count(f"shop/ab {why}\n") == 1
    assert shop.run("load", "ab", "--no-wait") == 0
    assert f"; it {why}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("load", "shop"), "shop"),
        (("load", "ab", "--where", "a = 1"), "--where needs one --table"),
        (("resend", "ab", "--table", "s.t"), "either --where or --keys"),
        (("resend", "ab", "--where", "a = 1"), "--table"),
        (("load", "cancel", "ab"), "no load"),
    ],
)
def test_what_makes_no_sense_is_refused(shop, capsys, arguments, message):
    assert shop.run(*arguments) in (1, 2)
    assert message in capsys.readouterr().err
    assert requests(shop).all() == []


def test_the_list_reports_how_far_the_leader_is(shop, capsys):
    progress = {
        "id": "load-0000000000", "state": "reading", "table": "s.t", "tables_left": 2, "rows": 500,
        "rows_per_second": 100.0, "begun": 1.0, "ended": 0, "rows_expected": 2000,
        "bytes_per_second": 2e6, "seconds_left": 15.0, "throttle_count": 3, "waits_for": "",
        "table_rows": 200, "table_rows_expected": 800,
    }  # fmt: skip
    shop.node("n1").leads(AB, table_load=progress)
    assert shop.run("load", "ab", "--no-wait") == 0
    assert shop.run("load", "ab", "--no-wait") == 0
    capsys.readouterr()
    first, second = shown(shop, capsys, "load", "list", "shop")
    assert (first["state"], first["rows"], first["progress"]) == ("reading", 500, progress)
    assert (second["state"], second["progress"]) == ("waiting", None)
    assert shop.run("load", "list") == 0
    assert (
        "shop/ab 0: 500 of about 2,000 rows (25 %), 100 rows/s, 2.0 MB/s, 15 s left,"
        " now s.t: 200 of about 800 rows (25 %), 2 tables left, was throttled 3 times"
        in capsys.readouterr().out
    )


def test_loads_are_paused_resumed_and_cancelled(shop, capsys):
    for _ in range(2):
        assert shop.run("load", "ab", "--no-wait") == 0
    states = {"pause": "paused", "resume": "waiting", "cancel": "cancelled"}
    for command, state in states.items():
        capsys.readouterr()
        (row,) = shown(shop, capsys, "load", command, "ab", "1")
        assert (row["id"], row["state"]) == ("1", state)
        assert [r.state.value for r in requests(shop).all()] == ["waiting", state]
    assert shop.run("load", "pause", "ab", "7") == 1
    assert "no load 7; there are 0, 1" in capsys.readouterr().err
    assert shop.run("load", "pause", "ab") == 0
    assert [r.state.value for r in requests(shop).all()] == ["paused", "cancelled"]
    # The leader has not seen yet that it is cancelled; it stays so.
    assert shop.run("load", "resume", "ab") == 0
    assert [r.state.value for r in requests(shop).all()] == ["waiting", "cancelled"]


def test_what_has_ended_stays_as_it_is_and_the_oldest_are_removed(shop):
    stored = requests(shop)
    shop.node("n1").leads(AB)
    with Leader(shop) as leader:
        for i in range(MAX_ENDED + 5):
            assert shop.run("load", "ab", "--no-wait") == 0
            eventually(lambda i=i: leader.count > i)
    saved = stored.all()
    assert len(saved) == MAX_ENDED + 1
    assert stored.change_state(saved[0].id, RequestState.CANCELLED) == saved[0]


@pytest.mark.parametrize("table", ["s.u", "t", "T.s", ""])
def test_a_table_that_is_not_mapped_is_refused_at_once(shop, capsys, table):
    """A leader refuses it as well; but there may be none for hours."""
    assert shop.run("load", "ab", "--table", "s.t", "--table", table, "--no-wait") == 2
    assert f"shop/ab does not map {table}; name source tables" in capsys.readouterr().err
    assert shop.run("resend", "ab", "--table", table, "--where", "id > 1", "--no-wait") == 2
    assert not requests(shop).all()


def test_names_with_dots_and_patterns_are_mapped(shop):
    shop.put("dotted", pipelines=["d"], tables=[{"from": "a.b.*"}])
    assert shop.run("load", "dotted/d", "--table", "a.b.c", "--no-wait") == 0


def test_keys_of_what_has_ended_are_only_counted(shop):
    """All requests are read each time that somebody looks how far one is: twice a second."""
    stored = requests(shop)
    shop.node("n1").leads(AB)
    made = stored.add(LoadRequest(tables=("s.t",), key=("id",), keys=((1,), (2,)), sent=1.0))
    assert stored.unanswered()[0].keys == ((1,), (2,))
    for _ in range(2):
        stored.answer(made, RequestState.DONE, "2 rows are in the target", rows=2, at=2.0)
    (saved,) = stored.all()
    assert (saved.what, saved.keys, saved.narrowed) == ("2 keys of s.t", (), True)
    (value,) = (load.value for load in shop.arbiter.loads.all(AB))
    assert "keys" not in value
    assert LoadRequest.from_json(saved.id, value, saved.revision) == saved


def test_rows_are_sent_again_by_their_keys(shop, tmp_path):
    file = tmp_path / "keys.csv"
    file.write_text('id,name\n1,"a,b"\n\n2,ä\n', encoding="utf-8-sig")
    arguments = ("resend", "ab", "--table", "s.t", "--keys", str(file), "--no-wait")
    assert shop.run(*arguments) == 0
    (request,) = requests(shop).all()
    assert request.key == ("id", "name")
    assert request.keys == (("1", "a,b"), ("2", "ä"))
    assert (request.reason, request.tables) == ("resend", ("s.t",))


def test_many_keys_are_several_requests(tmp_path):
    file = tmp_path / "keys.csv"
    file.write_text("id\n" + "\n".join(map(str, range(12_000))))
    names, keys = read_keys(file)
    parts = list(in_pieces(keys))
    assert names == ("id",)
    assert [len(part) for part in parts] == [5000, 5000, 2000]
    assert [key for part in parts for (key,) in part] == list(map(str, range(12_000)))
    assert len(list(in_pieces([("x" * 100_000,)] * 10))) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "name columns"), ("id,\n1,2\n", "name columns"), ("id,b\n1\n", "line 2"),
     ('id\n"1\n', "as CSV")],
)  # fmt: skip
def test_files_that_are_no_keys(tmp_path, text, message):
    file = tmp_path / "keys.csv"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read_keys(file)


def both_ways(**mapping):
    """A channel file of two sites that both take writes."""

    def pipeline(name, source, target):
        ends = [{"type": "mysql", "host": host, "user": "u"} for host in (source, target)]
        tables = [{"from": "s.t", **mapping}, {"from": "s.free_*"}]
        return {"name": name, "source": ends[0], "target": ends[1], "tables": tables}

    return parse_channel(
        {"channel": "shop", "pipelines": [pipeline("ab", "a", "b"), pipeline("ba", "b", "a")]}
    )


@pytest.mark.parametrize(
    ("mapping", "arguments", "asked"),
    [
        ({}, ("load", "ab"), "s.t, s.free_*"),
        ({}, ("load", "ab", "--table", "s.t"), "s.t"),
        ({}, ("resend", "ab", "--table", "s.t", "--where", "a = 1"), "s.t"),
        ({"conflict": "home"}, ("load", "ab"), "s.free_*"),
        ({"conflict": "home"}, ("load", "ab", "--table", "s.t"), ""),
        ({"conflict": "home"}, ("resend", "ab", "--table", "s.t", "--where", "a = 1"), ""),
        ({"conflict": "home"}, ("resend", "ab", "--table", "s.free_1", "--where", "1"), "s.free_1"),
    ],
)
def test_rows_that_may_replace_newer_ones_are_asked_about(
    shop, capsys, monkeypatch, mapping, arguments, asked
):
    shop.node("n1").leads(AB)
    monkeypatch.setattr(loading, "stored_file", lambda _: both_ways(**mapping))
    questions = []

    def confirm(question, *, yes):
        questions.append((question, yes))
        raise AnswerNo("nothing was done")

    monkeypatch.setattr(loading, "confirm", confirm)
    code = shop.run(*arguments, "--no-wait", "--yes")
    assert code == (1 if asked else 0), capsys.readouterr().err
    if asked:
        ((question, yes),) = questions
        assert f"must not write to {asked} until" in question
        assert yes
    assert bool(requests(shop).all()) is not bool(asked), "it asks before it does anything"
