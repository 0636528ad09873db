"""The node's figures as Prometheus metrics, collected when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from setl.node.http import NodeStatus

_COUNTERS = {
    "rows_applied": "Row changes applied, before compaction",
    "rows_redelivered": "Row changes applied again after a change of leadership",
    "rows_loopback": "Row changes dropped because this channel wrote them",
    "upserts": "Rows or documents written, after compaction",
    "deletes": "Deletes sent, after compaction",
    "stale": "Writes refused because the target holds something newer",
    "batches": "Batches acknowledged",
    "loads": "Spark jobs that loaded batches",
    "retries": "Rollbacks of everything unacknowledged",
}


class NodeCollector(Collector):
    """Turns a node's status into metrics; labels are channel and pipeline."""

    def __init__(self, status: Callable[[], NodeStatus]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """See `prometheus_client.registry.Collector`."""
        status = self._status()
        labels = ["channel", "pipeline"]
        leads = GaugeMetricFamily("setl_leader", "1 where this node leads", labels=labels)
        epoch = GaugeMetricFamily("setl_epoch", "Epoch of the leadership", labels=labels)
        lag = GaugeMetricFamily("setl_lag_seconds", "Commit to applied", labels=labels)
        pending = GaugeMetricFamily("setl_pending_batches", "Not yet acknowledged", labels=labels)
        families: list[Any] = [leads, epoch, lag, pending]
        for line in status.pipelines:
            key = [line.channel, line.pipeline]
            leads.add_metric(key, float(line.mine))
            epoch.add_metric(key, float(line.epoch))
            pending.add_metric(key, float(line.figures.pending))
            if line.figures.lag is not None:
                lag.add_metric(key, line.figures.lag)
        for name, text in _COUNTERS.items():
            family = CounterMetricFamily(f"setl_{name}", text, labels=labels)
            for line in status.pipelines:
                family.add_metric([line.channel, line.pipeline], getattr(line.figures, name))
            families.append(family)
        yield from families
