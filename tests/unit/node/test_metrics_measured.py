"""Histograms and counters by table, as Prometheus reads them."""

import json
import logging
import time
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from arbiter.values import PipelineId
from setl.model.batch import Batch
from setl.model.histogram import STATEMENT_SECONDS, Histogram
from setl.model.loaded import Loaded
from setl.model.table_rows import OTHERS, TableRows
from setl.node.metrics import NodeCollector
from setl.node.status import NodeStatus, PipelineStatus, as_json
from setl.run.measured.distributions import MEASURES, STAGE
from setl.run.measured.figures import Figures, VerificationFigures
from setl.run.measured.pace import Stage
from setl.run.measured.progress import Progress
from tests.monitoring import promtool
from tests.unit.select.fakes import ManualClock

LABELS = {"channel": "shop", "pipeline": "orders"}


def status_of(figures, epoch=7):
    line = PipelineStatus("shop", "orders", "n1", epoch, True, "leads", figures)
    return NodeStatus("n1", "1", "connected", True, 0.0, (line,))


def registry_of(figures, measured=None, **bounds):
    registry, here = CollectorRegistry(), {PipelineId(*LABELS.values()): measured or {}}
    registry.register(
        NodeCollector(lambda: status_of(figures), lambda: 1.5, lambda: here, **bounds)
    )
    return registry


def batch(number, rows, size, opened=10.0, closed=10.2):
    nowhere: Any = None
    return Batch(number, 7, [], nowhere, rows, size, opened=opened, closed=closed)


@pytest.fixture
def measured():
    progress = Progress(ManualClock())
    progress.took([batch(1, 400, 90_000), batch(2, 20_000, 5 << 20)], 0.7)
    progress.loaded(
        Loaded(
            rows=20_400,
            seconds=0.4,
            transform_seconds=0.2,
            statements=Histogram.of([0.003, 0.004, 7.0], STATEMENT_SECONDS),
            tables={"shop.orders": TableRows(20_000, 300, 100)},
        )
    )
    progress.add_time("extract", 0.003)
    progress.sample_lag(0.08)
    return progress


def test_histograms_count_values_up_to_each_bound(measured):
    value = registry_of(Figures(), measured.measured()).get_sample_value
    name = "setl_statement_duration_seconds"
    assert value(f"{name}_count", LABELS) == 3
    assert value(f"{name}_sum", LABELS) == pytest.approx(7.007)
    for bound, count in {"0.0025": 0, "0.005": 2, "10.0": 3}.items():
        assert value(f"{name}_bucket", {**LABELS, "le": bound}) == count
    assert value(f"{name}_bucket", {**LABELS, "le": "+Inf"}) == 3
    assert value("setl_batch_rows_bucket", {**LABELS, "le": "500.0"}) == 1
    assert value("setl_batch_bytes_sum", LABELS) == 90_000 + (5 << 20)
    assert value("setl_load_rows_count", LABELS) == 1
    assert value("setl_commit_to_visible_seconds_bucket", {**LABELS, "le": "0.1"}) == 1
    stages = ("select", "extract", "transform", "load")
    counts = [value("setl_stage_duration_seconds_count", {**LABELS, "stage": s}) for s in stages]
    assert counts == [2, 1, 1, 1]
    assert value("setl_stage_duration_seconds_sum", {**LABELS, "stage": "select"}) == (
        pytest.approx(0.4)
    )


def test_a_load_of_nothing_is_no_time_of_a_stage():
    progress = Progress(ManualClock())
    progress.loaded(Loaded())
    assert not any(measure is STAGE for measure, _ in progress.measured())


def test_tables_beyond_the_limit_are_counted_together_and_reported_once(caplog):
    many = {f"shop.t{n}": TableRows(1, 2, 3) for n in range(5)}
    figures = [Figures(tables=many)]
    collector = NodeCollector(lambda: status_of(figures[0]), most_tables=3)
    registry = CollectorRegistry()
    registry.register(collector)
    caplog.set_level(logging.WARNING)
    caplog.clear()

    def rows(table, kind="upserts"):
        return registry.get_sample_value(
            "setl_table_rows_total", {**LABELS, "table": table, "kind": kind}
        )

    assert [rows("shop.t0"), rows("shop.t2"), rows("shop.t3"), rows(OTHERS)] == [1, 1, None, 2]
    assert rows(OTHERS, "deletes") == 4
    assert registry.get_sample_value("setl_table_limit_reached", LABELS) == 1
    # What was counted alone stays so, and nothing goes back.
    figures[0] = Figures(tables={**many, "shop.t4": TableRows(9), OTHERS: TableRows(5)})
    assert [rows("shop.t0"), rows(OTHERS)] == [1, 15]
    reported = [r for r in caplog.records if "counted together" in r.message]
    assert len(reported) == 1
    assert reported[0].setl["limit"] == 3


def test_within_the_limit_nothing_is_reported(caplog):
    registry = registry_of(Figures(tables={"shop.t": TableRows(4, 1)}), most_tables=1)
    kinds = {k: registry.get_sample_value(
        "setl_table_rows_total", {**LABELS, "table": "shop.t", "kind": k}
    ) for k in ("upserts", "deletes", "contested")}  # fmt: skip
    assert kinds == {"upserts": 4, "deletes": 1, "contested": 0}
    assert registry.get_sample_value("setl_table_limit_reached", LABELS) == 0
    assert not caplog.records


def test_the_page_is_as_prometheus_wants_it(measured):
    reported = VerificationFigures("comparing", age=1.0)
    full = replace(measured.figures(), verification=reported, stage=Stage.LOAD, lag=0.5, behind=3)
    text = generate_latest(registry_of(full, measured.measured())).decode()
    assert {m.name for m in MEASURES} <= {
        line.split(" ")[2] for line in text.split("\n") if "# T" in line
    }
    promtool("check", "metrics", given=text)


def test_status_as_json_is_what_the_values_are(measured):
    figures = replace(
        measured.figures(), verification=VerificationFigures("comparing", age=1.0), lag=0.5
    )
    status = status_of(figures)

    def plain(items):
        return {name: each.value if isinstance(each, Enum) else each for name, each in items}

    as_dataclasses_say = asdict(status, dict_factory=plain)
    assert json.dumps(as_json(status)) == json.dumps(as_dataclasses_say)


def test_what_is_measured_costs_microseconds_a_load():
    progress, batches = Progress(ManualClock()), [batch(n, 100, 1000) for n in range(4)]
    statements = Histogram.of([0.01] * 4, STATEMENT_SECONDS)
    started = time.process_time()
    for _ in range(300):
        progress.took(batches, 0.1)
        progress.loaded(Loaded(rows=400, statements=statements))
    assert (time.process_time() - started) / 300 < 0.005, "seconds a load of four batches"
