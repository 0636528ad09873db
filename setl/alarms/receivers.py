"""Who is told of alarms, as the configuration of a node says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setl.alarms.mail import Mail, MailSettings
from setl.alarms.receiver import Receiver
from setl.alarms.webhook import Webhook, WebhookSettings

SEND_SECONDS = 10.0
"""How long one attempt to send may take, or with mail each answer in it."""


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """What a node's configuration says of alarms.

    Attributes:
        cluster: the cluster's name in messages.
        webhooks: HTTP addresses that get messages.
        mail: the mail server that gets them, None for none.
        least_disk_free: part of a node's disk that must be free, from 0 to 1; 0 switches the rule
            off.
        every: seconds between two looks.
        survey_every: seconds between two questions to the same server.
    """

    cluster: str = "setl"
    webhooks: tuple[WebhookSettings, ...] = ()
    mail: MailSettings | None = None
    least_disk_free: float = 0.1
    every: float = 5.0
    survey_every: float = 300.0


def receivers_of(settings: AlarmSettings, node: str) -> Sequence[Receiver]:
    """All receivers, with names of their own; nothing is connected yet."""
    found: list[Receiver] = [
        Webhook(each, cluster=settings.cluster, node=node, seconds=SEND_SECONDS)
        for each in settings.webhooks
    ]
    if settings.mail is not None:
        found.append(Mail(settings.mail, cluster=settings.cluster, node=node, seconds=SEND_SECONDS))
    return _told_apart(found)


def _told_apart(found: list[Receiver]) -> Sequence[Receiver]:
    """Two webhooks of one host are told apart by their numbers."""
    names = [receiver.name for receiver in found]
    for at, receiver in enumerate(found):
        if names.count(names[at]) > 1 and isinstance(receiver, Webhook):
            receiver.name = f"{names[at]} ({names[: at + 1].count(names[at])})"
    return found
