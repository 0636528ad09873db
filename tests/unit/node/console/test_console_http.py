"""The console through a real socket: who may do what, and what is kept of it."""

import http.client
import json
import re
from contextlib import contextmanager

import pytest
import yaml

from arbiter.values import ChannelState, SignalKind, SignalState
from setl.load.deadletters.dead_letter import State
from setl.node.console import editor
from setl.node.http.authentication import FREE_ATTEMPTS
from setl.operate.applying import revision_of
from setl.operate.starting import Readiness
from setl.systems.finding import Finding
from setl.systems.mysql.target_system import MysqlTargetSystem
from tests.letters import MemoryDeadLetters, letter
from tests.unit.node.console.browsing import FILE, Browser, outcomes
from tests.unit.node.http_node import THERE, TOKEN, Node
from tests.waiting import eventually

# -- what strangers see -----------------------------------------------------------------------


def test_browsers_get_a_page_and_programs_the_index(node, browser):
    page = browser.get("/")
    assert page.headers["Content-Type"].startswith("text/html")
    assert b"shop/there" in page.body
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        assert "GET /health" in node.ask("GET", "/", headers=accept).json["paths"]


@pytest.mark.parametrize(
    "path",
    ["/", "/console/channels/shop", "/console/pipelines/shop/there", "/console/actions",
     "/console/login", "/console/nowhere", "/console/pipelines/shop/nowhere",
     "/console/static/console.css", "/console/events?of=nowhere"],
)  # fmt: skip
def test_every_answer_stores_browsers_in_bounds(browser, path):
    reply = browser.get(path)
    if reply.code == 404 and reply.headers["Content-Type"] == "application/json":
        return  # what nothing serves at all is no page
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "same-origin"
    assert b"<script>" not in reply.body
    assert b" style=" not in reply.body
    assert b" on" + b"click" not in reply.body


def test_pages_ask_for_nothing_elsewhere(browser):
    for path in ("/", "/console/pipelines/shop/there"):
        text = browser.get(path).body.decode()
        for address in re.findall(r'(?:src|href|action)="([^"]*)"', text):
            assert address.startswith(("/", "#", "http://n2")), address


@pytest.mark.parametrize(
    ("figures", "shown"),
    [({"rows_total": 4711, "position": "binlog.000001:4"}, "4,711"), ({"error": "refused"}, "")],
)
def test_a_leader_that_has_found_no_checkpoint_does_not_say_how_much_is_applied(
    node, browser, figures, shown
):
    node.lead(**figures)
    page = browser.get("/console/pipelines/shop/there").body.decode()
    (found,) = re.findall(r"<dt>rows applied</dt>\s*<dd>([^<]*)", page)
    assert "".join(re.findall("[0-9,]", found)) == shown


def test_names_and_errors_are_escaped(node, browser):
    node.lead(error="<script>alert(1)</script>")
    browser.log_in()
    text = browser.get("/").body.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_without_a_session_there_are_no_actions(node, browser):
    text = browser.get("/console/pipelines/shop/there").body.decode()
    assert "Switchover" not in text
    assert "Log in" in text
    for fields in ({}, {"csrf": "guess"}):
        form = {"what": "pause", "on": "shop", **fields}
        assert browser.post("/console/do", form).code == 401
    assert node.operator.channels.one("shop").state is ChannelState.START
    assert outcomes(node) == []


def test_without_a_token_on_the_node_nobody_gets_in(node, browser):
    node.token = ""
    assert browser.log_in(token="").code == 403
    assert browser.log_in().code == 403
    assert b"read-only" in browser.get("/").body


def test_the_console_can_be_switched_off(node, browser):
    node.console = False
    assert "paths" in browser.get("/").json
    assert browser.get("/console/actions").code == 404
    assert browser.log_in().code == 404


# -- log-in -----------------------------------------------------------------------------------


def test_the_cookie_is_for_this_site_and_no_script(anna):
    assert "httponly" in anna.attributes.lower()
    assert "samesite=strict" in anna.attributes.lower()
    assert TOKEN not in anna.attributes
    assert b"Log out" in anna.get("/").body


def test_wrong_tokens_are_refused_logged_and_soon_slowed_down(node, browser, caplog):
    for wrong in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "ü"):
        assert browser.log_in(token=wrong).code == 401
    assert not browser.cookie
    assert FREE_ATTEMPTS == 5
    refused = browser.log_in()  # the right one, too, for whoever guesses does not learn it
    assert refused.code == 429
    node.cluster.clock.advance(0.7)
    assert b"from 127.0.0.1. Try again in 1 s." in browser.log_in().body
    reported = [r.setl for r in caplog.records if r.message == "wrong token at the console"]
    assert reported == [{"client": "127.0.0.1"}] * FREE_ATTEMPTS
    node.cluster.clock.advance(2)
    assert browser.log_in().code == 303


def test_a_form_whose_session_is_over_does_nothing_and_leads_back_to_its_page(node, anna):
    host = node.server.address.removeprefix("http://")
    csrf, page = anna.csrf(), f"http://{host}/console/pipelines/shop/there"
    anna.cookie = ""
    form = {"csrf": csrf, "what": "pause", "on": "shop"}
    refused = anna.post("/console/do", form, Referer=page)
    assert refused.code == 401
    text = refused.body.decode()
    assert "Nothing was done: your session is over" in text
    onward = re.findall(r'href="(/console/login[^"]*)"', text)
    assert onward == ["/console/login?next=/console/pipelines/shop/there"] * 2
    assert anna.get(onward[0]).code == 200
    for other in (
        {},
        {"Referer": "http://evil.example/x"},
        {"Referer": f"http://{host}/console/do"},
    ):
        text = anna.post("/console/do", form, **other).body.decode()
        assert set(re.findall(r'href="(/console/login[^"]*)"', text)) == {"/console/login?next=/"}
    assert outcomes(node) == []


def test_who_has_no_javascript_is_reported_that_pages_grow_old(browser):
    assert b"<noscript>" in browser.get("/").body
    assert b"<noscript>" not in browser.get("/console/login").body


def test_after_the_log_in_nobody_is_led_to_another_site(browser):
    for evil in ("https://evil.example/", "//evil.example/", "\\\\evil.example", "javascript:x"):
        assert browser.log_in(next=evil).headers["Location"] == "/"
    onward = browser.log_in(next="/console/channels/shop").headers["Location"]
    assert onward == "/console/channels/shop"


def test_a_session_ends_with_the_log_out(anna):
    cookie = anna.cookie
    assert anna.post("/console/logout", {"csrf": anna.csrf()}).code == 303
    anna.cookie = cookie
    assert b"Log out" not in anna.get("/").body


# -- acting -----------------------------------------------------------------------------------


def test_a_form_of_another_site_or_session_is_refused(node, anna):
    other = Browser(node)
    other.log_in()
    good = {"what": "pause", "on": "shop", "csrf": anna.csrf()}
    assert anna.post("/console/do", {**good, "csrf": other.csrf()}).code == 403
    assert anna.post("/console/do", {**good, "csrf": ""}).code == 403
    assert anna.post("/console/do", good, **{"Sec-Fetch-Site": "cross-site"}).code == 403
    assert anna.post("/console/do", good, Origin="https://evil.example").code == 403
    assert anna.post("/console/login", {"token": TOKEN}, Origin="null").code == 403
    assert node.operator.channels.one("shop").state is ChannelState.START
    assert anna.post("/console/do", good, **{"Sec-Fetch-Site": "same-origin"}).code == 303
    assert node.operator.channels.one("shop").state is ChannelState.PAUSE


def test_an_action_is_done_reported_and_stored(node, anna):
    reply = anna.do("pause", "shop")
    assert (reply.code, reply.headers["Location"]) == (303, "/console/channels/shop")
    node.look()
    page = anna.get("/console/channels/shop").body.decode()
    assert "channel shop is set to PAUSE" in page
    assert "channel shop is set to PAUSE" not in anna.get("/console/channels/shop").body.decode()
    (stored,) = node.operator.actions.all()
    assert (stored.what, stored.on) == ("pause", "shop")
    assert stored.by == "anna (127.0.0.1), console of n1"
    assert stored.outcome.startswith("channel shop is set to PAUSE")
    node.cluster.clock.advance(5)
    assert "anna (127.0.0.1)" in anna.get("/console/actions").body.decode()
    assert "anna" not in Browser(node).get("/console/actions").body.decode()


def test_a_refusal_is_reported_and_stored(node, anna):
    node.operator.channels.set_state(node.operator.channels.one("shop"), ChannelState.STOP)
    anna.do("resume", "shop")
    assert "the channel shop is stopped" in anna.get("/console/channels/shop").body.decode()
    ((what, on, outcome),) = outcomes(node)
    assert (what, on) == ("resume", "shop")
    assert outcome.startswith("not done: the channel shop is stopped")


def test_what_interrupts_is_asked_first_in_the_words_of_the_command(node, anna, monkeypatch):
    asked = anna.do("switchover", "shop/there", to="n2")
    assert asked.code == 200
    assert "switch shop/there over to n2, demoting current leader n1?" in asked.body.decode()
    assert not node.operator.signals.all(THERE)
    assert outcomes(node) == []
    monkeypatch.setattr("setl.node.console.actions.forms.PATIENCE", 0.01)
    assert anna.do("switchover", "shop/there", to="n2", sure="yes").code == 303
    eventually(lambda: node.operator.signals.all(THERE))
    (signal,) = node.operator.signals.all(THERE)
    assert (signal.kind, signal.to, signal.leader) == (SignalKind.SWITCHOVER, "n2", "n1")
    assert "is under way" in anna.get("/console/pipelines/shop/there").body.decode()
    assert outcomes(node) == [("switchover", "shop/there", "")]
    node.operator.signals.answer(THERE, signal, SignalState.DONE, "handed over")
    eventually(lambda: outcomes(node)[0][2] == "switchover of shop/there: handed over")


def test_a_load_is_asked_of_the_leader(node, anna):
    anna.do("load", "shop/there", table="s.t", where="id < 5", sure="yes")
    (load,) = node.operator.loads.all(THERE)
    assert (load.value["tables"], load.value["where"]) == (["s.t"], "id < 5")
    assert [s.kind for s in node.operator.signals.all(THERE)] == [SignalKind.LOADS]
    anna.do("load", "shop/there", where="id < 5", sure="yes")
    assert "a condition needs one table" in outcomes(node)[-1][2]
    anna.do("load-cancel", "shop/there", sure="yes")
    assert node.operator.loads.all(THERE)[0].value["state"] == "cancelled"


@pytest.mark.parametrize(
    ("what", "on", "code"),
    [("pause", "nowhere", 404), ("switchover", "shop/nowhere", 404), ("pause", "shop/there", 404),
     ("format", "shop", 400), ("", "", 400)],
)  # fmt: skip
def test_what_is_not_there_cannot_be_acted_on(node, anna, what, on, code):
    assert anna.do(what, on).code == code
    assert outcomes(node) == []


def test_forms_are_bounded(anna):
    large = {"csrf": "x", "what": "pause", "on": "x" * (1 << 20)}
    assert anna.post("/console/do", large).code == 413
    assert anna.ask("POST", "/console/do", b"{}", {"Content-Type": "application/json"}).code == 415
    many = {f"f{n}": "" for n in range(200)}
    assert anna.post("/console/do", many).code == 400


# -- dead letters and channel files -----------------------------------------------------------


def form_of(anna, text=FILE):
    """The editor's form with shop's file in it, as somebody leaves it who has typed a text."""
    page = anna.get("/console/edit/shop").body.decode()
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {**hidden, "text": text}


def edit(anna, what, text=FILE):
    return anna.post("/console/edit/shop", {**form_of(anna, text), "do": what})


def test_strangers_see_neither_rows_nor_files(browser):
    for path in ("/console/letters/shop/there", "/console/edit", "/console/edit/shop"):
        page = browser.get(path)
        assert page.code == 200
        assert b"<form" not in page.body
        assert b"Log in" in page.body
    assert browser.post("/console/edit", {"text": FILE, "do": "apply"}).code == 401
    assert browser.post("/console/faults", {"text": FILE}).code == 401


def test_a_new_file_has_a_name_that_no_channel_has(node, anna):
    assert "channel: shop-2\n" in anna.get("/console/edit").body.decode()
    node.operator.channels.put("shop-2", {"channel": "shop-2"})
    assert "channel: shop-3\n" in anna.get("/console/edit").body.decode()


def test_mistakes_are_reported_with_their_lines_while_somebody_types(anna, password):
    wrong = FILE.replace("from:", "form:").replace("name: there", "name: no/slash")
    reply = anna.post("/console/faults", {"csrf": anna.csrf(), "text": wrong}).json
    assert {(fault["line"], fault["level"]) for fault in reply} == {(3, "error"), (7, "error")}
    assert anna.post("/console/faults", {"csrf": anna.csrf(), "text": FILE}).json == []
    for number in ("0b" + "1" * 200_000, "1" + ":59" * 100_000, "9" * 5_000, "1:30"):
        text = FILE.replace("channel: ", f"channel: {number} # ", 1)
        assert text != FILE
        faults = anna.post("/console/faults", {"csrf": anna.csrf(), "text": text}).json
        (fault,) = [fault for fault in faults if fault["path"] == "channel"]
        assert fault["line"] == 1
        assert re.search("decimal number|40 digits", fault["text"])
    (broken,) = anna.post("/console/faults", {"csrf": anna.csrf(), "text": "a: [1"}).json
    assert "is not YAML" in broken["text"]


def test_a_missing_variable_is_a_mistake_on_this_node(anna):
    faults = anna.post("/console/faults", {"csrf": anna.csrf(), "text": FILE}).json
    assert {fault["line"] for fault in faults} == {4, 5}
    assert all("CONSOLE_TEST_PW is not set" in fault["text"] for fault in faults)


def test_a_file_is_applied_and_stored_in_the_log(node, anna, password):
    reply = edit(anna, "apply")
    assert (reply.code, reply.headers["Location"]) == (303, "/console/channels/shop")
    stored = node.operator.channels.one("shop")
    assert stored.state is ChannelState.START
    assert stored.definition["pipelines"][0]["source"]["password"] == "${CONSOLE_TEST_PW}"
    ((what, on, outcome),) = outcomes(node)
    assert (what, on) == ("apply", "shop")
    assert f"as revision {revision_of(stored)}, in place of " in outcome
    assert ", state START\nnot checked from here: there, " in outcome


FAULT = Finding("error", "the table does not exist", "there, source", ("Create it",), code="gone")


def test_a_running_channel_is_not_given_a_file_that_cannot_work(node, anna, password, monkeypatch):
    """As by `setl apply`: its pipelines would go on by it at once."""
    monkeypatch.setattr("setl.operate.starting.check_channel", lambda *_, **__: [FAULT])
    before = node.operator.channels.one("shop")
    page = edit(anna, "apply").body.decode()
    assert "channel shop is not stored; 1 to fix first:" in page
    assert "the table does not exist [gone]" in page
    assert node.operator.channels.one("shop").revision == before.revision
    ((*_, outcome),) = outcomes(node)
    assert outcome.startswith("not done: channel shop is not stored")
    node.operator.channels.set_state(before, ChannelState.STOP)
    assert edit(anna, "apply").code == 303


def test_a_file_that_somebody_else_has_stored_meanwhile_is_not_undone(node, anna, password):
    form = form_of(anna, FILE.replace("  - name", "  - window: 8\n    name"))
    definition = {**yaml.safe_load(FILE), "alarms": {"repeat": "1h"}}
    stored = node.operator.channels.put("shop", definition)
    planned = anna.post("/console/edit/shop", {**form, "do": "plan"}).body.decode()
    assert f"is another one since this page was opened (revision {revision_of(stored)})" in planned
    assert re.search("alarms: .*repeat.* → none", planned)
    page = anna.post("/console/edit/shop", {**form, "do": "apply"})
    assert page.code == 200
    said = page.body.decode()
    assert f"the stored file of channel shop is revision {revision_of(stored)}, and" in said
    assert f"the new one was made from revision {form['begun_with']}; nothing was stored" in said
    assert "Open the file of shop in another tab" in said
    assert "window: 8" in said
    again = anna.post("/console/edit", {**form, "begun_with": "", "do": "apply"})
    assert "there is a channel shop already" in again.body.decode()
    assert node.operator.channels.one("shop").definition == definition
    assert edit(anna, "apply").code == 303


def test_a_file_that_is_stored_while_servers_are_looked_at_is_not_undone(
    node, anna, password, monkeypatch
):
    node.operator.channels.set_state(node.operator.channels.one("shop"), ChannelState.START)
    definition = {**yaml.safe_load(FILE), "alarms": {"repeat": "1h"}}

    def looked_at(*_):
        node.operator.channels.put("shop", definition)
        return Readiness()

    monkeypatch.setattr(editor, "readiness_of_file", looked_at)
    page = edit(anna, "apply", FILE.replace("  - name", "  - window: 8\n    name"))
    assert "nothing was stored, so that nobody" in page.body.decode()
    assert node.operator.channels.one("shop").definition == definition


def test_a_file_under_another_name_is_a_new_channel_and_one_that_was_removed_is_not(
    node, anna, password
):
    text = FILE.replace("channel: shop", "channel: bank")
    assert edit(anna, "apply", text).code == 303
    assert edit(anna, "apply", text).code == 200
    page = anna.get("/console/edit/bank").body.decode()
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    node.operator.channels.remove(node.operator.channels.one("bank"))
    gone = anna.post("/console/edit/bank", {**hidden, "text": text, "do": "apply"})
    assert "there is no channel bank (any more)" in gone.body.decode()


def test_a_text_outlives_the_session_that_it_was_typed_in(node, anna, password):
    form = {**form_of(anna, FILE + "# typed for an hour\n"), "do": "apply"}
    anna.cookie = ""
    page = anna.post("/console/edit/shop", form)
    assert page.code == 401
    assert "# typed for an hour" in page.body.decode()
    assert "/console/login?next=/console/edit/shop" in page.body.decode()
    anna.log_in()
    page = anna.post("/console/edit/shop", form)  # with what the session before was given
    assert page.code == 401
    assert "# typed for an hour" in page.body.decode()
    assert anna.csrf() in page.body.decode()
    assert outcomes(node) == []


def test_a_file_with_mistakes_or_hidden_secrets_is_not_applied(node, anna, password):
    before = node.operator.channels.one("shop").revision
    for wrong in (FILE.replace("from:", "form:"), FILE.replace("${CONSOLE_TEST_PW}", "(hidden)")):
        page = edit(anna, "apply", wrong)
        assert page.code == 200
        assert b'class="error"' in page.body
    assert node.operator.channels.one("shop").revision == before
    assert outcomes(node) == []


def test_a_plan_says_what_would_change_and_what_servers_lack(node, anna, password):
    node.operator.channels.put("shop", yaml.safe_load(FILE))
    page = edit(anna, "plan", FILE + "      - from: s.u\n").body.decode()
    assert "table s.u is added" in page
    assert "table s.u is not loaded" in page
    assert "These pipelines stop cleanly and restart: there" in page
    assert "to fix first" in page  # nothing listens at port 1
    assert "hunter2" not in page


def test_secrets_in_stored_files_are_shown_to_nobody(node, anna):
    definition = yaml.safe_load(FILE.replace("${CONSOLE_TEST_PW}", "hunter2"))
    node.operator.channels.put("shop", definition)
    node.look()
    node.cluster.clock.advance(5)
    for path in ("/console/channels/shop", "/console/edit/shop"):
        page = anna.get(path).body
        assert b"hunter2" not in page
        assert b"(hidden)" in page


ROW = json.dumps(
    {
        "form": "row",
        "operation": "upsert",
        "columns": [{"name": name} for name in ("id", "name", "long", "blob", "last")],
        "values": [
            1,
            "<b>\udc80\u202e\0",
            "\U0001f600" * 70_000,
            {"bytes": "AP8="},
            "the last column",
        ],
    }
)
"""With markup, text that has no UTF-8 form, and more than fits on a page."""


@pytest.fixture
def letters(node, monkeypatch, password):
    """The dead letters of a pipeline that keeps them: two open, one of an unknown row."""
    text = FILE.replace("    tables:", "    faulty_rows: dead_letter\n    tables:")
    node.operator.channels.put("shop", yaml.safe_load(text))
    node.look()
    store = MemoryDeadLetters()

    @contextmanager
    def opened(_):
        yield store

    monkeypatch.setattr(MysqlTargetSystem, "dead_letters", opened)
    of = {"source": "s.t", "target": "s.t"}
    found = [
        letter("shop/there", 1, payload=ROW, **of),
        letter("shop/there", 2, payload="{}", **of),
        letter("shop/there", 3, payload="{}", key_hash="", key_values=None, **of),
    ]
    store.keep(found)
    return store, [each.id for each in found]


def test_dead_letters_are_shown_with_their_rows_to_those_who_are_logged_in(anna, browser, letters):
    _, ids = letters
    page = anna.get("/console/letters/shop/there").body.decode()
    assert all(ident in page for ident in ids)
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert ids[0] not in browser.get("/console/letters/shop/there").body.decode()
    assert anna.get("/console/letters/shop/nowhere").code == 404
    # Of a long value the beginning is shown, and how much there is; columns behind it are, too.
    assert "70,000 characters in all" in page
    assert "0x00ff" in page
    assert r"\udc80\u202e\x00" in page
    assert "the last column" in page
    assert len(page) < 20_000


def test_superseded_dead_letters_do_not_hide_those_that_are_open(anna, letters):
    store, ids = letters
    of = {"source": "s.t", "target": "s.t", "payload": "{}", "state": State.SUPERSEDED}
    later = [letter("shop/there", number, **of) for number in range(10, 70)]
    store.keep(later)
    page = anna.get("/console/letters/shop/there").body.decode()
    assert all(ident in page for ident in ids)
    assert not any(each.id in page for each in later)
    assert "3 open, 60 superseded" in page
    page = anna.get("/console/letters/shop/there?superseded=yes").body.decode()
    assert sum(each.id in page for each in later) == 50
    assert not any(ident in page for ident in ids)


def test_dead_letters_are_marked_for_the_leader_or_refused(node, anna, letters):
    store, (first, second, unknown) = letters
    # Paused, so that nobody is waited for.
    node.operator.channels.set_state(node.operator.channels.one("shop"), ChannelState.PAUSE)
    reply = anna.do("retry", "shop/there", **{f"letter-{first}": "yes"})
    assert reply.headers["Location"] == "/console/letters/shop/there"
    assert [store.letters[i].state for i in (first, second)] == [State.RETRY, State.OPEN]
    assert outcomes(node)[-1][2] == "shop/there: 0 loaded, 0 refused again, 1 waiting for a leader"
    anna.do("retry", "shop/there", **{f"letter-{unknown}": "yes"})
    assert "is about is not known" in outcomes(node)[-1][2]
    anna.do("retry", "shop/there", **{f"letter-{unknown}": "yes", "force": "yes"})
    assert store.letters[unknown].state is State.RETRY
    anna.do("retry", "shop/there")
    assert outcomes(node)[-1][2] == "not done: choose dead letters, or all of them"


def test_dead_letters_are_dropped_after_a_question(node, anna, letters):
    store, (first, *others) = letters
    form = {f"letter-{first}": "yes"}
    asked = anna.do("drop", "shop/there", **form)
    assert "drop 1 dead letter of shop/there?" in asked.body.decode()
    assert len(store.letters) == 3
    anna.do("drop", "shop/there", **form, sure="yes")
    assert set(store.letters) == set(others)
    assert "drop all dead letters" in anna.do("drop", "shop/there", which="all").body.decode()
    anna.do("drop", "shop/there", which="all", sure="yes")
    assert not store.letters
    assert outcomes(node)[-1] == ("drop", "shop/there", "shop/there: 2 dead letters dropped")


# -- live -------------------------------------------------------------------------------------


@contextmanager
def listening(node, cookie=""):
    """Events of a page, as a function that waits for the next one."""
    server = node.server or node.serve()
    host, port = server.address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    headers = {"Cookie": cookie} if cookie else {}
    connection.request("GET", "/console/events?of=/console/pipelines/shop/there", headers=headers)
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")

    def event():
        name = None
        while True:
            line = answer.readline().decode().strip()
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))

    yield event
    connection.close()


def test_a_page_outlives_a_node_that_has_only_just_started_again(node, browser):
    node.lead()
    known, node.snapshot = node.snapshot, None
    page = browser.get("/")
    assert "has only just started, and does not know yet which channels" in page.body.decode()
    assert "All is well" not in page.body.decode()
    assert browser.get("/console/pipelines/shop/there").code == 503
    with listening(node) as event:
        assert event() == ("old", None)  # and not that the page is gone
        node.snapshot = known
        node.cluster.clock.advance(2)
        assert eventually(lambda: event()[0] == "regions", 20)


def test_a_page_sees_its_session_end(node, anna):
    with listening(node, anna.cookie) as event:
        _, regions = event()
        assert "Log out" in regions["r-who"]
        assert "Failover" in regions["r-actions"]
        anna.post("/console/logout", {"csrf": anna.csrf()})
        while "r-who" not in (changed := event()[1] or {}):
            pass
        assert "/console/login?next=/console/pipelines/shop/there" in changed["r-who"]
        assert "Failover" not in changed["r-actions"]


def test_a_page_gets_its_regions_and_then_what_has_changed(node):
    with listening(node) as event:
        follows_a_page(node, event)


def follows_a_page(node, event):
    name, regions = event()
    assert name == "regions"
    around = {"r-who", "r-elsewhere"}
    assert set(regions) == {"r-head", "r-actions", "r-work", "r-history", *around}
    assert "http://n2/console/pipelines/shop/there" in regions["r-elsewhere"]
    assert "1.5 s" in regions["r-head"]
    node.lead(lag=77.0)
    node.cluster.clock.advance(2)
    while True:
        name, changed = event()
        if name == "regions":
            break
    assert "1 min" in changed["r-head"]
    assert "r-history" not in changed


def test_figures_over_time_come_from_whoever_led(node, browser):
    server = node.serve()
    assert server._console is not None
    recorder = server._console._recorder
    recorder.record(node.status(), 1000.0)
    other = Node(nid="n3")
    try:
        other.lead()
        elsewhere = other.serve()
        assert elsewhere._console is not None
        elsewhere._console._recorder.record(other.status(), 900.0)
        info = node.snapshot.facts.nodes["n2"]
        node.operator.nodes.announce(type(info)("n2", http=elsewhere.address, ready=True))
        node.look()
        both = browser.get("/console/series/shop/there").json
        assert both["at"] == [900.0, 1000.0]
        assert both["lag"] == [1.5, 1.5]
        assert browser.get("/console/series/shop/there?since=950").json["at"] == [1000.0]
        assert browser.get("/console/series/shop/there?own=yes").json["at"] == [1000.0]
    finally:
        other.close()
    assert browser.get("/console/series/shop/there").json["at"] == [1000.0]  # it is gone
    assert browser.get("/console/series/shop/there?since=x").code == 400
