"""Which client reads a server's binlog: the native one, or where that refuses, our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from mysql_event_stream import MesConnectionError, MesError, MesErrorCode, PollResult

_EVENTS: Final = 256

# Settings for which the native client refuses a server, and setl need not: what it decodes itself,
# and GTIDs, without which only a server that replaced another cannot be read.
_NO_MATTER: Final = (
    "log_bin_compress",
    "binlog_transaction_compression",
    "binlog_row_value_options",
    "gtid_mode",
)
_NO_ANSWER: Final = "Failed to query"  # the connection was lost before the setting was known


class EventClient(Protocol):
    """What reads raw events; the methods are those of `mysql_event_stream.BinlogClient`."""

    @property
    def queued_bytes(self) -> int:
        """Bytes that came and were not asked for yet."""
        ...

    def connect(self) -> None:
        """Log in."""
        ...

    def start(self) -> None:
        """Ask for the stream."""
        ...

    def poll_batch(self, max_events: int = ...) -> Sequence[PollResult]:
        """The events that have come; waits for one."""
        ...

    def stop(self) -> None:
        """End the connection; from any thread."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class FallbackClient:
    """The native client, unless it refuses a server for what does not matter to setl.

    It looks at the server's settings when it connects. Sessions may choose such a setting for
    themselves, and then their events come through the native client as they are.
    """

    def __init__(self, native: EventClient, dump: EventClient) -> None:
        """Neither is connected yet."""
        self._client = native
        self._dump = dump

    @property
    def queued_bytes(self) -> int:
        """See `EventClient.queued_bytes`."""
        return self._client.queued_bytes

    def connect(self) -> None:
        """See `EventClient.connect`."""
        try:
            self._client.connect()
        except (MesError, MesConnectionError) as error:
            if error.code != MesErrorCode.VALIDATION or not _no_matter(str(error)):
                raise
            self._client.close()
            self._client = self._dump
            self._client.connect()

    def start(self) -> None:
        """See `EventClient.start`."""
        self._client.start()

    def poll_batch(self, max_events: int = _EVENTS) -> Sequence[PollResult]:
        """See `EventClient.poll_batch`."""
        return self._client.poll_batch(max_events)

    def stop(self) -> None:
        """See `EventClient.stop`."""
        self._client.stop()

    def close(self) -> None:
        """See `EventClient.close`."""
        self._client.close()


def _no_matter(text: str) -> bool:
    return _NO_ANSWER not in text and any(name in text for name in _NO_MATTER)
