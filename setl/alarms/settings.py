"""What the configuration of a node says of alarms; imports nothing that takes time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where messages go.

    Attributes:
        url: the address; it may have a secret in its path, so only its host is shown.
        secret: signs the body, "" for no signature.
        token: is sent as a bearer token, "" for none.
        ca: file with the authorities that the server's certificate must come from, "" for those
            of the system.
    """

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca: str = ""


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The mail server, and who gets messages.

    Attributes:
        host: the server.
        port: its port.
        sender: the address they come from.
        to: the addresses they go to.
        user: account at the server, "" for none.
        password: its password.
        tls: ``starttls`` begins TLS on a plain connection, ``tls`` speaks it at once.
        ca: file with the authorities that the server's certificate must come from, "" for those
            of the system.
    """

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    tls: Literal["none", "starttls", "tls"] = "starttls"
    ca: str = ""


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
