"""The port to whoever is told of alarms."""

from __future__ import annotations

from typing import Protocol

from setl.alarms.alarm_state import Notice


class Receiver(Protocol):
    """Somebody who gets messages.

    Order: messages are given to it in the order in which they were written, one at a time.
    Idempotence: a message may be given to it twice, with the same id; what it makes of that is
    the business of whoever reads them. Crash: a message counts as delivered when `send` returns;
    if the node ends before that was kept, another node sends it again.
    """

    @property
    def name(self) -> str:
        """What it is called in status, log and metrics; no secret is in it."""
        ...

    def send(self, notice: Notice) -> None:
        """Send one message; takes `setl.alarms.receivers.SEND_SECONDS` at most, more or less.

        Raises:
            TransientError: it was not taken; it may be later.
            ConfigurationError: it is refused, and somebody has to fix something.
        """
        ...
