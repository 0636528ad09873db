"""Who is told of alarms, as the configuration of a node says."""

from __future__ import annotations

from collections.abc import Sequence

from setl.alarms.mail import Mail
from setl.alarms.receiver import Receiver
from setl.alarms.settings import AlarmSettings
from setl.alarms.webhook import Webhook

SEND_SECONDS = 10.0
"""How long one attempt to send may take, or with mail each answer in it."""


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
