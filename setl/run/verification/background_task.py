"""What a leader does alongside the stream, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from setl.model.checkpoint import Checkpoint


class BackgroundTask(Protocol):
    """Work that reads beside a run and writes nothing into its target.

    Order: `start` once, then `stop`; both return at once, so that it never holds up a run that
    ends (I3). Idempotence: `stop` may be called again, and without `start`. Crash: it keeps for
    itself what the next leader needs.
    """

    def start(self, reached: Callable[[], Checkpoint | None]) -> None:
        """Begin; `reached` tells up to where everything is applied, from any thread."""
        ...

    def stop(self) -> None:
        """End soon; from any thread."""
        ...
