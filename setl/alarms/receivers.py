"""Who is told of alarms, as the configuration of a node says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from setl.alarms.alarm_state import Notice
from setl.alarms.mail import Mail
from setl.alarms.settings import AlarmSettings
from setl.alarms.webhook import Webhook

SEND_SECONDS = 10.0
"""How long one attempt to send may take, or with mail each answer in it."""


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


def receivers_of(settings: AlarmSettings, node: str) -> Sequence[Receiver]:
    """All receivers, with names of their own; nothing is connected yet."""
    found: list[Receiver] = [
        Webhook(each, cluster=settings.cluster, node=node, seconds=SEND_SECONDS)
        for each in settings.webhooks
    ]
    if settings.mail is not None:
        found.append(Mail(settings.mail, cluster=settings.cluster, node=node, seconds=SEND_SECONDS))
    return _distinct(found)


def _distinct(found: list[Receiver]) -> Sequence[Receiver]:
    """Two webhooks of one host are distinguished by their numbers."""
    names = [receiver.name for receiver in found]
    for at, receiver in enumerate(found):
        if names.count(names[at]) > 1 and isinstance(receiver, Webhook):
            receiver.name = f"{names[at]} ({names[: at + 1].count(names[at])})"
    return found
