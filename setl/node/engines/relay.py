"""Runs that relay a binlog to Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from setl.errors import FatalError, SetlError
from setl.node.engines.engine import RunBuilder
from setl.node.roles import RELAY


class RelayEngine:
    """See `setl.node.engines.engine.Engine`. Needs no Spark, and so no JVM."""

    serves = (RELAY,)

    def __init__(self, build_run: RunBuilder | None = None) -> None:
        """Nothing is ready before `start`.

        Args:
            build_run: builds the runs; None for those of `setl.relay`.
        """
        self._build_run = build_run

    def prepare_for(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """See `setl.node.engines.engine.Engine.prepare_for`: relays have nothing to prepare."""

    def start(
        self,
        lost: Callable[[SetlError], None],  # noqa: ARG002 - nothing to lose
        stopping: Callable[[], bool],  # noqa: ARG002 - or to wait for
    ) -> None:
        """See `setl.node.engines.engine.Engine.start`; imports what runs need, in a second."""
        if self._build_run is None:
            from setl.run.relay.assembly import build_relay_run  # noqa: PLC0415

            # What all relays write; a take-over must not wait for the library that comes with it.
            import_module("setl.codec.dts.wire")

            self._build_run = build_relay_run

    def last_answer(self) -> float | None:
        """See `setl.node.engines.engine.Engine.last_answer`: there is nothing to ask."""
        return None

    @property
    def build_run(self) -> RunBuilder:
        """See `setl.node.engines.engine.Engine.build_run`."""
        if self._build_run is None:
            raise FatalError("the relay is not started", hint="This is a defect")
        return self._build_run

    def stop(self) -> None:
        """See `setl.node.engines.engine.Engine.stop`."""
