"""The steps of a cut-over, and what decides whether it goes on. Values only.

    check → verify → stop writes → drain → verify again → way back → done

The record of a cut-over names the step that comes next. It is kept before a step does something
that has to be put back; so whoever finds it, after a crash too, can carry on or put things back.
Every step may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, cast

from arbiter.values import ChannelState
from setl.content_shape import shape
from setl.errors import FatalError
from setl.operate import units
from setl.systems.write_stop import Writes


class Step(Enum):
    """What comes next."""

    CHECK = "check"
    VERIFY = "verify"
    STOP_WRITES = "stop writes"
    DRAIN = "drain"
    VERIFY_AGAIN = "verify again"
    WAY_BACK = "way back"
    DONE = "done"


ORDER = tuple(Step)

WHAT = {
    Step.CHECK: "see that channel, standby, lag and loads are as they have to be",
    Step.VERIFY: "compare source and target",
    Step.STOP_WRITES: "make the source read-only",
    Step.DRAIN: "wait until the target has everything up to the source's end",
    Step.VERIFY_AGAIN: "compare source and target again, nothing being written now",
    Step.WAY_BACK: "see that the pipeline of the way back is at the end of its source",
    Step.DONE: "say that the application may write to the target",
}


@dataclass(frozen=True, slots=True)
class CutOver:
    """A cut-over as it is kept.

    Attributes:
        step: what comes next.
        begun: when it began, seconds since 1970.
        by: who began it.
        server: which server the source is, "" before its writes are stopped.
        restore: settings of the source to put back; None if setl is not to change any.
        aborting: whether it is being put back.
    """

    step: Step = Step.CHECK
    begun: float = 0.0
    by: str = ""
    server: str = ""
    restore: Mapping[str, str] | None = None
    aborting: bool = False

    @property
    def relies_on_stop(self) -> bool:
        """Whether writes have to be stopped before the next step."""
        return ORDER.index(self.step) > ORDER.index(Step.STOP_WRITES)

    def sentence(self, begun: str) -> str:
        """How far it is, for people; `begun` is the time when it began, as text."""
        doing = "is being put back" if self.aborting else f"is at step `{self.step.value}`"
        changed = "setl made its source read-only" if self.restore else "its source is untouched"
        return f"the cut-over that {self.by} began at {begun} {doing}; {changed}"

    def stopping(self, writes: Writes) -> CutOver:
        """The record that has to be kept before writes are stopped.

        What an earlier attempt noted stays: what is set now may be that attempt's doing.
        """
        if self.restore is not None or writes.stopped:
            return replace(self, server=writes.server)
        return replace(self, server=writes.server, restore=dict(writes.settings))

    def after(self) -> CutOver:
        """The record when the step is done."""
        return replace(self, step=ORDER[min(ORDER.index(self.step) + 1, len(ORDER) - 1)])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        return {
            "step": self.step.value,
            "begun": self.begun,
            "by": self.by,
            "server": self.server,
            "restore": None if self.restore is None else dict(self.restore),
            "aborting": self.aborting,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CutOver:
        """Inverse of `to_json`; raises FatalError for what it did not write."""
        try:
            restore = cast("Mapping[str, Any] | None", value["restore"])
            return cls(
                Step(value["step"]),
                float(value["begun"]),
                str(value["by"]),
                str(value["server"]),
                None if restore is None else {str(k): str(v) for k, v in restore.items()},
                bool(value["aborting"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FatalError(
                f"not a stored cut-over: {shape(value)}",
                hint="It was not written by this version of setl; see to the source yourself",
            ) from error


@dataclass(frozen=True, slots=True)
class WayBack:
    """The pipeline of the other direction.

    Attributes:
        name: its full name.
        state: what its leader says it is doing.
        writes: how its account finds the old source; None if nobody can tell.
    """

    name: str
    state: str
    writes: Writes | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before anything is done.

    Attributes:
        wanted: what the channel is set to.
        state: what the leader says it is doing.
        error: its last error.
        standbys: nodes that could take over now.
        lag: seconds that the target is behind, None if unknown.
        loading: whether whole tables are still being loaded.
        dead_letters: open ones, None if unknown.
        writes: how the source takes writes, None if setl cannot tell.
        way_back: the pipeline of the other direction, None if there is none.
    """

    wanted: ChannelState
    state: str
    error: str = ""
    standbys: int = 0
    lag: float | None = None
    loading: bool = False
    dead_letters: int | None = None
    writes: Writes | None = None
    way_back: WayBack | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator asks for.

    Attributes:
        by_hand: whether he makes the source read-only himself.
        lag: the most seconds that the target may be behind at the beginning.
        standby: whether a node must be ready to take over.
        timeout: seconds that draining may take, and the way back, and writes to be stopped.
        verify_again: whether to compare again once writes are stopped.
    """

    by_hand: bool = False
    lag: float = 10.0
    standby: bool = True
    timeout: float = 60.0
    verify_again: bool = True


@dataclass(frozen=True, slots=True)
class StepReport:
    """What is said of a step.

    Attributes:
        step: which one.
        text: a sentence.
        problems: why it cannot go on; empty if it can.
    """

    step: Step
    text: str
    problems: tuple[str, ...] = field(default_factory=tuple)


def objections(known: Known, rules: Rules) -> list[str]:
    """Why a cut-over cannot begin; empty if it can."""
    found: list[str] = []
    if known.wanted is not ChannelState.START:
        found.append(f"the channel is set to {known.wanted.value}")
    elif known.state != "running":
        error = f": {known.error}" if known.error else ""
        found.append(f"the pipeline is not running but {known.state}{error}")
    if rules.standby and not known.standbys:
        found.append("no other node could take over (--without-standby goes without)")
    if known.loading:
        found.append("whole tables are still being loaded")
    if known.lag is None:
        found.append("it is not known how far the target is behind")
    elif known.lag > rules.lag:
        found.append(f"the target is {known.lag:.1f} s behind, more than {rules.lag:g} s")
    if known.dead_letters is None:
        found.append("it is not known whether there are dead letters")
    elif known.dead_letters:
        open_ = units.count(known.dead_letters, "dead letter is", "dead letters are")
        found.append(f"{open_} open; `setl deadletter` shows them")
    return [*found, *_about_writes(known, rules), *_about_way_back(known)]


def _about_writes(known: Known, rules: Rules) -> list[str]:
    writes = known.writes
    if writes is None:
        return ["setl cannot tell whether the source is read-only: name its database"]
    if writes.lacking and not (rules.by_hand or writes.stopped):
        or_else = "or do it yourself, with --by-hand"
        return [f"the account may not make the source read-only: {writes.lacking} ({or_else})"]
    return []


def _about_way_back(known: Known) -> list[str]:
    back = known.way_back
    if back is None:
        return []
    found: list[str] = []
    if back.state != "running":
        found.append(f"the way back, {back.name}, is not running but {back.state}")
    if back.writes is None or not back.writes.passes:
        grant = back.writes.bypass_grant if back.writes else ""
        found.append(
            f"the way back, {back.name}, could not write to a source that is read-only: "
            f"{grant or 'its account lacks the privilege'}"
        )
    return found


def still_stopped(record: CutOver, writes: Writes | None) -> str:
    """Why a step that relies on the stop cannot be taken; "" if it can."""
    if not record.relies_on_stop:
        return ""
    if writes is None or not writes.stopped:
        return "the source takes writes again; somebody has set it so, or it was started again"
    if writes.server != record.server:
        return f"another server answers as the source: {writes.server}, it was {record.server}"
    return ""
