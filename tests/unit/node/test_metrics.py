from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from setl.node.ensemble import ServerSeen
from setl.node.metrics import CONTACTS, STATES, NodeCollector
from setl.node.status import NodeStatus, PipelineStatus
from setl.run.measured.figures import (
    Figures,
    RunState,
    TableLoadFigures,
    VerificationFigures,
    VerifiedSoFar,
)
from setl.run.measured.pace import Stage

LABELS = {"channel": "shop", "pipeline": "orders"}


def collected(figures, contact="connected", mine=True, **known):
    line = PipelineStatus("shop", "orders", "n1", 7, mine, "leads", figures)
    status = NodeStatus("n1", "1", contact, True, 0.0, (line,), **known)
    registry = CollectorRegistry()
    registry.register(NodeCollector(lambda: status, lambda: 1.5))
    return registry


RUNS = Figures(state=RunState.RUNNING, stage=Stage.LOAD, stage_seconds=4.5, seconds={"load": 9.0})


def test_the_numbers_of_states_and_contacts_never_change():
    # Dashboards and alerts know them. A new one gets a new number at the end.
    assert {state.value: number for state, number in STATES.items()} == {
        "standby": 1,
        "taking over": 2,
        "running": 3,
        "retrying": 4,
        "suspended": 5,
        "paused": 6,
        "failed": 7,
        "stopped": 8,
    }
    assert CONTACTS == {"connected": 1, "suspended": 2, "lost": 3}
    assert set(STATES) == set(RunState)


@pytest.mark.parametrize(("contact", "number"), [("connected", 1), ("lost", 3), ("other", 0)])
def test_contact(contact, number):
    registry = collected(RUNS, contact)
    assert registry.get_sample_value("setl_contact") == number
    assert registry.get_sample_value("setl_last_contact_seconds") == 1.5


def test_servers_of_zookeeper_of_which_something_is_known():
    seen = (ServerSeen("zk1:2181", True), ServerSeen("zk2:2181", False), ServerSeen("zk3:2181"))
    registry = collected(RUNS, zookeeper=seen)
    reported = [
        registry.get_sample_value("setl_zookeeper_server_answers", {"server": each.address})
        for each in seen
    ]
    assert reported == [1, 0, None]


def test_a_run_that_goes_on():
    registry = collected(RUNS)
    assert registry.get_sample_value("setl_state", LABELS) == 3
    assert registry.get_sample_value("setl_paused", LABELS) == 0
    assert registry.get_sample_value("setl_leader", LABELS) == 1
    assert registry.get_sample_value("setl_stage_seconds", {**LABELS, "stage": "load"}) == 4.5
    none = {**LABELS, "stage": "", "reason": ""}
    assert registry.get_sample_value("setl_stalled", none) == 0


def test_a_load_of_tables():
    load = TableLoadFigures(
        "x", "reading", rows=500, rows_per_second=100.0, rows_expected=2000,
        bytes_per_second=2e6, seconds_left=15.0, throttle_count=3,
    )  # fmt: skip
    registry = collected(replace(RUNS, table_load=load))
    reported = {
        name: registry.get_sample_value(f"setl_table_load_{name}", LABELS)
        for name in (
            "active", "rows", "expected_rows", "rows_per_second", "bytes_per_second",
            "left_seconds", "throttle_count",
        )
    }  # fmt: skip
    assert list(reported.values()) == [1, 500, 2000, 100.0, 2e6, 15.0, 3]
    assert collected(RUNS).get_sample_value("setl_table_load_left_seconds", LABELS) is None


def test_a_run_that_stalls_has_one_series_that_says_why():
    stalled = replace(
        RUNS, stalled="long text", stalled_stage="load", stalled_reason="waiting for lock"
    )
    registry = collected(stalled)
    why = {**LABELS, "stage": "load", "reason": "waiting for lock"}
    assert registry.get_sample_value("setl_stalled", why) == 1
    series = [s for m in registry.collect() if m.name == "setl_stalled" for s in m.samples]
    assert len(series) == 1


def test_a_node_is_able_if_it_is_warm_and_lacks_nothing():
    def able(*, warm, not_ready=""):
        line = PipelineStatus("shop", "orders", "", 0, False, "waits", Figures(), not_ready)
        status = NodeStatus("n1", "1", "connected", warm, 0.0, (line,))
        registry = CollectorRegistry()
        registry.register(NodeCollector(lambda: status))
        return registry.get_sample_value("setl_able", LABELS)

    assert [able(warm=True), able(warm=False), able(warm=True, not_ready="a variable")] == [1, 0, 0]


def test_a_standby_has_no_stage():
    registry = collected(Figures(state=RunState.PAUSED), mine=False)
    assert registry.get_sample_value("setl_paused", LABELS) == 1
    names = {s.name for m in registry.collect() for s in m.samples}
    assert not names & {"setl_stalled", "setl_stage_seconds"}


def test_a_pipeline_that_is_verified_has_series_for_alarms_and_others_have_none():
    reported = VerificationFigures(
        "comparing",
        coverage=0.25,
        age=12.5,
        differences=3,
        tables_left_out=1,
        error="gone",
        counters=VerifiedSoFar(rows=900, found=5, repaired=2),
    )
    registry = collected(replace(RUNS, verification=reported))
    names = {
        "differences": 3, "age_seconds": 12.5, "coverage_ratio": 0.25, "failing": 1,
        "left_out_tables": 1, "rows_total": 900, "found_total": 5, "repaired_total": 2,
    }  # fmt: skip
    for name, value in names.items():
        assert registry.get_sample_value(f"setl_verification_{name}", LABELS) == value
    others = {s.name for m in collected(RUNS).collect() for s in m.samples}
    assert not any(name.startswith("setl_verification") for name in others)
