"""The port to the service that decides which node is active: ZooKeeper, or memory in tests.

Every call has a time limit and raises instead of waiting for ever. No call is made from a
callback: callbacks only set flags and wake whoever waits on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from arbiter.errors import Contact
from arbiter.values import (
    AlarmSender,
    Channel,
    ChannelState,
    Facts,
    HistoryItem,
    Mainstem,
    MainstemStatus,
    NodeInfo,
    OperatorAction,
    PipelineId,
    Signal,
    SignalState,
    StoredLoad,
)


class Arbiter(Protocol):
    """One session with the arbiter; everything that names its owner ends with it.

    Thread-safe. Order: what one session writes is seen by all in that order. Idempotence:
    noted at each call. Crash: a call that raised `Unreachable` may have taken effect, so the
    caller reads before it decides again; ephemeral facts (nodes, mainstems) vanish by
    themselves within the session timeout.
    """

    @property
    def session_timeout(self) -> float:
        """Seconds after which a silent session is declared dead, as granted by the arbiter."""
        ...

    def contact(self) -> Contact:
        """What is known now; never blocks. LOST stays until the next successful `announce`."""
        ...

    def last_contact(self) -> float:
        """`time.monotonic` of the last moment at which the session was surely alive.

        A process must stop writing before ``last_contact() + session_timeout`` (I3), whether
        or not a callback told it so.
        """
        ...

    def trouble(self) -> str:
        """Why the last attempts to reach the servers failed; "" in contact, or if nobody knows."""
        ...

    def watch(self, wake: Callable[[], None]) -> None:
        """Call `wake` (which must not block) whenever contact, a channel or a mainstem changes."""
        ...

    def announce(self, node: NodeInfo) -> None:
        """Make this node known for as long as the session lives. Idempotent.

        Raises:
            Conflict: another live session uses the same nid.
        """
        ...

    def nodes(self) -> Sequence[NodeInfo]:
        """The live nodes, sorted by nid."""
        ...

    def facts(self) -> Facts:
        """Nodes, channels, mainstems and signals, read in a few round trips.

        What cannot be read at all (a damaged payload) is treated as the single reads do. While
        nothing has changed, it may be the same object again, which says just that.
        """
        ...

    def put_channel(self, name: str, definition: Mapping[str, Any]) -> Channel:
        """Create a channel (in state STOP) or replace its definition, keeping its state."""
        ...

    def store_channel(
        self, name: str, definition: Mapping[str, Any], seen: Channel | None
    ) -> Channel:
        """The same if nobody changed it since `seen` was read (None: there was none).

        Raises:
            Conflict: somebody changed, created or removed it; nothing was stored.
        """
        ...

    def channels(self) -> Sequence[Channel]:
        """All channels, sorted by name."""
        ...

    def channel(self, name: str) -> Channel:
        """One channel. Raises NotFound."""
        ...

    def set_state(self, channel: Channel, state: ChannelState) -> Channel:
        """Change a channel's state if nobody changed it since it was read; else Conflict."""
        ...

    def remove_channel(self, channel: Channel) -> None:
        """Remove a stopped channel with all that is kept of its pipelines, in one step.

        Epochs of a later channel of its name are higher all the same: they come from the order
        of creation in the whole cluster.

        Raises:
            Invalid: it is not stopped.
            Conflict: somebody leads a pipeline of it, or changed it since it was read; nothing
                was removed.
        """
        ...

    def campaign(self, pipeline: PipelineId, nid: str) -> Mainstem:
        """Try to become active. Returns the mainstem as it is afterwards, mine or another's.

        It is mine exactly if its session is `session_id()`. Idempotent: a mainstem that this
        session already holds is returned as it is.
        """
        ...

    def session_id(self) -> int:
        """Id of the current session, 0 while there is none."""
        ...

    def mainstem(self, pipeline: PipelineId) -> Mainstem | None:
        """Who is active, None if nobody is."""
        ...

    def set_mainstem_status(
        self, pipeline: PipelineId, held: Mainstem, status: MainstemStatus
    ) -> Mainstem:
        """Say how far this leader is; Conflict if the mainstem is no longer `held`."""
        ...

    def resign(self, pipeline: PipelineId, held: Mainstem) -> None:
        """Give the mainstem up; nothing happens if it is no longer `held`."""
        ...

    def depose(self, pipeline: PipelineId, seen: Mainstem) -> None:
        """Take the leadership away from whoever holds `seen`, although its session may live.

        For an operator whose leader does not answer. Safe because of the fence (I2): the
        deposed leader's transactions fail as soon as another has raised the epoch. Nothing
        happens if `seen` is over already.
        """
        ...

    def epoch_base(self) -> int:
        """What is added to creation zxids to give epochs; 0 unless somebody raised it."""
        ...

    def raise_epoch_base(self, base: int) -> int:
        """Make epochs of later leaderships higher than `base`; returns the base afterwards.

        For a ZooKeeper that was built anew and counts zxids from the beginning, below the
        epochs that targets know. A base is never lowered: a lower one changes nothing. The
        epoch of a leadership that exists stays what it is.

        Raises:
            Invalid: it is negative, or leaves zxids no room within 63 bits.
        """
        ...

    def next_epoch(self) -> int:
        """The least epoch that a leadership beginning now could get.

        Found out by creating a znode and removing it again; takes no leadership.
        """
        ...

    def send_signal(self, pipeline: PipelineId, signal: Signal) -> Signal:
        """Ask something of a pipeline; returns it with its id. Not idempotent.

        The oldest answered signals beyond a limit are removed.
        """
        ...

    def signals(self, pipeline: PipelineId) -> Sequence[Signal]:
        """The requests to a pipeline, oldest first, answered ones included."""
        ...

    def answer_signal(
        self, pipeline: PipelineId, signal: Signal, state: SignalState, answer: str
    ) -> Signal:
        """Say what became of a request; Conflict if somebody else has answered it meanwhile."""
        ...

    def add_load(self, pipeline: PipelineId, value: Mapping[str, Any]) -> StoredLoad:
        """Keep a request to load tables, behind those that are there. Not idempotent.

        Nobody is told; a signal tells the leader.

        Raises:
            NotFound: there is no such channel.
            Invalid: it is too large.
        """
        ...

    def loads(self, pipeline: PipelineId) -> Sequence[StoredLoad]:
        """The requests to load tables, oldest first; those that cannot be read are left out."""
        ...

    def change_load(
        self, pipeline: PipelineId, load: StoredLoad, value: Mapping[str, Any]
    ) -> StoredLoad:
        """Replace a request; Conflict if somebody else changed or removed it meanwhile."""
        ...

    def remove_load(self, pipeline: PipelineId, load: StoredLoad) -> None:
        """Remove a request; nothing happens if it was changed or removed meanwhile."""
        ...

    def stored_position(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """The position kept here and its revision, None if none is."""
        ...

    def position_stored_at(self, pipeline: PipelineId) -> float | None:
        """When the position kept here was stored, seconds since 1970 by the arbiter's clock."""
        ...

    def store_position(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """Keep a position if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Raises Conflict.
        """
        ...

    def replace_position(self, pipeline: PipelineId, value: Mapping[str, Any]) -> None:
        """Keep a position over whatever is kept there, also what cannot be read; may conflict."""
        ...

    def cutover(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """The cut-over kept here and its revision, None if there is none.

        Raises:
            Invalid: it cannot be read.
        """
        ...

    def cutovers(self, pipelines: Sequence[PipelineId]) -> dict[PipelineId, dict[str, Any]]:
        """The cut-overs of those that have one, asked for all at once; raises as `cutover`."""
        ...

    def store_cutover(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """Keep a cut-over if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Order: it is kept before whatever it announces is done, so
        that a crash in between leaves behind what has to be put back. Raises Conflict.
        """
        ...

    def forget_cutover(self, pipeline: PipelineId, revision: int) -> None:
        """Remove a cut-over of this revision; Conflict if somebody has changed it meanwhile."""
        ...

    def verification(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """How far standing verification is, and its revision; None if nothing is kept.

        What cannot be read is empty: verification can begin anew.
        """
        ...

    def store_verification(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """Keep it if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Order and crash: what was compared after it was last kept is
        compared again. Raises Conflict: somebody else has written, who leads now.
        """
        ...

    def add_history(self, pipeline: PipelineId, item: HistoryItem) -> None:
        """Append, or replace the item of the same epoch if that is the newest.

        The oldest items beyond a limit are removed. For people only.
        """
        ...

    def history(self, pipeline: PipelineId) -> Sequence[HistoryItem]:
        """Past leaderships, oldest first."""
        ...

    def add_action(self, action: OperatorAction) -> OperatorAction:
        """Keep what an operator is about to do; returns it with its id. Not idempotent.

        Order: it is kept before it is done, so that nothing is done that nobody finds again. The
        oldest actions beyond a limit are removed; so are the ends of very long texts. For people
        only: nobody decides anything by it.
        """
        ...

    def end_action(self, action: OperatorAction, outcome: str, at: float) -> OperatorAction:
        """Say what came of an action, and when.

        Raises:
            Conflict: somebody has said so already.
            NotFound: it was removed meanwhile.
        """
        ...

    def actions(self) -> Sequence[OperatorAction]:
        """What operators did, oldest first; what cannot be read is left out.

        Of one whose session ended before anybody said what came of it, `abandoned` says so.
        """
        ...

    def send_alarms(self, sender: AlarmSender) -> AlarmSender:
        """Try to become the one that sends alarms; returns who it is afterwards, me or another.

        It is me exactly if its session is `session_id()`. A sender that tells somebody takes the
        place of one that tells nobody. Idempotent. Crash: the place is free when the session of
        whoever has it ends. Two may believe for a moment that they have it; what they keep is a
        compare-and-set, so that one of them finds out.
        """
        ...

    def alarm_sender(self) -> AlarmSender | None:
        """Who sends alarms, None if nobody does."""
        ...

    def alarms(self) -> tuple[dict[str, Any], int] | None:
        """What is kept of alarms, and its revision; None if nothing is.

        What cannot be read is empty: alarms that hold are raised again.
        """
        ...

    def store_alarms(self, value: Mapping[str, Any], revision: int | None) -> int:
        """Keep it if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Raises Conflict, or Invalid if it is too large.
        """
        ...

    def silences(self) -> tuple[dict[str, Any], int] | None:
        """What is kept of silences, as `alarms`; what cannot be read is empty."""
        ...

    def store_silences(self, value: Mapping[str, Any], revision: int | None) -> int:
        """Keep silences, as `store_alarms`."""
        ...

    def close(self) -> None:
        """End the session at once, so that others need not wait for its timeout."""
        ...
