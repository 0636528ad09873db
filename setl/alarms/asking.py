"""What people ask of alarms: silences, and a message to try the receivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from arbiter.arbiter import Arbiter
from arbiter.errors import Conflict
from setl.alarms.alarm_state import (
    AlarmState,
    Event,
    Notice,
    Silence,
    silences_from_json,
    silences_to_json,
)
from setl.alarms.judgement import AlarmKey

MOST_SILENCES = 200
"""Silences that are kept; the one that ends first is throttled."""

_ATTEMPTS = 5
_T = TypeVar("_T")


def stored_alarms(arbiter: Arbiter) -> AlarmState:
    """What is kept of alarms."""
    found = arbiter.alarms.read()
    return AlarmState.from_json(found[0] if found else {})


def silences_at(arbiter: Arbiter, now: float) -> tuple[Silence, ...]:
    """The silences that have not ended, the one that ends first being the first."""
    found = arbiter.alarms.silences()
    alarm_state = silences_from_json(found[0]) if found else ()
    return tuple(sorted((s for s in alarm_state if s.until > now), key=lambda s: s.until))


def silence(arbiter: Arbiter, wanted: Silence, now: float) -> None:
    """Keep a silence; those that have ended are forgotten.

    Raises:
        Conflict: others change silences all the time.
    """
    retried_on_conflict(
        lambda: _change(arbiter, lambda alarm_state: (*alarm_state, wanted)[-MOST_SILENCES:], now)
    )


def end_silence(arbiter: Arbiter, ident: str, now: float) -> Silence | None:
    """End a silence; returns it, None if there is none of this name. Raises Conflict."""
    found = next((each for each in silences_at(arbiter, now) if each.id == ident), None)
    if found is not None:
        retried_on_conflict(
            lambda: _change(
                arbiter, lambda alarm_state: tuple(s for s in alarm_state if s.id != ident), now
            )
        )
    return found


def ask_for_test(arbiter: Arbiter, ident: str, by: str, now: float) -> None:
    """Have whoever sends alarms send a message to try the receivers. Raises Conflict."""
    text = f"a test, asked for by {by}; nothing is wrong"
    event = Event("test", AlarmKey("test"), "warning", text, "", now)

    def add() -> None:
        found = arbiter.alarms.read()
        alarm_state = AlarmState.from_json(found[0] if found else {})
        after = replace(alarm_state, notices=(*alarm_state.notices, Notice(ident, now, (event,))))
        arbiter.alarms.store(after.to_json(), found[1] if found else None)

    retried_on_conflict(add)


def _change(
    arbiter: Arbiter, change: Callable[[tuple[Silence, ...]], tuple[Silence, ...]], now: float
) -> None:
    found = arbiter.alarms.silences()
    after = change(silences_at(arbiter, now))
    arbiter.alarms.store_silences(silences_to_json(after), found[1] if found else None)


def retried_on_conflict(what: Callable[[], _T]) -> _T:
    """Again if somebody else has written meanwhile; whoever sends alarms writes often."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return what()
        except Conflict:
            continue
    return what()
