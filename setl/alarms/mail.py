"""Sends messages as e-mail."""

from __future__ import annotations

import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from setl.alarms.alarm_state import Notice
from setl.alarms.message import subject_of, text_of
from setl.alarms.settings import MailSettings
from setl.errors import ConfigurationError, SetlError, TransientError

_FINAL = 500  # the first code of SMTP that says "do not try again"
_WANTS_ACCOUNT = 530
_OF_ANOTHER_HOST = (62, 64)
"""OpenSSL's codes for a certificate of another name, and of another address."""


class Mail:
    """See `setl.alarms.receivers.Receiver`."""

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
        context = self._trusted()
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

    def _trusted(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._settings.ca or None)
        except OSError as error:  # also where there is a file, and no certificate in it
            raise ConfigurationError(
                f"{self.name}: no authorities can be read from {self._settings.ca}: {error}",
                hint="Check `ca` of `mail`",
            ) from error

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
        if isinstance(error, ssl.SSLError):
            return self._unsafe(error)
        if isinstance(error, smtplib.SMTPNotSupportedError):
            return ConfigurationError(f"{what}: {error}", hint="Check `tls` of `mail`")
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            # Many a server refuses the first attempt of a stranger and takes the second.
            if any(code < _FINAL for code, _ in error.recipients.values()):
                return TransientError(f"{self.name} does not take all addresses for now")
            return ConfigurationError(f"{self.name} refuses all addresses", hint="Check `to`")
        if isinstance(error, smtplib.SMTPResponseException):
            return self._refusal(error)
        return TransientError(f"{what}: {error}")

    def _refusal(self, error: smtplib.SMTPResponseException) -> SetlError:
        what = f"{self.name}: {type(error).__name__}: {error.smtp_code}"
        account = "Check `user` and `password` of `mail`"
        if error.smtp_code < _FINAL:
            return TransientError(what)
        if isinstance(error, smtplib.SMTPAuthenticationError):
            return ConfigurationError(f"{self.name} refuses the account", hint=account)
        if error.smtp_code == _WANTS_ACCOUNT:
            return ConfigurationError(f"{self.name} wants an account, or TLS first", hint=account)
        return ConfigurationError(what, hint="Ask who runs the server")

    def _unsafe(self, error: ssl.SSLError) -> SetlError:
        if not isinstance(error, ssl.SSLCertVerificationError):
            if error.reason != "WRONG_VERSION_NUMBER":
                return TransientError(f"{self.name}: {error}")
            return ConfigurationError(
                f"{self.name} does not speak TLS at once",
                hint="Check `tls` of `mail`, which may have to be `starttls`, and `port`",
            )
        if error.verify_code in _OF_ANOTHER_HOST:
            return ConfigurationError(
                f"{self.name}: its certificate is not for this host", hint="Check `host` of `mail`"
            )
        return ConfigurationError(
            f"{self.name}: its certificate is not trusted: {error.verify_message}",
            hint="Check `ca` of `mail`",
        )
