"""The sinks of one worker process, which outlive the tasks that use them.

A connection costs more than a small batch, so each process keeps the sinks that it has made, for
a while. A task comes with settings and gets the sink for them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence

from setl.clock import Clock, SystemClock
from setl.errors import ConfigurationError
from setl.load.sink import ConflictSink, LoadTicket, Sink, SinkSettings
from setl.model.conflict import History
from setl.model.loaded import Loaded

MAX_SINKS = 16
"""Sinks of one process; beyond, the one that was not used for longest is closed."""

MAX_UNUSED_SECONDS = 300
"""A sink is closed if it was not used for so long: its pipeline has stopped, or leads elsewhere.

It is the next task of its process that closes it. A process without tasks is ended by Spark in a
minute or two.
"""

_log = logging.getLogger(__name__)


class SinkCache:
    """Sinks by their settings. Thread-safe; a sink itself serves one thread at a time."""

    def __init__(self, limit: int = MAX_SINKS, clock: Clock | None = None) -> None:
        self._limit = limit
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        # Each with when it was asked for last; that is their order, too.
        self._sinks: OrderedDict[SinkSettings, tuple[Sink, float]] = OrderedDict()
        self._process = os.getpid()

    def get(self, settings: SinkSettings) -> Sink:
        """The sink for these settings, made if there is none."""
        with self._lock:
            if self._process != os.getpid():
                # A fork has copied the sinks, but their connections are the other process's.
                self._sinks = OrderedDict()
                self._process = os.getpid()
            now = self._clock.monotonic()
            known = self._sinks.pop(settings, None)
            sink = settings.make_sink() if known is None else known[0]
            self._sinks[settings] = sink, now
            while len(self._sinks) > self._limit or now - self._oldest() > MAX_UNUSED_SECONDS:
                _close_aside(self._sinks.popitem(last=False)[1][0])
            return sink

    def _oldest(self) -> float:
        """When the sink was asked for that nobody has asked for since for longest."""
        return next(iter(self._sinks.values()))[1]

    def close(self) -> None:
        """Close all sinks."""
        with self._lock:
            while self._sinks:
                self._sinks.popitem()[1][0].close()


def _close_aside(sink: Sink) -> None:
    """Close a sink in a thread of its own.

    Closing asks the target to forget its writer. One that hangs would hold up the load of another
    pipeline, with another target, for as long as it is waited for.
    """
    threading.Thread(target=_closed, args=(sink,), name="close-sink", daemon=True).start()


def _closed(sink: Sink) -> None:
    try:
        sink.close()
    except Exception:  # noqa: BLE001 - whatever it is, nobody needs the sink any more
        _log.exception("a sink that is not used any more could not be closed")


_sinks = SinkCache()


def sink_for(settings: SinkSettings) -> Sink:
    """This process's sink for these settings; connections that were lost come back automatically.

    Raises:
        ConfigurationError: the settings hold an address that is none.
    """
    return _sinks.get(settings)


def resolve_conflicts(
    settings: SinkSettings, ticket: LoadTicket, histories: Sequence[History]
) -> Loaded:
    """Apply changes of rows that both sites write; see `ConflictSink.resolve_conflicts`.

    Raises:
        SetlError: as `setl.load.sink.Sink.apply`.
        ConfigurationError: the target is none in which conflicts can be found.
    """
    sink = sink_for(settings)
    if not isinstance(sink, ConflictSink):
        raise ConfigurationError("a conflict policy needs a MySQL target")
    return sink.resolve_conflicts(ticket, histories)
