"""Gives messages to receivers; each continues automatically when another does not answer."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from setl.alarms.alarm_state import Notice
from setl.alarms.receivers import Receiver
from setl.clock import Clock
from setl.errors import SetlError
from setl.log import fields
from setl.run.backoff import Backoff

_log = logging.getLogger(__name__)

GIVE_UP = 24 * 3600.0
"""Seconds after which a message that a receiver has not taken is dropped."""

MOST_EVENTS = 300
"""Events that wait, all messages together; the oldest messages are dropped beyond it."""

_FIRST, _LONGEST = 2.0, 300.0  # seconds between two attempts


class Sending:
    """The receivers of this node, and how they do. Belongs to one thread; `failing` to any."""

    def __init__(self, receivers: Sequence[Receiver], clock: Clock) -> None:
        """Nothing is sent yet."""
        self._receivers = receivers
        self._clock = clock
        source = random.Random()  # noqa: S311 - spreads attempts
        self._backoff = {r.name: Backoff(source, _FIRST, _LONGEST) for r in receivers}
        self._not_before: dict[str, float] = {}
        self._failing: dict[str, str] = {}
        self._failures = dict.fromkeys(self._backoff, 0)
        self._dropped = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the receivers."""
        return tuple(self._backoff)

    def failing(self) -> Mapping[str, str]:
        """Receivers that did not take the last message given to them, and why."""
        return dict(self._failing)

    def failures(self) -> Mapping[str, int]:
        """Failed attempts of each receiver since the start of the node."""
        return dict(self._failures)

    @property
    def dropped(self) -> int:
        """Messages that were given up since the start of the node."""
        return self._dropped

    def deliver(self, notices: Sequence[Notice]) -> tuple[Notice, ...]:
        """Give each receiver what it has not got, in order; returns what is left to deliver.

        A receiver that fails gets nothing more until its pause is over.
        """
        left = list(notices)
        for receiver in self._receivers:
            if self._clock.monotonic() < self._not_before.get(receiver.name, 0.0):
                continue
            for at, notice in enumerate(left):
                if receiver.name in notice.delivered:
                    continue
                if not self._sent(receiver, notice):
                    break
                left[at] = replace(notice, delivered=(*notice.delivered, receiver.name))
        return tuple(n for n in left if not set(self.names) <= set(n.delivered))

    def bounded(self, notices: Sequence[Notice], now: float) -> tuple[Notice, ...]:
        """Those that are still worth sending: neither too old nor too many."""
        remaining: list[Notice] = []
        events = 0
        for notice in reversed(notices):
            events += len(notice.events)
            if events > MOST_EVENTS or now - notice.at > GIVE_UP:
                self._dropped += 1
                _log.error(
                    "a message about alarms was given up",
                    extra=fields(notice=notice.id, events=len(notice.events)),
                )
                continue
            remaining.append(notice)
        return tuple(reversed(remaining))

    def _sent(self, receiver: Receiver, notice: Notice) -> bool:
        name = receiver.name
        try:
            receiver.send(notice)
        except SetlError as error:
            self._failed(name, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a defect must not end the sending to others
            _log.exception("sending failed unexpectedly", extra=fields(receiver=name))
            self._failed(name, f"unexpected {type(error).__name__}")
            return False
        if self._failing.pop(name, None) is not None:
            _log.info("a receiver of alarms takes messages again", extra=fields(receiver=name))
        self._backoff[name].succeeded()
        self._not_before.pop(name, None)
        return True

    def _failed(self, name: str, why: str) -> None:
        if name not in self._failing:
            _log.error(
                "a receiver of alarms takes no messages", extra=fields(receiver=name, error=why)
            )
        self._failing = {**self._failing, name: why}
        self._failures[name] += 1
        self._not_before[name] = self._clock.monotonic() + self._backoff[name].failed()
