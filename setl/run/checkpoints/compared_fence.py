"""Notices that a target was set back whose checkpoint is stored elsewhere.

A checkpoint in the target goes back with the rows. One that is kept elsewhere does not: what lies
between would never be applied (I7). But each leader raises the target's fence before it stores a
checkpoint. So a fence below the epoch that stored it last is that of an earlier state, or of
another server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from setl.errors import FatalError
from setl.load.sink import Fence

_LOOKS: Final = 3
_AGAIN_SECONDS: Final = 1.0  # a member of a cluster may not have yet what another one has


class ComparedFence:
    """A `Fence` that is compared with the checkpoint before it is raised."""

    def __init__(
        self,
        fence: Fence,
        *,
        held: Callable[[], int | None],
        stored_by: Callable[[], int],
        pipeline: str,
        target: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is asked yet.

        Args:
            fence: the target's.
            held: asks the target for its epoch; gives None if it was never raised.
            stored_by: asks for the leadership that stored a checkpoint last, 0 if none has.
            pipeline: full name, for messages.
            target: the target, for messages.
            sleep: waits between two looks at a fence that seems to be too low.
        """
        self._fence = fence
        self._held = held
        self._stored_by = stored_by
        self._pipeline = pipeline
        self._target = target
        self._sleep = sleep

    def end_writers(self, epoch: int) -> None:
        """See `Fence.end_writers`."""
        self._fence.end_writers(epoch)

    def raise_to(self, epoch: int, nid: str) -> None:
        """See `Fence.raise_to`.

        Raises:
            FatalError: the target is not as the leader left it that stored the checkpoint.
        """
        self._compare(self._stored_by())
        self._fence.raise_to(epoch, nid)

    def _compare(self, stored_by: int) -> None:
        held: int | None = None
        for look in range(_LOOKS):
            if look:
                self._sleep(_AGAIN_SECONDS)
            held = self._held()
            if (held or 0) >= stored_by:
                return
        found = "has no fence" if held is None else f"has its fence at epoch {held}"
        raise FatalError(
            f"the target {self._target} {found}, and the checkpoint, which is kept elsewhere, was"
            f" stored under epoch {stored_by}: the target was set back to an earlier state, or is"
            " another server. What it is missing is not sent again automatically",
            hint=f"`setl position reset {self._pipeline} --to` the position up to which the target"
            " has everything, or one before it",
            pipeline=self._pipeline,
        )
