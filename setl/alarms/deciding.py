"""From what is wrong now and what was told before: what is to be told now. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from setl.alarms.alarm_state import Alarm, Event, EventKind, Silence, cut
from setl.alarms.judgement import AlarmKey, Judgement

MOST_ALARMS = 300
"""Alarms that are kept: all of them lie in one znode."""

_CALM = 60.0  # seconds until an alarm is over that no rule is about any more


def decide(
    judgements: Iterable[Judgement],
    alarms: Sequence[Alarm],
    silences: Sequence[Silence],
    now: float,
    unknown: Collection[AlarmKey] = (),
) -> tuple[tuple[Alarm, ...], tuple[Event, ...]]:
    """The alarms as they are now, and what is to be told of them.

    An alarm is raised when its rule has held for its `patience`, told again after `repeat`, and
    over when its rule has not held for `calm`. While a silence covers it, it is raised all the
    same and nothing is reported; if it lasts longer than the silence it is told then. That it is
    over is told whenever it was told that it was raised, during a silence too, so that no receiver
    keeps an alarm open that is over. What nobody knows changes nothing.

    Args:
        judgements: what the rules say now.
        alarms: the alarms as they were kept.
        silences: of which alarms nothing is to be reported.
        now: seconds since 1970 UTC.
        unknown: keys without a subject; of alarms of theirs that nothing is judged of, whatever
            their subject, nobody knows.

    Returns:
        The alarms to keep, `MOST_ALARMS` at most, those that are raised first; and the events, in
        the order of the judgements.
    """
    before = {alarm.key: alarm for alarm in alarms}
    after: list[Alarm] = []
    events: list[Event] = []
    for judgement in judgements:
        alarm = before.pop(judgement.key, None)
        silent = any(silence.covers(judgement.key, now) for silence in silences)
        alarm = (
            _held(judgement, alarm, now) if judgement.holds else _not_held(judgement, alarm, now)
        )
        if alarm is None:
            continue
        alarm, kind = _with_event(alarm, judgement, now, silent=silent)
        if kind:
            events.append(event_of(alarm, kind))
        if kind != "recovered" and not _over(alarm, judgement.calm, now):
            after.append(alarm)
    for left in before.values():
        if left.key._replace(subject="") in unknown:
            after.append(left)
            continue
        # Its channel is gone, or the rule does not count any more.
        alarm = replace(left, calm=left.calm or now)
        if not _over(alarm, _CALM, now):
            after += [alarm] if alarm.fired else []
        elif alarm.last_sent_at:
            events.append(event_of(alarm, "recovered"))
    after.sort(key=lambda alarm: (not alarm.fired, alarm.severity != "critical"))
    return tuple(after[:MOST_ALARMS]), tuple(events)


def firing(alarms: Iterable[Alarm], judgements: Iterable[Judgement] = ()) -> list[Alarm]:
    """The alarms that are raised, the worst first, then by what they are about.

    What is kept has the words that people were told last, hours ago perhaps. Whoever looks gets
    those of `judgements`: else "will be purged in 2 h" would still stand there an hour later.
    """
    now = {judgement.key: judgement for judgement in judgements if judgement.holds}
    raised = [
        _worded(alarm, now[alarm.key]) if alarm.key in now else alarm
        for alarm in alarms
        if alarm.fired
    ]
    return sorted(raised, key=lambda alarm: (alarm.severity != "critical", _sort_key(alarm.key)))


def event_of(alarm: Alarm, kind: EventKind) -> Event:
    """What is told of an alarm."""
    return Event(kind, alarm.key, alarm.severity, alarm.text, alarm.hint, alarm.since)


def _sort_key(key: AlarmKey) -> tuple[str, ...]:
    return key.channel, key.pipeline, key.subject, key.rule


def _held(judgement: Judgement, alarm: Alarm | None, now: float) -> Alarm:
    alarm = replace(alarm, calm=0.0) if alarm else _new(judgement, now)
    if not alarm.fired and now - alarm.since >= judgement.patience:
        alarm = replace(alarm, fired=now)
    return alarm


def _new(judgement: Judgement, now: float) -> Alarm:
    return Alarm(
        judgement.key,
        now,
        severity=judgement.severity,
        text=cut(judgement.text),
        hint=cut(judgement.hint),
    )


def _not_held(judgement: Judgement, alarm: Alarm | None, now: float) -> Alarm | None:
    if alarm is None or judgement.holds is None:
        return alarm
    return replace(alarm, calm=alarm.calm or now) if alarm.fired else None


def _with_event(
    alarm: Alarm, judgement: Judgement, now: float, *, silent: bool
) -> tuple[Alarm, EventKind | None]:
    """The alarm after what is told of it now, and what that is."""
    if alarm.calm:
        return alarm, "recovered" if alarm.last_sent_at and _over(
            alarm, judgement.calm, now
        ) else None
    if not alarm.fired or silent:
        return alarm, None
    kind: EventKind
    if not alarm.last_sent_at:
        kind = "firing"
    elif now - alarm.last_sent_at >= judgement.repeat:
        kind = "repeated"
    else:
        return alarm, None
    if judgement.holds:  # what is not known now is reported as it was known last
        alarm = _worded(alarm, judgement)
    return replace(alarm, last_sent_at=now), kind


def _worded(alarm: Alarm, judgement: Judgement) -> Alarm:
    return replace(
        alarm,
        severity=judgement.severity,
        text=cut(judgement.text),
        hint=cut(judgement.hint),
    )


def _over(alarm: Alarm, calm: float, now: float) -> bool:
    return bool(alarm.calm) and now - alarm.calm >= calm
