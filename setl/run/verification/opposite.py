"""Whether the pipelines of the other direction have brought what the target has."""

from __future__ import annotations

import threading
from contextlib import closing

from arbiter.arbiter import Arbiter
from setl.channel.file import ChannelFile, Pipeline
from setl.clock import Clock
from setl.errors import TransientError
from setl.model.position import Position
from setl.run.checkpoints.stores import store_of
from setl.systems.registry import system_of
from setl.waiting import polling

_POLL_SECONDS = 0.2
_LONGEST_SECONDS = 30.0


def opposite_pipelines(file: ChannelFile, pipeline: Pipeline) -> list[Pipeline]:
    """The pipelines of a channel that may bring to a pipeline's source what is in its target.

    Servers are compared as they are written, see `setl.channel.relations.directions.is_two_way`.
    """
    site = pipeline.target.site
    others = [other for other in file.pipelines if other is not pipeline]
    if site is None:
        return []
    origins = [(other, other.source.origin) for other in others]
    return [o for o, at in origins if at is None or (at.host, at.port) == site]


class Opposite:
    """Waits for the pipelines of the other direction, by the checkpoints that they have stored."""

    def __init__(
        self,
        channel: str,
        pipelines: list[Pipeline],
        *,
        arbiter: Arbiter,
        nid: str,
        clock: Clock,
    ) -> None:
        """Nothing is asked yet.

        Args:
            channel: the channel's name.
            pipelines: of the other direction.
            arbiter: a session.
            nid: as whom to ask.
            clock: for the limit.
        """
        self._channel = channel
        self._pipelines = pipelines
        self._arbiter = arbiter
        self._nid = nid
        self._clock = clock

    def wait(self, stopping: threading.Event) -> None:
        """Return when all that the target has now is at the source, as far as it is to come there.

        Args:
            stopping: set when nobody waits any more.

        Raises:
            TransientError: it does not come, or nobody can tell.
            SetlError: a server refuses to tell.
        """
        behind = [(each, self._end(each)) for each in self._pipelines]
        for _ in polling(
            _LONGEST_SECONDS, _POLL_SECONDS, monotonic=self._clock.monotonic, pause=stopping.wait
        ):
            behind = [(each, end) for each, end in behind if not self._passed(each, end)]
            if not behind:
                return
        raise TransientError(
            "what differs may be on its way in the other direction: it did not come within"
            f" {_LONGEST_SECONDS:g} s",
            pipeline=f"{self._channel}/{behind[0][0].name}",
        )

    def _end(self, pipeline: Pipeline) -> Position:
        system = system_of(pipeline.source)
        return system.position_to_reach(pipeline, self._channel, self._nid, "now")

    def _passed(self, pipeline: Pipeline, end: Position) -> bool:
        with closing(store_of(pipeline, self._channel, self._arbiter, self._nid)) as store:
            checkpoint = store.load()
        passed = system_of(pipeline.source).passed
        return checkpoint is not None and passed(checkpoint.resume, end)
