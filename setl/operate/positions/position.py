"""How far a pipeline is: its stored checkpoint, and where its source's stream begins and ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from arbiter.arbiter import Arbiter
from setl.errors import SetlError
from setl.model.position import BinlogPosition, Position
from setl.operate.positions.stored import Stored, read_stored
from setl.run.checkpoints.stores import stored_in
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PositionReport:
    """A pipeline's stored checkpoint, compared with its source.

    Attributes:
        stored: the checkpoint.
        earliest: the oldest position that the source still has, None if it did not tell.
        latest: the end of its stream, None if it did not tell.
        behind: how far the checkpoint is from there, None where that cannot be compared.
        unit: ``bytes`` of binlog or ``records``.
        problems: why something is not known, one sentence for each server that did not answer.
    """

    stored: Stored
    earliest: Position | None = None
    latest: Position | None = None
    behind: int | None = None
    unit: str = "bytes"
    problems: tuple[str, ...] = ()


def look_at_position(
    pipeline: Pipeline, channel: str, arbiter: Arbiter, nid: str
) -> PositionReport:
    """Where a pipeline stands; an end that does not answer is a finding, not an error.

    Args:
        pipeline: from a channel file with its references resolved.
        channel: the channel's name.
        arbiter: where the checkpoint is stored if the target does not keep it.
        nid: as whom to ask the source.
    """
    problems: list[str] = []

    def asked(what: Callable[[], _T]) -> _T | None:
        try:
            return what()
        except SetlError as error:
            if str(error) not in problems:
                problems.append(str(error))
            return None

    stored = asked(lambda: read_stored(pipeline, channel, arbiter)) or Stored(stored_in(pipeline))
    if stored.damage:
        problems.append(stored.damage)
    source = system_of(pipeline.source)
    latest = asked(lambda: source.stream(pipeline, channel, nid).latest())
    first = source.parse_start_point("earliest")
    earliest = asked(lambda: source.find_position(pipeline, channel, nid, first))
    report = PositionReport(stored, earliest, latest, unit=source.unit)
    if stored.checkpoint is not None and latest is not None:
        resume, end = stored.checkpoint.applied or stored.checkpoint.resume, latest
        report = replace(report, behind=asked(lambda: source.distance(resume, end)))
    return replace(report, problems=tuple(problems))


def position_text(position: Position | None) -> str:
    """A position with all that is known of it, for people."""
    if position is None:
        return ""
    if isinstance(position, BinlogPosition) and position.gtid:
        return f"{position} (GTID {position.gtid})"
    return str(position)
