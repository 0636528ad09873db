"""What the pipelines of a node run on: Spark for those that load, nothing for relays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from arbiter.arbiter import Arbiter
from setl.channel.file import ChannelFile
from setl.clock import Clock
from setl.errors import FatalError, SetlError
from setl.model.leadership import Leadership
from setl.node.roles import RELAY
from setl.run.measured.progress import Progress

if TYPE_CHECKING:
    from setl.run.run import PipelineRun


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
    ) -> PipelineRun:
        """A run of the pipeline of a channel that is led.

        Raises:
            ConfigurationError: the channel has no such pipeline, or not of this kind.
        """
        ...


class Engine(Protocol):
    """What a `setl.node.process.NodeProcess` is given to build runs with."""

    @property
    def serves(self) -> tuple[str, ...]:
        """The kinds of pipelines it runs, see `setl.node.roles`."""
        ...

    def prepare_for(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Know which channels there are, so that the node gets ready for what they need.

        Called before `start`, and from then on again and again; returns at once. What a channel
        needs that was not there before `start` is made ready soon after.

        Args:
            definitions: of all channels, as they are stored.
        """
        ...

    def start(self, lost: Callable[[SetlError], None], stopping: Callable[[], bool]) -> None:
        """Get ready, so that a first run pays for nothing but itself (I4); may take long.

        Args:
            lost: called at most once, from any thread, when no run can work any more and the
                process has to be started again; must not block.
            stopping: whether the process is to end, so that nothing need be waited for any more.
        """
        ...

    def last_answer(self) -> float | None:
        """Monotonic time at which what the runs need has shown last that it works.

        None before `start`, and where runs need nothing beside this process. Must not block: an
        engine that hangs is known by an answer that grows old.
        """
        ...

    @property
    def build_run(self) -> RunBuilder:
        """Builds runs; to be asked for after `start`."""
        ...

    def stop(self) -> None:
        """Leave nothing behind, when all runs have ended; `lost` may be called until then."""
        ...


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
