"""Sends messages as e-mail."""

from __future__ import annotations

import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from setl.alarms.kept import Notice
from setl.alarms.message import subject_of, text_of
from setl.alarms.settings import MailSettings
from setl.errors import ConfigurationError, SetlError, TransientError


class Mail:
    """See `setl.alarms.receiver.Receiver`."""

    def __init__(self, settings: MailSettings, *, cluster: str, node: str, seconds: float) -> None:
        """Nothing is connected yet.

        Args:
            settings: the server and the addresses.
            cluster: the cluster's name, for the subject.
            node: this node's id.
            seconds: how long each answer of the server may take.
        """
        self._settings = settings
        self._cluster = cluster
        self._node = node
        self._seconds = seconds
        self.name = f"mail {settings.host}:{settings.port}"

    def send(self, notice: Notice) -> None:
        """See `Receiver.send`."""
        try:
            with self._connected() as server:
                refused = server.send_message(self._message(notice))
        except (smtplib.SMTPException, OSError) as error:
            raise self._translated(error) from error
        if refused:  # some of several addresses; all of them would be an exception
            raise ConfigurationError(
                f"{self.name} refuses {', '.join(sorted(refused))}", hint="Check `to`"
            )

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        context = ssl.create_default_context(cafile=settings.ca or None)
        server: smtplib.SMTP
        if settings.tls == "tls":
            server = smtplib.SMTP_SSL(
                settings.host, settings.port, timeout=self._seconds, context=context
            )
        else:
            server = smtplib.SMTP(settings.host, settings.port, timeout=self._seconds)
        try:
            if settings.tls == "starttls":
                server.starttls(context=context)
            if settings.user:
                server.login(settings.user, settings.password)
        except BaseException:
            server.close()
            raise
        return server

    def _message(self, notice: Notice) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._settings.sender
        message["To"] = ", ".join(self._settings.to)
        # No header has a line break in it, whatever a name holds.
        message["Subject"] = " ".join(subject_of(notice, self._cluster).split())
        message["Date"] = format_datetime(datetime.fromtimestamp(notice.at, UTC))
        # The same id however often it is sent, so that mailboxes show it once.
        message["Message-ID"] = f"<{notice.id}@setl>" if notice.id else make_msgid("setl")
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text_of(notice, self._cluster, self._node))
        return message

    def _translated(self, error: BaseException) -> SetlError:
        what = f"{self.name}: {type(error).__name__}"
        if isinstance(error, smtplib.SMTPAuthenticationError):
            return ConfigurationError(
                f"{self.name} refuses the account", hint="Check `user` and `password` of `mail`"
            )
        if isinstance(error, smtplib.SMTPNotSupportedError):
            return ConfigurationError(f"{what}: {error}", hint="Check `tls` of `mail`")
        if isinstance(error, ssl.SSLCertVerificationError):
            return ConfigurationError(
                f"{self.name}: its certificate is not trusted", hint="Check `ca` of `mail`"
            )
        if isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= 500:
            return ConfigurationError(f"{what}: {error.smtp_code}", hint="Ask who runs the server")
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            return ConfigurationError(f"{self.name} refuses all addresses", hint="Check `to`")
        return TransientError(f"{what}: {error}")
