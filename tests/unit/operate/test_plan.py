"""What applying a channel file would change, from two definitions alone."""

import json

import pytest

from setl.channel.reading import parse_channel, resolve_and_parse
from setl.operate.plan import creations, differences, plan_of
from setl.operate.planning import make_plan
from setl.systems.finding import Finding
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

SOURCE = {"type": "mysql", "host": "db1", "user": "u", "password": "${PW}"}
TARGET = {"type": "mysql", "host": "db2", "user": "u", "password": "${PW}"}
DEFINITION = {
    "channel": "shop",
    "pipelines": [
        {"name": "ab", "source": SOURCE, "target": TARGET, "tables": [{"from": "s.t"}]},
        {"name": "ba", "source": TARGET, "target": SOURCE, "tables": [{"from": "s.t"}]},
    ],
}


def changed(change):
    definition = json.loads(json.dumps(DEFINITION))  # nothing in it is the same object twice
    change(definition, definition["pipelines"][0])
    return definition


def reported(change, before=DEFINITION):
    found = differences(before and parse_channel(before), parse_channel(changed(change)))
    return [(c.where, c.what, c.effect, c.warns) for c in found]


def test_the_same_file_changes_nothing():
    same = parse_channel(DEFINITION)
    assert plan_of(same, same, rewritten=False).empty
    assert not plan_of(same, same, rewritten=True).changes
    assert plan_of(same, same, rewritten=True).restarted == ("ab", "ba")


def test_any_change_restarts_every_pipeline_that_was_there():
    after = parse_channel(changed(lambda d, p: d["pipelines"].append({**p, "name": "new"})))
    plan = plan_of(parse_channel(DEFINITION), after)
    assert plan.restarted == ("ab", "ba")
    assert plan_of(None, after).restarted == ()
    assert plan_of(None, after).new


@pytest.mark.parametrize(
    ("change", "where", "what", "warns"),
    [
        (lambda d, p: p.update(batch_rows=7), "ab", "batch_rows: 10000 → 7", False),
        (lambda d, p: p.update(generation=2), "ab", "generation: 1 → 2", True),
        (lambda d, p: p["source"].update(host="db9"), "ab", "the source is db9:3306", True),
        (lambda d, p: p["target"].update(password="${NEW}"), "ab", "another password", False),
        (lambda d, p: d.update(mark_id=5), "shop", "mark is another one", True),
        (lambda d, p: d.update(home="ba"), "shop", "home is ba", True),
        (
            lambda d, p: d.update(alarms={"lag": {"above": "10s"}}),
            "shop", "alarms: none → {'lag': {'above': 10.0}}", False,
        ),
        (lambda d, p: d.update(verify={"every": "6h"}), "shop", "verify: none → ", False),
        (lambda d, p: d["pipelines"].pop(), "ba", "the pipeline is removed", True),
        (lambda d, p: p["tables"].append({"from": "s.u"}), "ab", "table s.u is added", False),
        (lambda d, p: p["tables"].append({"from": "s.u"}), "ab", "s.u is not loaded", True),
        (lambda d, p: p.update(tables=[{"from": "s.u"}]), "ab", "table s.t is removed", True),
        (lambda d, p: p["tables"][0].update(where="id > 1"), "ab", "s.t: another where", False),
        (lambda d, p: p["tables"][0].update(to="s.v"), "ab", "table s.t -> s.v is added", False),
    ],
)  # fmt: skip
def test_each_change_is_reported(change, where, what, warns):
    found = reported(change)
    assert [(w, says) for w, text, _, says in found if what in text] == [(where, warns)], found


def test_no_secret_is_reported():
    found = reported(lambda d, p: p["target"].update(password="hunter2", host="db7"))
    assert "hunter2" not in str(found)


def test_loads_that_follow_are_reported_once():
    def load(_, pipeline):
        pipeline["tables"] += [{"from": "s.u", "load": True}, {"from": "s.v"}]

    found = [what for _, what, _, _ in reported(load)]
    assert "table s.u is loaded" in found
    assert "table s.u is not loaded" not in found
    assert "table s.v is not loaded" in found
    begins = reported(lambda d, p: p["source"].update(start={"load": True}), before=None)
    assert [(w, what) for w, what, _, _ in begins if "loaded" in what] == [
        ("ab", "table s.t is loaded")
    ]


def test_what_would_be_created_is_picked_from_the_check():
    makes = Finding("ok", "setl will create the table", "ab", ("CREATE TABLE t (id INT);",))
    index = Finding("ok", "setl will create the index", "ab", mapping={})
    others = [Finding("ok", "it fits", "ab"), Finding("error", "it is missing", "ab", ("x;",))]
    assert creations([makes, *others, index]) == (makes, index)


def test_the_cluster_says_what_is_there():
    arbiter = MemoryArbiter(MemoryCluster())
    environment = {"PW": "x"}

    def plan(definition, environment=environment):
        channel = resolve_and_parse(definition, {"PW": "x", "OTHER": "x"})
        return make_plan(arbiter, definition, channel, environment, ask_servers=False)

    assert plan(DEFINITION).new
    arbiter.channels.put("shop", DEFINITION)
    assert plan(DEFINITION).empty
    again = plan(changed(lambda d, p: p["source"].update(password="${OTHER}")))
    assert again.restarted == ("ab", "ba")  # nodes see another file, whatever it resolves to
    (change,) = plan(DEFINITION, {}).changes
    assert "cannot be compared" in change.what
    assert "PW is not set" in change.what
    assert not plan(DEFINITION, {}).new
