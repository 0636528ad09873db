"""Alarms as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from setl.node.alarms.status import AlarmStatus


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
