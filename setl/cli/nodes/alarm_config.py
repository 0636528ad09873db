"""The part of a node's configuration file that says who is told of alarms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from setl.alarms.settings import AlarmSettings, MailSettings, WebhookSettings
from setl.channel.fields.checks import Duration, Host, Port, Text
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw
from setl.channel.text.references import has_reference
from setl.channel.text.strict_model import StrictModel, problem
from setl.systems.tls_findings import stays_here


def _address(value: str) -> str:
    if not has_reference(value) and not re.fullmatch(r"[^\s@,<>]+@[^\s@,<>]+", value):
        raise problem("must be an e-mail address, such as dba@example.org")
    return value


def _webhook(value: str) -> str:
    # With a path and a query, which often hold a secret; other addresses of setl have none.
    if not has_reference(value) and not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", value):
        raise problem("must be a URL such as https://alarms.example.org/setl, without an account")
    return value


MailAddress = Annotated[str, AfterValidator(_address)]


class WebhookConfig(StrictModel):
    """An HTTP address that gets messages."""

    url: Annotated[str, AfterValidator(_webhook)] = Field(repr=False)
    secret: str = Field(default="", repr=False)
    token: str = Field(default="", repr=False)
    ca: str = ""

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """A token is not sent in plain; a secret only signs, and is not sent at all."""
        url = raw.get("url")
        if not (raw.get("token") and isinstance(url, str)):
            return
        parts = urlsplit(url.lower())
        if parts.scheme == "http" and not stays_here(parts.hostname or ""):
            # Told at the token, whose value no message repeats: an address often holds a secret.
            yield ("token",), "needs a `url` with https://, since it would go in plain"


class MailConfig(StrictModel):
    """The mail server that gets messages, and the addresses they go to."""

    host: Host
    port: Port | None = None
    sender: MailAddress = Field(alias="from")
    to: list[MailAddress] = Field(min_length=1)
    user: str = ""
    password: str = Field(default="", repr=False)
    tls: Literal["none", "starttls", "tls"] = "starttls"
    ca: str = ""

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """A password is not sent in plain."""
        if raw.get("user") and raw.get("tls") == "none":
            yield ("tls",), "cannot be `none` with `user`, since the password would go in plain"


class AlarmConfig(StrictModel):
    """Who is told of alarms."""

    cluster: Text = "setl"
    webhooks: list[WebhookConfig] = Field(default_factory=list[WebhookConfig])
    mail: MailConfig | None = None
    disk_free_percent: float = Field(default=10.0, ge=0, lt=100)
    every: Duration = 5.0
    survey_every: Duration = 300.0

    def settings(self) -> AlarmSettings:
        """The same as values without pydantic."""
        mail = self.mail
        ports = {"none": 25, "starttls": 587, "tls": 465}
        return AlarmSettings(
            cluster=self.cluster,
            webhooks=tuple(
                WebhookSettings(each.url, each.secret, each.token, each.ca)
                for each in self.webhooks
            ),
            mail=None
            if mail is None
            else MailSettings(
                mail.host,
                mail.port or ports[mail.tls],
                mail.sender,
                tuple(mail.to),
                mail.user,
                mail.password,
                mail.tls,
                mail.ca,
            ),
            least_disk_free=self.disk_free_percent / 100,
            every=self.every,
            survey_every=self.survey_every,
        )
