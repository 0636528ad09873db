"""The node's figures and alarms as Prometheus metrics, collected when somebody asks.

Each table is three series. Prometheus keeps each of them, so a channel of ten thousand tables must
not become thirty thousand series unasked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from arbiter.values import PipelineId
from setl.log import fields
from setl.model.histogram import Histogram
from setl.model.table_rows import OTHERS, ByTable, TableRows
from setl.node.alarm_status import AlarmStatus
from setl.node.status import NodeStatus, PipelineStatus
from setl.run.measured.distributions import MEASURES, Distributions
from setl.run.measured.figures import RunState
from setl.run.measured.pace import Stage

_log = logging.getLogger(__name__)

MOST_TABLES = 100
"""Tables of a pipeline that have series of their own, unless a node is told otherwise."""

_LABELS = ("channel", "pipeline")


class TableSeries:
    """Makes the series; remembers of which pipelines it has told that there are too many tables."""

    def __init__(self, most: int = MOST_TABLES) -> None:
        """Series of at most so many tables of each pipeline; 0 counts all tables together."""
        self._most = most
        self._warned: set[tuple[str, str, int]] = set()

    def collected(self, lines: Sequence[PipelineStatus]) -> Iterator[Metric]:
        """The families."""
        rows = CounterMetricFamily(
            "setl_table_rows",
            "Rows written for changes in the stream, by table and kind",
            labels=[*_LABELS, "table", "kind"],
        )
        beyond = GaugeMetricFamily(
            "setl_table_limit_reached",
            "1 if tables are counted together since there are too many, else 0",
            labels=_LABELS,
        )
        for line in lines:
            tables = bounded(line.figures.tables, self._most)
            key = [line.channel, line.pipeline]
            for name, counted in tables.items():
                for kind in ("upserts", "deletes", "contested"):
                    rows.add_metric([*key, name, kind], getattr(counted, kind))
            if line.mine:
                beyond.add_metric(key, float(OTHERS in tables))
                if OTHERS in tables:
                    self._add_metrics(line)
        yield rows
        yield beyond

    def _add_metrics(self, line: PipelineStatus) -> None:
        key = line.channel, line.pipeline, line.epoch
        if key in self._warned:
            return
        # Of this pipeline only the leadership that is now.
        self._warned = {each for each in self._warned if each[:2] != key[:2]} | {key}
        _log.warning(
            "tables beyond a limit are counted together in metrics",
            extra=fields(
                pipeline=f"{line.channel}/{line.pipeline}",
                limit=self._most,
                table=OTHERS,
                hint="--metrics-tables raises the limit",
            ),
        )


def bounded(tables: ByTable, most: int) -> ByTable:
    """The tables counted first, as they are, and all others together.

    Which are first never changes while a leadership lasts, so no series goes backwards.
    """
    own = {name: rows for name, rows in tables.items() if name != OTHERS}
    if len(own) <= most:
        return tables
    remaining = dict(islice(own.items(), most))
    rest = (rows for name, rows in tables.items() if name not in remaining)
    return {**remaining, OTHERS: sum(rest, TableRows())}


MeasuredHere = Mapping[PipelineId, Distributions]
"""What was measured on this node, by pipeline."""


def histograms_of(pipelines: MeasuredHere) -> Iterator[Metric]:
    """One family for each measure; a pipeline has series of what was measured on this node."""
    for measure in MEASURES:
        labels = ["channel", "pipeline", *([measure.label] if measure.label else [])]
        family = HistogramMetricFamily(measure.name, measure.text, labels=labels)
        for pipeline, found in pipelines.items():
            for (measured, label), histogram in sorted(found.items(), key=lambda item: item[0][1]):
                if measured.name == measure.name and histogram.counts:
                    key = [pipeline.channel, pipeline.pipeline, *([label] if measure.label else [])]
                    family.add_metric(key, _buckets(histogram), histogram.total)
        yield family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each bound with how many values are not above it."""
    bounds = (*map(repr, histogram.bounds), "+Inf")
    below = accumulate(map(float, histogram.counts))
    return list(zip(bounds, below, strict=True))


_COUNTERS = {
    "rows_applied": "Row changes applied, before compaction",
    "rows_redelivered": "Row changes applied again after a change of leadership",
    "rows_loopback": "Row changes dropped because this channel wrote them",
    "echoes_dropped": "Transactions dropped because this channel wrote them",
    "echoes_replicated": "Transactions of this channel that were not dropped; 0 unless marks are"
    " meddled with",
    "upserts": "Rows or documents written, after compaction",
    "deletes": "Deletes sent, after compaction",
    "stale": "Writes refused because the target has a newer version",
    "ddl_replicated": "Schema changes of the source replicated to the target",
    "ddl_ignored": "Schema changes of the source that were ignored",
    "statements_skipped": "Statements that the source logged instead of rows, skipped",
    "batches": "Batches acknowledged",
    "loads": "Spark jobs that loaded batches",
    "dead_lettered": "Faulty rows put aside",
    "retries": "Rollbacks of all unacknowledged batches",
}

CONTACTS = {"connected": 1, "suspended": 2, "lost": 3}
"""Numbers of `setl_contact`, 0 for any other. Dashboards know them: never renumber, only add."""

STATES = {
    RunState.STANDBY: 1,
    RunState.TAKING: 2,
    RunState.RUNNING: 3,
    RunState.RETRYING: 4,
    RunState.SUSPENDED: 5,
    RunState.PAUSED: 6,
    RunState.FAILED: 7,
    RunState.STOPPED: 8,
}
"""Numbers of `setl_state`, 0 for any other. Dashboards know them: never renumber, only add."""


class NodeCollector(Collector):
    """Turns a node's status into metrics; labels are channel and pipeline."""

    def __init__(
        self,
        status: Callable[[], NodeStatus],
        silent: Callable[[], float] | None = None,
        measured: Callable[[], MeasuredHere] | None = None,
        *,
        most_tables: int = MOST_TABLES,
    ) -> None:
        """Collect from a node.

        Args:
            status: what the node knows and does.
            silent: seconds since the session with the arbiter was last surely alive.
            measured: histograms of the pipelines; None for none.
            most_tables: tables of a pipeline that have series of their own.
        """
        self._status = status
        self._silent = silent
        self._measured = measured
        self._tables = TableSeries(most_tables)

    def collect(self) -> Iterator[Metric]:
        """See `prometheus_client.registry.Collector`."""
        status = self._status()
        yield from self._of_node(status)
        yield from _of_leaderships(status.pipelines)
        yield _of_ability(status)
        yield from _of_stages(status.pipelines)
        yield _of_conflicts(status.pipelines)
        yield from _of_table_loads(status.pipelines)
        yield from _of_verification(status.pipelines)
        yield from self._tables.collected(status.pipelines)
        yield from histograms_of(self._measured() if self._measured is not None else {})
        for name, text in _COUNTERS.items():
            family = CounterMetricFamily(f"setl_{name}", text, labels=_LABELS)
            for line in status.pipelines:
                family.add_metric([line.channel, line.pipeline], getattr(line.figures, name))
            yield family

    def _of_node(self, status: NodeStatus) -> Iterator[Metric]:
        memory = GaugeMetricFamily(
            "setl_memory_bytes", "Memory of the node's processes (PSS)", labels=["process"]
        )
        for name in ("driver", "jvm", "workers"):
            memory.add_metric([name], float(getattr(status.memory, name)))
        yield memory
        numbers = ", ".join(f"{number} {name}" for name, number in CONTACTS.items())
        yield GaugeMetricFamily(
            "setl_contact", f"Contact with ZooKeeper: {numbers}", CONTACTS.get(status.contact, 0)
        )
        if self._silent is not None:
            yield GaugeMetricFamily(
                "setl_last_contact_seconds",
                "Since the session with ZooKeeper was last surely alive",
                self._silent(),
            )
        servers = GaugeMetricFamily(
            "setl_zookeeper_server_answers",
            "1 if a server of ZooKeeper answers, 0 if it is lost; with several only",
            labels=["server"],
        )
        for server in status.zookeeper:
            if server.answers is not None:
                servers.add_metric([server.address], float(server.answers))
        yield servers


def _of_ability(status: NodeStatus) -> Metric:
    able = GaugeMetricFamily(
        "setl_able", "1 if the node is warm and lacks nothing to lead it, else 0", labels=_LABELS
    )
    for line in status.pipelines:
        able.add_metric([line.channel, line.pipeline], float(status.warm and not line.not_ready))
    return able


def _of_leaderships(lines: Sequence[PipelineStatus]) -> Iterator[Metric]:
    numbers = ", ".join(f"{number} {state.value}" for state, number in STATES.items())
    leads = GaugeMetricFamily("setl_leader", "1 where this node leads", labels=_LABELS)
    epoch = GaugeMetricFamily("setl_epoch", "Epoch of the leadership", labels=_LABELS)
    state = GaugeMetricFamily("setl_state", f"What it does here: {numbers}", labels=_LABELS)
    paused = GaugeMetricFamily("setl_paused", "1 while the channel is paused", labels=_LABELS)
    lag = GaugeMetricFamily("setl_lag_seconds", "Commit to applied", labels=_LABELS)
    pending = GaugeMetricFamily("setl_pending_batches", "Not yet acknowledged", labels=_LABELS)
    buffered = GaugeMetricFamily("setl_buffered_bytes", "Read, not yet applied", labels=_LABELS)
    held_back = CounterMetricFamily(
        "setl_held_back_seconds",
        "Time in which nothing was read since what was read before had not been applied",
        labels=_LABELS,
    )
    behind = GaugeMetricFamily("setl_behind_records", "Not yet applied", labels=_LABELS)
    waiting = GaugeMetricFamily("setl_dead_letters", "Faulty rows that wait", labels=_LABELS)
    shared = GaugeMetricFamily(
        "setl_reads_with_others",
        "1 where other pipelines read on the same connection",
        labels=_LABELS,
    )
    families: list[Any] = [leads, epoch, state, paused, lag, pending, behind, waiting]
    families += [buffered, held_back, shared]
    for line in lines:
        key = [line.channel, line.pipeline]
        leads.add_metric(key, float(line.mine))
        epoch.add_metric(key, float(line.epoch))
        state.add_metric(key, float(STATES.get(line.figures.state, 0)))
        paused.add_metric(key, float(line.figures.state is RunState.PAUSED))
        pending.add_metric(key, float(line.figures.pending))
        waiting.add_metric(key, float(line.figures.dead_letters))
        buffered.add_metric(key, float(line.figures.buffered_bytes))
        held_back.add_metric(key, line.figures.held_back_seconds)
        shared.add_metric(key, float(line.figures.reads_with_others))
        if line.figures.behind is not None:
            behind.add_metric(key, float(line.figures.behind))
        if line.figures.lag is not None:
            lag.add_metric(key, line.figures.lag)
    yield from families


def _of_table_loads(lines: Sequence[PipelineStatus]) -> Iterator[Metric]:
    active = GaugeMetricFamily(
        "setl_table_load_active", "1 while whole tables are loaded", labels=_LABELS
    )
    rows = GaugeMetricFamily(
        "setl_table_load_rows", "Rows read by the last load of whole tables", labels=_LABELS
    )
    expected = GaugeMetricFamily(
        "setl_table_load_expected_rows",
        "Rows that there are to read in all, as the source estimates them",
        labels=_LABELS,
    )
    rate = GaugeMetricFamily(
        "setl_table_load_rows_per_second", "How fast whole tables are read now", labels=_LABELS
    )
    size = GaugeMetricFamily(
        "setl_table_load_bytes_per_second",
        "The same in bytes at the source, as it estimates them",
        labels=_LABELS,
    )
    left = GaugeMetricFamily(
        "setl_table_load_left_seconds", "Until all is read at this rate", labels=_LABELS
    )
    gave_way = GaugeMetricFamily(
        "setl_table_load_throttle_count",
        "How often the load waited because of a limit, in this leadership",
        labels=_LABELS,
    )
    for line in lines:
        load, key = line.figures.table_load, [line.channel, line.pipeline]
        active.add_metric(key, float(load is not None and not load.ended))
        rows.add_metric(key, float(load.rows if load else 0))
        if load is None:
            continue
        rate.add_metric(key, load.rows_per_second)
        size.add_metric(key, load.bytes_per_second)
        gave_way.add_metric(key, float(load.throttle_count))
        if load.rows_expected is not None:
            expected.add_metric(key, float(load.rows_expected))
        if load.seconds_left is not None:
            left.add_metric(key, load.seconds_left)
    yield from (active, rows, expected, rate, size, left, gave_way)


def _of_verification(lines: Sequence[PipelineStatus]) -> Iterator[Metric]:
    """Of pipelines that are verified while they run; others have no series of these."""
    gauges = {
        "differences": "Known keys that differ between source and target",
        "age_seconds": "Seconds since the last complete pass ended, or since the first began",
        "coverage_ratio": "Fraction of the current or last pass that is complete",
        "failing": "1 while nothing can be compared because of an error",
        "left_out_tables": "Tables that could not be compared in this pass",
    }
    counters = {
        "rows": "Rows of the source compared with the target",
        "found": "Keys found to differ, including those repaired since",
        "repaired": "Keys that differed and were repaired",
    }
    gauge = {
        name: GaugeMetricFamily(f"setl_verification_{name}", text, labels=_LABELS)
        for name, text in gauges.items()
    }
    counter = {
        name: CounterMetricFamily(f"setl_verification_{name}", text, labels=_LABELS)
        for name, text in counters.items()
    }
    for line in lines:
        verification, key = line.figures.verification, [line.channel, line.pipeline]
        if verification is None:
            continue
        gauge["differences"].add_metric(key, float(verification.differences))
        gauge["coverage_ratio"].add_metric(key, verification.coverage)
        gauge["failing"].add_metric(key, float(bool(verification.error)))
        gauge["left_out_tables"].add_metric(key, float(verification.tables_left_out))
        if verification.age is not None:
            gauge["age_seconds"].add_metric(key, verification.age)
        for name, family in counter.items():
            family.add_metric(key, float(getattr(verification.counters, name)))
    yield from gauge.values()
    yield from counter.values()


def _of_conflicts(lines: Sequence[PipelineStatus]) -> Metric:
    conflicts = CounterMetricFamily(
        "setl_conflicts",
        "Rows changed on both sites, by whose row stayed: source or target",
        labels=[*_LABELS, "winner"],
    )
    for line in lines:
        key = [line.channel, line.pipeline]
        conflicts.add_metric([*key, "source"], line.figures.conflicts_source)
        conflicts.add_metric([*key, "target"], line.figures.conflicts_target)
    return conflicts


def _of_stages(lines: Sequence[PipelineStatus]) -> Iterator[Metric]:
    """Where runs are, and which stand still: one series of each for every run."""
    stage = GaugeMetricFamily(
        "setl_stage_seconds", "Since the run came to its stage", labels=[*_LABELS, "stage"]
    )
    stalled = GaugeMetricFamily(
        "setl_stalled",
        "1 while nothing advances, with the stage to blame and why, else 0",
        labels=[*_LABELS, "stage", "reason"],
    )
    for line in lines:
        figures, key = line.figures, [line.channel, line.pipeline]
        if figures.stage is Stage.NONE:
            continue
        stage.add_metric([*key, figures.stage.value], figures.stage_seconds)
        why = [figures.stalled_stage, figures.stalled_reason]
        stalled.add_metric([*key, *why], float(bool(figures.stalled)))
    families: list[Any] = [stage, stalled]
    yield from families


class AlarmCollector(Collector):
    """Turns what a node knows of alarms into metrics; only the one that sends has any raised."""

    def __init__(self, status: Callable[[], AlarmStatus]) -> None:
        """Collect from a node's status."""
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """See `prometheus_client.registry.Collector`."""
        status = self._status()
        yield GaugeMetricFamily(
            "setl_alarm_sender", "1 on the node that sends alarms", float(status.sends)
        )
        raised = GaugeMetricFamily(
            "setl_alarm_firing",
            "1 for each alarm that is raised, on the node that sends alarms",
            labels=["rule", "channel", "pipeline", "subject", "severity"],
        )
        for alarm in status.firing:
            raised.add_metric(
                [alarm.rule, alarm.channel, alarm.pipeline, alarm.subject, alarm.severity], 1.0
            )
        yield raised
        failures = CounterMetricFamily(
            "setl_alarm_send_failures",
            "Attempts to send a message that failed",
            labels=["receiver"],
        )
        failing = GaugeMetricFamily(
            "setl_alarm_receiver_failing",
            "1 while a receiver takes no messages",
            labels=["receiver"],
        )
        for name in status.receivers:
            failures.add_metric([name], float(status.failures.get(name, 0)))
            failing.add_metric([name], float(name in status.failing))
        yield from (failures, failing)
        yield CounterMetricFamily(
            "setl_alarm_messages_dropped", "Messages that were given up", float(status.dropped)
        )
