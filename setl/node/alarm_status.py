"""What a node tells of alarms, and what a view of the cluster says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from setl.alarms.alarm_state import Alarm
from setl.node.cluster.view import ClusterView


@dataclass(frozen=True, slots=True)
class FiringAlarm:
    """An alarm that is raised.

    Attributes:
        rule: see `setl.alarms.judgement.AlarmKey`; so with the next three.
        channel: the channel.
        pipeline: the pipeline.
        subject: what else it is about.
        severity: ``critical`` or ``warning``.
        text: what is wrong.
        hint: what to do.
        since: since when, seconds since 1970 UTC.
        silenced: whether a silence covers it.
        calm: since when all is well, until the alarm is over; 0.0 while it is not.
    """

    rule: str
    channel: str
    pipeline: str
    subject: str
    severity: str
    text: str
    hint: str
    since: float
    silenced: bool = False
    calm: float = 0.0


@dataclass(frozen=True, slots=True)
class AlarmStatus:
    """What a node knows of alarms.

    Attributes:
        sends: whether it is the one node that decides about them.
        receivers: whom it tells.
        firing: alarms that are raised, the worst first; only known where `sends`.
        failing: receivers that take no messages, and why.
        failures: failed attempts of each receiver.
        dropped: messages that were given up.
        problem: why the last look failed, "" if it did not.
    """

    sends: bool = False
    receivers: tuple[str, ...] = ()
    firing: tuple[FiringAlarm, ...] = ()
    failing: Mapping[str, str] = field(default_factory=dict[str, str])
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    dropped: int = 0
    problem: str = ""


def firing_alarm(alarm: Alarm, *, silenced: bool) -> FiringAlarm:
    """A raised alarm as a node tells it."""
    key = alarm.key
    return FiringAlarm(
        key.rule,
        key.channel,
        key.pipeline,
        key.subject,
        alarm.severity,
        alarm.text,
        alarm.hint,
        alarm.since,
        silenced,
        alarm.calm,
    )


def firing_in(view: ClusterView) -> Sequence[Mapping[str, Any]]:
    """The alarms that are raised, as the node that sends them tells; empty if it does not answer.

    Each has the keys of `FiringAlarm`.
    """
    for section in _alarm_sections(view):
        if section.get("sends"):
            return section.get("firing") or []
    return []


def somebody_decides(view: ClusterView) -> bool:
    """Whether a node that answers decides about alarms; without one nobody knows of any."""
    return any(section.get("sends") for section in _alarm_sections(view))


def failing_in(view: ClusterView) -> Mapping[str, str]:
    """Receivers that take no messages, and why, as the node that sends tells."""
    for section in _alarm_sections(view):
        if section.get("sends"):
            return section.get("failing") or {}
    return {}


def _alarm_sections(view: ClusterView) -> Sequence[Mapping[str, Any]]:
    return [(answer or {}).get("alarms") or {} for answer in view.answers.values()]
