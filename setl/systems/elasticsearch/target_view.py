"""Looking at a cluster that a pipeline may be waiting for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from setl.errors import SetlError
from setl.load.target_view import Statement, TargetView
from setl.systems.elasticsearch.write_load import WriteLoad


class ClusterView:
    """Remembers how many writes were rejected before, since only further ones matter."""

    def __init__(self, address: str, look: Callable[[], WriteLoad]) -> None:
        self._name = f"Elasticsearch {address}"
        self._look = look
        self._rejected: int | None = None

    def __call__(self, _: int) -> TargetView:
        """See `LookAtTarget`; a cluster does not know which leadership writes to it."""
        view = TargetView(name=self._name)
        try:
            load = self._look()
        except SetlError as error:
            return replace(view, error=str(error))
        before, self._rejected = self._rejected, load.rejected
        more = load.rejected - before if before is not None and load.rejected > before else 0
        text = f"{more} writes were rejected since the last look" if more else ""
        if load.queued:
            text += f"{', ' if text else ''}{load.queued} writes wait in its queues"
        return replace(
            view,
            statements=tuple(Statement(0, seconds, "bulk request") for seconds in load.running),
            rejecting=text,
            blind=load.blind,
        )
