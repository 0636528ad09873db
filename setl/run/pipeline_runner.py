"""What a node asks of a pipeline that runs, whatever does the work behind it."""

from __future__ import annotations

import threading
from typing import Protocol

from arbiter.arbiter import Arbiter
from setl.channel.file import ChannelFile
from setl.clock import Clock
from setl.model.leadership import Leadership
from setl.run.measured.progress import Progress
from setl.run.stalls.observer import Observed


class PipelineRunner(Protocol):
    """One leadership of one pipeline at work.

    `run` blocks in the thread that calls it and is called once; everything else may be called
    from any thread, before it begins and after it has ended too, and never blocks.
    """

    def run(self) -> None:
        """Take over and apply until told to stop.

        Raises:
            FencedError: a newer leadership exists.
            TransientError: it may work when tried again, but only under another epoch.
            SetlError: any other error that trying again does not help.
        """
        ...

    def stop(self) -> None:
        """Finish what is being written, keep the checkpoint, and return from `run`."""
        ...

    def rollback(self) -> threading.Event:
        """Go back to the stored checkpoint and on from there; the event is set once it reads."""
        ...

    def look_at_loads(self) -> None:
        """What operators ask to be loaded may have changed."""
        ...

    def abort(self) -> None:
        """Cancel what is being written and return from `run` (I3: leadership may be gone)."""
        ...

    def suspend(self) -> None:
        """Begin to write nothing more until `resume` (I3: the arbiter does not answer)."""
        ...

    def resume(self) -> None:
        """Writing may begin again."""
        ...

    @property
    def abandoned(self) -> bool:
        """Whether something of this run may still be writing when it has ended.

        Its epoch is spent then: what is written next has to be told from that by a higher one.
        """
        ...

    @property
    def observed(self) -> Observed:
        """The run as whoever watches for stalls needs it."""
        ...


class RunBuilder(Protocol):
    """Builds the run of one pipeline; nothing is connected yet."""

    def __call__(
        self,
        file: ChannelFile,
        leadership: Leadership,
        /,
        *,
        arbiter: Arbiter,
        progress: Progress,
        clock: Clock,
    ) -> PipelineRunner:
        """A run of the pipeline of a channel that is led.

        Raises:
            ConfigurationError: the channel has no such pipeline, or not of this kind.
        """
        ...
