"""What is kept of alarms in the cluster, so that whoever sends next goes on where the last stopped.

What cannot be read is left out: an alarm that still holds is raised again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar, cast

from setl.alarms.judgement import AlarmKey
from setl.operate.units import duration

_T = TypeVar("_T")

# Field → its name in ZooKeeper, where that is another one.
_STORED_NAMES = {"last_sent_at": "told", "hint": "way_out"}

_TEXT = 300  # characters of a text

EventKind = Literal["firing", "repeated", "recovered", "restarted", "test"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is wrong, or was until a moment ago. All times are seconds since 1970 UTC.

    Attributes:
        key: which one.
        since: since when it is so.
        fired: when it was raised; 0.0 while it has not lasted long enough.
        last_sent_at: when a message about it was written last; 0.0 if none was.
        calm: since when it is so no more; 0.0 while it is.
        severity: see `setl.alarms.judgement.Judgement`.
        text: what is wrong, as it was told last.
        hint: what to do.
    """

    key: AlarmKey
    since: float
    fired: float = 0.0
    last_sent_at: float = 0.0
    calm: float = 0.0
    severity: str = "warning"
    text: str = ""
    hint: str = ""

    def lasts(self, now: float) -> str:
        """For how long it has been so; and for how long all has been well, until it is over."""
        return lasts_for(self.since, self.calm, now)


def lasts_for(since: float, calm: float, now: float) -> str:
    """See `Alarm.lasts`: what is raised still may be fixed already."""
    well = f", well for {duration(now - calm)}" if calm else ""
    return f"{duration(now - since)}{well}"


@dataclass(frozen=True, slots=True)
class Event:
    """What is told of an alarm.

    Attributes:
        kind: what happened.
        key: to which alarm.
        severity: of the alarm.
        text: what is wrong, or was.
        hint: what to do.
        since: since when, seconds since 1970 UTC.
    """

    kind: EventKind
    key: AlarmKey
    severity: str
    text: str
    hint: str
    since: float


@dataclass(frozen=True, slots=True)
class Notice:
    """One message: everything that came of one look.

    Attributes:
        id: the same however often it is sent.
        at: when it was written, seconds since 1970 UTC.
        events: what it tells.
        delivered: names of the receivers that have it.
    """

    id: str
    at: float
    events: tuple[Event, ...]
    delivered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Silence:
    """Alarms of which nothing is to be told for a while.

    Attributes:
        id: its name.
        until: when it ends, seconds since 1970 UTC.
        channel: of this channel; "" for any, and for nodes.
        pipeline: of this pipeline; "" for any.
        rule: of this rule; "" for any.
        by: who asked for it.
        reason: why.
    """

    id: str
    until: float
    channel: str = ""
    pipeline: str = ""
    rule: str = ""
    by: str = ""
    reason: str = ""

    @property
    def about(self) -> str:
        """What it covers, for people."""
        name = f"{self.channel}/{self.pipeline}" if self.pipeline else self.channel
        return f"{name or 'anything'}" + (f" ({self.rule})" if self.rule else "")

    def covers(self, key: AlarmKey, now: float) -> bool:
        """Whether nothing is to be told of this alarm now."""
        pairs = ((self.channel, key.channel), (self.pipeline, key.pipeline), (self.rule, key.rule))
        return now < self.until and all(mine in ("", its) for mine, its in pairs)


@dataclass(frozen=True, slots=True)
class AlarmState:
    """Everything that is kept.

    Attributes:
        alarms: alarms that are raised, or may be soon.
        notices: messages that some receiver has not got yet, the oldest first.
        restarts: when pipelines were started again after an error, within the last hour, by
            ``channel/pipeline``.
    """

    alarms: tuple[Alarm, ...] = ()
    notices: tuple[Notice, ...] = ()
    restarts: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "alarms": [_plain(alarm) for alarm in self.alarms],
            "notices": [
                {
                    "id": notice.id,
                    "at": notice.at,
                    "events": [_plain(event) for event in notice.events],
                    "delivered": list(notice.delivered),
                }
                for notice in self.notices
            ],
            "restarts": {name: list(times) for name, times in self.restarts.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AlarmState:
        """Inverse of `to_json`; leaves out what it cannot read."""
        restarts: dict[str, tuple[float, ...]] = {}
        for name, times in _mapping(value.get("restarts")).items():
            restarts[name] = tuple(t for t in _list(times) if isinstance(t, int | float))
        return cls(
            tuple(_read(map(_alarm, _list(value.get("alarms"))))),
            tuple(_read(map(_notice, _list(value.get("notices"))))),
            restarts,
        )


def silences_to_json(silences: Iterable[Silence]) -> dict[str, Any]:
    """Silences as plain JSON values."""
    return {"silences": [asdict(silence) for silence in silences]}


def silences_from_json(value: Mapping[str, Any]) -> tuple[Silence, ...]:
    """Inverse of `silences_to_json`; leaves out what it cannot read."""
    return tuple(_read(map(_silence, _list(value.get("silences")))))


def cut(text: str) -> str:
    """A text, not longer than is kept."""
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def _plain(value: Alarm | Event) -> dict[str, Any]:
    stored = {**asdict(value), "key": list(value.key)}
    return {_STORED_NAMES.get(name, name): each for name, each in stored.items()}


def _read(found: Iterable[_T | None]) -> list[_T]:
    return [each for each in found if each is not None]


def _alarm(value: Any) -> Alarm | None:
    try:
        since, fired, last_sent_at, calm = (
            float(value[n]) for n in ("since", "fired", "told", "calm")
        )
        severity, text, hint = (str(value[n]) for n in ("severity", "text", "way_out"))
        return Alarm(_key(value["key"]), since, fired, last_sent_at, calm, severity, text, hint)
    except (KeyError, TypeError, ValueError):
        return None


def _event(value: Any) -> Event | None:
    try:
        severity, text, hint = (str(value[name]) for name in ("severity", "text", "way_out"))
        kind = cast("EventKind", str(value["kind"]))
        return Event(kind, _key(value["key"]), severity, text, hint, float(value["since"]))
    except (KeyError, TypeError, ValueError):
        return None


def _notice(value: Any) -> Notice | None:
    try:
        events = tuple(_read(map(_event, _list(value["events"]))))
        delivered = tuple(str(name) for name in _list(value["delivered"]))
        return Notice(str(value["id"]), float(value["at"]), events, delivered) if events else None
    except (KeyError, TypeError, ValueError):
        return None


def _silence(value: Any) -> Silence | None:
    try:
        names = ("channel", "pipeline", "rule", "by", "reason")
        return Silence(
            str(value["id"]), float(value["until"]), *(str(value[name]) for name in names)
        )
    except (KeyError, TypeError, ValueError):
        return None


def _key(value: Any) -> AlarmKey:
    rule, channel, pipeline, subject = value
    return AlarmKey(str(rule), str(channel), str(pipeline), str(subject))


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
