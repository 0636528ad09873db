"""Notices documents that the pipeline cannot have written, and that refuse all that it writes.

An index refuses what is older than what it holds, and that counts as done: what comes again after a
crash meets its own later writes. These have positions of the source that there are. A version above
all of them is of another pipeline, of another server, or of this pipeline's name with a higher
generation, whose stored state is gone. Nothing would be written then, and all would look well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from setl.errors import FatalError
from setl.load.sink import LoadTicket
from setl.model.loaded import Loaded
from setl.model.position import GENERATION_BITS, version_generation

_MARGIN: Final = 1 << 20
"""How far a version may be above the source's end, in bytes of a binlog or records of a topic.
Elasticsearch raises a document's version by one with each write of somebody else, which
`setl verify` shows."""


class ForeignVersions:
    """Looks at what the writes of one leadership have met."""

    def __init__(self, end: Callable[[LoadTicket], int]) -> None:
        """Look at nothing yet.

        Args:
            end: see `version_at_end`.
        """
        self._end = end

    def check(self, ticket: LoadTicket, report: Loaded) -> None:
        """A load has ended.

        Order: before the checkpoint passes it. So the pipeline stops there until somebody acts.

        Raises:
            FatalError: it has met versions that the pipeline cannot have given.
            SetlError: the source does not answer.
        """
        if report.held <= ticket.through + _MARGIN:
            return
        end = self._end(ticket)
        if report.held <= end + _MARGIN:
            return
        theirs = version_generation(report.held)
        raise FatalError(
            f"the index holds documents that are newer than all that the source has: it has refused"
            f" {report.stale} writes of this load, of generation {ticket.generation}, for version"
            f" {report.held}, which is of generation {theirs}. Another pipeline has written them,"
            " or this one from another server, or before its stored state was removed",
            hint=_hint(max(version_generation(end), theirs) + 1),
            pipeline=ticket.pipeline_key,
        )


def _hint(generation: int) -> str:
    raised = (
        f"set `generation: {generation}` in the channel file, which begins at `start` again, and"
        if generation < 1 << GENERATION_BITS
        else "delete the index, and"
    )
    return (
        "If another pipeline writes there, name another index under `to`. If these documents are to"
        f" be replaced: {raised} `setl load` the tables that go there"
    )
