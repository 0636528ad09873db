"""Which pipelines that stopped with an error are to be started again without anybody. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from setl.alarms.alarm_state import Alarm
from setl.alarms.facts import PipelineFacts

_HOUR = 3600.0


class DueRestart(NamedTuple):
    """A restart that is due.

    Attributes:
        channel: the channel.
        pipeline: the pipeline.
        number: which one it is within the last hour, from 1.
        limit: how many there may be.
        error: what the pipeline stopped with.
    """

    channel: str
    pipeline: str
    number: int
    limit: int
    error: str


def within_an_hour(
    restarts: Mapping[str, tuple[float, ...]], now: float
) -> dict[str, tuple[float, ...]]:
    """The restarts that still count."""
    recent = {name: tuple(t for t in times if now - t < _HOUR) for name, times in restarts.items()}
    return {name: times for name, times in recent.items() if times}


def due_restarts(
    facts: Iterable[PipelineFacts],
    alarms: Iterable[Alarm],
    restarts: Mapping[str, tuple[float, ...]],
    now: float,
) -> Iterator[DueRestart]:
    """Pipelines that stopped with an error some time ago, and may be started again.

    Never of a channel that an operator has paused or stopped, and never one whose position the
    source has lost: that does not are absorbed itself.

    Args:
        facts: what is known now.
        alarms: the alarms as they are now.
        restarts: what was started again before, by ``channel/pipeline``.
        now: seconds since 1970 UTC.
    """
    stopped = {
        (alarm.key.channel, alarm.key.pipeline): alarm.fired
        for alarm in alarms
        if alarm.key.rule == "stopped" and alarm.fired
    }
    for each in facts:
        fired = stopped.get((each.channel, each.pipeline))
        wanted, figures = each.rules.restart, each.figures or {}
        if wanted is None or fired is None or each.wanted != "START":
            continue
        if figures.get("state") != "failed" or (each.retention and each.retention.lost):
            continue
        times = within_an_hour(restarts, now).get(f"{each.channel}/{each.pipeline}", ())
        last = max((fired, *times))
        if len(times) < wanted.times and now - last >= wanted.after:
            error = str(figures.get("error") or "")
            yield DueRestart(each.channel, each.pipeline, len(times) + 1, wanted.times, error)
