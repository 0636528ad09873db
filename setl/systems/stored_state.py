"""What a target stores about a pipeline that writes to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredState:
    """What a target stores about one pipeline.

    Attributes:
        fence: epoch in the fence, None if it was never raised, or the target has none.
        fenced_by: node that raised it, "" if it was never raised.
        checkpoint: the stored checkpoint as it was written, JSON; None if there is none.
        stored_by: epoch that stored it.
        stored_at: when, seconds since 1970 UTC by the target's clock.
    """

    fence: int | None = None
    fenced_by: str = ""
    checkpoint: str | None = None
    stored_by: int | None = None
    stored_at: float | None = None
