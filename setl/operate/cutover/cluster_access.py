"""What a cut-over does outside: asks nodes, servers and stores, and sets the source read-only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import ChannelState, PipelineId
from setl.channel.relations.directions import way_back
from setl.clock import Clock
from setl.counting import count
from setl.errors import ConfigurationError
from setl.model.stream_end import StreamEnd
from setl.operate.cutover.steps import Known, WayBack
from setl.operate.positions.stored import read_stored
from setl.operate.waiting import Health, Verdict, WaitContext, Waited, wait_for
from setl.run.table_loads.choice import entries_to_load, is_loading
from setl.systems.registry import system_of
from setl.systems.write_stop import Writes, WriteStop

if TYPE_CHECKING:
    from setl.bulk.verdict import TableVerdict
    from setl.channel.file import ChannelFile, Pipeline


@dataclass(frozen=True, slots=True)
class Seen:
    """What the cluster says of a pipeline.

    Attributes:
        wanted: what its channel is set to.
        state: what its leader says it is doing, or why there is none.
        error: its last error.
        standbys: nodes that could take over now.
        lag: seconds that its target is behind, None if unknown.
        dead_letters: open ones, None if unknown.
        failed: whether it has failed.
    """

    wanted: ChannelState
    state: str
    error: str = ""
    standbys: int = 0
    lag: float | None = None
    dead_letters: int | None = None
    failed: bool = False


class ClusterAccess:
    """The `CutOverAccess` of a pipeline in a cluster."""

    def __init__(
        self,
        file: ChannelFile,
        pipeline: Pipeline,
        *,
        arbiter: Arbiter,
        look: Callable[[PipelineId], Seen],
        verify: Callable[[Pipeline], Sequence[TableVerdict]],
        nid: str,
        clock: Clock,
        pause: Callable[[float], None],
        progress: Callable[[PipelineId], Callable[[Waited], None]],
    ) -> None:
        """Nothing is asked yet.

        Args:
            file: the channel, its references resolved.
            pipeline: the one whose target the application moves to.
            arbiter: a session.
            look: what the cluster says of a pipeline.
            verify: compares a pipeline's source and target.
            nid: as whom to ask.
            clock: for time limits.
            pause: waits for so many seconds.
            progress: gives for a pipeline what is told how far a wait is.
        """
        self._pipeline = pipeline
        self._back = way_back(file, pipeline)
        self._ident = PipelineId(file.channel, pipeline.name)
        self._arbiter = arbiter
        self._look = look
        self._verify = verify
        self._nid = nid
        self._clock = clock
        self._pause = pause
        self._progress = progress
        self._stop: WriteStop | None = system_of(pipeline.source).write_stop()
        self._to_load = entries_to_load(pipeline)

    @property
    def goes_back(self) -> bool:
        """Whether the channel has a way back."""
        return self._back is not None

    def known(self) -> Known:
        """See `CutOverAccess.known`."""
        seen = self._look(self._ident)
        checkpoint = read_stored(self._pipeline, self._ident.channel, self._arbiter).checkpoint
        load = None if checkpoint is None else checkpoint.load
        return Known(
            wanted=seen.wanted,
            state=seen.state,
            error=seen.error,
            standbys=seen.standbys,
            lag=seen.lag,
            loading=is_loading(load, self._to_load),
            dead_letters=seen.dead_letters,
            writes=self.writes(),
            way_back=self._known_back(),
        )

    def _known_back(self) -> WayBack | None:
        if self._back is None:
            return None
        ident = PipelineId(self._ident.channel, self._back.name)
        stop = system_of(self._back.target).write_stop()
        return WayBack(str(ident), self._look(ident).state, None if stop is None else stop.look())

    def differences(self) -> list[str]:
        """See `CutOverAccess.differences`."""
        return [
            f"{verdict.target}: {count(verdict.missing, 'row')} missing,"
            f" {verdict.extra:,} too many, {verdict.different:,} different,"
            f" {verdict.undecided:,} undecided"
            for verdict in self._verify(self._pipeline)
            if not verdict.agrees
        ]

    def writes(self) -> Writes | None:
        """See `CutOverAccess.writes`."""
        return None if self._stop is None else self._stop.look()

    def stop(self) -> None:
        """See `CutOverAccess.stop`."""
        self._known_stop().stop()

    def restore(self, settings: Mapping[str, str]) -> None:
        """See `CutOverAccess.restore`."""
        self._known_stop().restore(settings)

    def drain(self, timeout: float) -> str:
        """See `CutOverAccess.drain`."""
        return self._at_its_end(self._pipeline, timeout)

    def way_back(self, timeout: float) -> str | None:
        """See `CutOverAccess.way_back`."""
        return None if self._back is None else self._at_its_end(self._back, timeout)

    def _at_its_end(self, pipeline: Pipeline, timeout: float) -> str:
        ident = PipelineId(self._ident.channel, pipeline.name)
        source = system_of(pipeline.source)
        end = source.position_to_reach(pipeline, ident.channel, self._nid, "now")
        waited = wait_for(
            pipeline,
            ident,
            StreamEnd(end, 0.0),
            WaitContext(self._arbiter, self._runs, self._clock, self._pause),
            timeout=timeout,
            progress=self._progress(ident),
        )
        if waited.verdict is Verdict.PASSED:
            return ""
        how = f"not within {timeout:g} s" if waited.verdict is Verdict.TIMEOUT else "stopped"
        return f"{ident}, {how}: waited for {waited.position_text}, {waited.why}"

    def _runs(self, ident: PipelineId) -> Health:
        seen = self._look(ident)
        return Health(seen.wanted, seen.failed, seen.error)

    def _known_stop(self) -> WriteStop:
        if self._stop is None:
            raise ConfigurationError("the source names no database that could be made read-only")
        return self._stop
