"""Sends messages to an HTTP address, as JSON."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import urlsplit

import urllib3

from setl.alarms.alarm_state import Notice
from setl.alarms.message import body_of
from setl.alarms.settings import WebhookSettings
from setl.errors import ConfigurationError, TransientError

SIGNATURE = "Setl-Signature"
"""The header with ``sha256=`` and the HMAC-SHA256 of the body under the secret, in hexadecimal."""

_BUSY = frozenset((408, 425, 429))
_LONGEST_ANSWER = 200  # characters of an answer that are shown


class Webhook:
    """See `setl.alarms.receivers.Receiver`. Follows no redirection."""

    def __init__(
        self, settings: WebhookSettings, *, cluster: str, node: str, seconds: float
    ) -> None:
        """Nothing is connected yet.

        Args:
            settings: where to.
            cluster: the cluster's name, for the body.
            node: this node's id, for the body.
            seconds: how long one attempt may take in all.
        """
        self._settings = settings
        self._cluster = cluster
        self._node = node
        self._timeout = urllib3.Timeout(total=seconds)
        self.name = f"webhook {urlsplit(settings.url).netloc.rpartition('@')[2]}"

    def send(self, notice: Notice) -> None:
        """See `Receiver.send`."""
        body = json.dumps(body_of(notice, self._cluster, self._node), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "setl"}
        if self._settings.token:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        if self._settings.secret:
            digest = hmac.new(self._settings.secret.encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={digest}"
        try:
            with urllib3.PoolManager(1, ca_certs=self._settings.ca or None) as pool:
                answer = pool.request(
                    "POST",
                    self._settings.url,
                    body=body,
                    headers=headers,
                    timeout=self._timeout,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
                status, said = answer.status, answer.read1(_LONGEST_ANSWER)
                answer.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # The text of an error may hold the whole address.
            raise TransientError(
                f"{self.name} does not answer: {type(error).__name__}",
                hint="Check the address, and whether this node may reach it",
            ) from None
        self._check(status, said)

    def _check(self, status: int, data: bytes) -> None:
        if 200 <= status < 300:
            return
        said = data[:_LONGEST_ANSWER].decode(errors="replace").strip()
        what = f"{self.name} answers {status}" + (f": {said}" if said else "")
        if status >= 500 or status in _BUSY:
            raise TransientError(what)
        raise ConfigurationError(what, hint="Check `url`, `token` and `secret` of the webhook")
