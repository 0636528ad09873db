"""Tells a service manager, such as systemd, how this process does.

The protocol is `sd_notify(3)`: datagrams of ``NAME=VALUE`` lines to the socket that the
environment names. It is a few lines, so no library stands in for it.
"""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from setl.clock import Clock
from setl.log import fields

_log = logging.getLogger(__name__)

_PINGS_PER_LIMIT = 4.0  # systemd asks for two; a busy machine may be late
_NEWS_SECONDS = 5.0
_MORE_SECONDS = 60


class ServiceManager(Protocol):
    """Who has started this process, and starts another if it fails.

    A node calls `starting` any number of times, then `ready` once, `alive` or `hangs` again and
    again, and `stopping` once. No call blocks or raises: a service manager that does not listen
    must not hold a node up. A process that crashes says nothing more, which is how its end is
    noticed.
    """

    def starting(self, sentence: str) -> None:
        """It is not ready yet, waits for what the sentence says, and wants more time for it."""
        ...

    def ready(self) -> None:
        """It has started."""
        ...

    def alive(self, sentence: Callable[[], str]) -> None:
        """It works at this moment. Without this call for long enough it counts as hanging.

        Args:
            sentence: how it does, for people; only asked for if that is to be reported.
        """
        ...

    def hangs(self, sentence: str) -> None:
        """It does not work at this moment, though it can still say why."""
        ...

    def stopping(self) -> None:
        """It ends in order, which may take a while."""
        ...


class NoServiceManager:
    """There is no service manager, or none that listens."""

    def starting(self, sentence: str) -> None:
        """See `ServiceManager.starting`."""

    def ready(self) -> None:
        """See `ServiceManager.ready`."""

    def alive(self, sentence: Callable[[], str]) -> None:
        """See `ServiceManager.alive`."""

    def hangs(self, sentence: str) -> None:
        """See `ServiceManager.hangs`."""

    def stopping(self) -> None:
        """See `ServiceManager.stopping`."""


class Systemd:
    """Sends to systemd's socket, or to that of another program with this protocol."""

    def __init__(self, address: str, limit: float | None, clock: Clock) -> None:
        """Open a socket; nothing is sent yet.

        Args:
            address: path of systemd's socket; ``@`` begins one that is no file.
            limit: seconds of silence after which systemd ends the process; None for any.
            clock: for the time since the last message.
        """
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._watched = limit is not None
        self._every = min(_NEWS_SECONDS, (limit or math.inf) / _PINGS_PER_LIMIT)
        self._clock = clock
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        self._last_status = ""
        self._last_ping: float | None = None
        self._failed = False

    def starting(self, sentence: str) -> None:
        """See `ServiceManager.starting`."""
        self._send(
            f"EXTEND_TIMEOUT_USEC={_MORE_SECONDS * 1_000_000}", *self._status_if_new(sentence)
        )

    def ready(self) -> None:
        """See `ServiceManager.ready`."""
        self._send("READY=1")

    def alive(self, sentence: Callable[[], str]) -> None:
        """See `ServiceManager.alive`; sends no more often than is needed."""
        now = self._clock.monotonic()
        if self._last_ping is None or now - self._last_ping >= self._every:
            self._last_ping = now
            self._send(
                *(("WATCHDOG=1",) if self._watched else ()), *self._status_if_new(sentence())
            )

    def hangs(self, sentence: str) -> None:
        """See `ServiceManager.hangs`."""
        self._send(*self._status_if_new(sentence))

    def stopping(self) -> None:
        """See `ServiceManager.stopping`."""
        self._send("STOPPING=1", *self._status_if_new("hands over what it leads"))

    def _status_if_new(self, sentence: str) -> tuple[str, ...]:
        line = " ".join(sentence.split())
        if line == self._last_status:
            return ()
        self._last_status = line
        return (f"STATUS={line}",)

    def _send(self, *lines: str) -> None:
        if not lines:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            # All is due again. Nothing else can be done about it.
            self._last_status, self._last_ping = "", None
            if not self._failed:
                _log.warning(
                    "the service manager cannot be notified of this process's state",
                    extra=fields(error=str(error)),
                )
            self._failed = True
        else:
            self._failed = False


def service_manager(environment: Mapping[str, str], clock: Clock) -> ServiceManager:
    """The service manager that has started this process.

    Args:
        environment: of this process: ``NOTIFY_SOCKET``, and ``WATCHDOG_USEC`` with
            ``WATCHDOG_PID``, as systemd sets them.
        clock: for the time since the last message.
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return NoServiceManager()
    return Systemd(address, _limit(environment), clock)


def _limit(environment: Mapping[str, str]) -> float | None:
    """Seconds of silence that are allowed to this very process."""
    whose, microseconds = (environment.get(f"WATCHDOG_{name}", "") for name in ("PID", "USEC"))
    if whose and whose != str(os.getpid()):
        return None
    return int(microseconds) / 1e6 if microseconds.isdigit() and int(microseconds) else None
