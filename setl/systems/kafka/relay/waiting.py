"""Waiting for Kafka: never without a limit, and over at once when the log is abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from confluent_kafka import KafkaException

from setl.errors import FencedError, TransientError
from setl.systems.kafka.errors import ClientErrors, error_of, translate

_T = TypeVar("_T")
_SLICE = 0.25
_REQUEST = 2.0


class Waiting:
    """The limit of every call of one log, and how it is cut short.

    Attributes:
        limit: seconds after which a call gives up.
        complaints: why nothing is answered, for the error that says so.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.complaints = ClientErrors()
        self._abandoned = threading.Event()

    def abandon(self) -> None:
        """Let all waits end, from any thread."""
        self._abandoned.set()

    @property
    def abandoned(self) -> bool:
        """Whether `abandon` was called."""
        return self._abandoned.is_set()

    def check(self) -> None:
        """Raise FencedError after `abandon`."""
        if self._abandoned.is_set():
            raise FencedError("the relay's leadership is over; it writes no more")

    def slices(self, what: str, length: float = _SLICE) -> Iterator[float]:
        """Seconds to wait next, again and again until the limit.

        Args:
            what: what is waited for, as an error says it: "Kafka did not …".
            length: of one wait, which is as long as `abandon` may go unnoticed.

        Raises:
            FencedError: `abandon` was called.
            TransientError: the limit is over; ConfigurationError if that is why.
        """
        deadline = time.monotonic() + self.limit
        heard = self.complaints.count
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            yield min(left, length)
        late = TransientError(f"Kafka did not {what} within {self.limit:g} s")
        raise self.complaints.instead_of(late, heard)

    def asked(self, what: str, request: Callable[[float], _T], poll: Callable[[], object]) -> _T:
        """The answer to a request that takes its limit, asked again while none comes.

        Args:
            what: see `slices`.
            request: the call; it may leave its limit early with a retriable error.
            poll: lets the client report what it complains about.

        Raises:
            SetlError: as `slices`, and any error that is not retriable, translated.
        """
        for pause in self.slices(what, _REQUEST):
            began = time.monotonic()
            try:
                return request(pause)
            except KafkaException as error:
                poll()
                kind = translate(error_of(error))
                if not isinstance(kind, TransientError):
                    raise kind from error
            # A client that refuses at once must not be asked a thousand times a second.
            self._abandoned.wait(max(0.0, min(_SLICE, pause) - (time.monotonic() - began)))
        raise AssertionError("slices end with an error")
