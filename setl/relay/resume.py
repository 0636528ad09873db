"""Finds where a relay goes on, from its checkpoint and the topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from setl.codec.dts.relayed import RelayPosition
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition

Tails = tuple[RelayPosition | None, ...]
"""The position of the last record of each partition, None where there is none."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where to read on, and what is there already.

    Attributes:
        checkpoint: where to begin to read.
        tails: by partition, the position beyond which records are to be written; None for all.
        reason: why that is not the stored checkpoint, "" if it is.
    """

    checkpoint: Checkpoint
    tails: Tails
    reason: str = ""


def with_written(checkpoint: Checkpoint, tails: Sequence[RelayPosition | None]) -> Checkpoint:
    """A checkpoint with the GTIDs of the transactions that the topic's last records are of.

    The topic is ahead of the checkpoint, and a server that has all before the checkpoint may lack
    what the topic has. Heartbeats are of no transaction.

    Args:
        checkpoint: the stored one.
        tails: the position of the last record of each partition.
    """
    gtids = {
        tail.transaction.gtid
        for tail in tails
        if tail is not None and tail.transaction.generation == checkpoint.generation
    }
    return replace(checkpoint, transaction=",".join(sorted(filter(None, gtids))))


def resumption(
    checkpoint: Checkpoint,
    tails: Sequence[RelayPosition | None],
    *,
    exact: bool,
    spread: bool = False,
) -> Resumption:
    """Decide where to go on.

    Before a checkpoint is stored, every partition has a heartbeat with its position. So a topic
    whose last records lie before the checkpoint has lost some, unless a former leader came
    late with records of long ago.

    A higher generation than that of the topic's records says that the source was replaced or
    the position reset: what they say of their places means nothing any more. A lower one says
    that the checkpoint was lost, and places in the topic are all that is known.

    Args:
        checkpoint: the stored one, located at the source that answers.
        tails: the position of the last record of each partition.
        exact: whether those are surely the farthest, since former leaders are fenced off.
        spread: whether a row's partition goes by how many there are.

    Raises:
        FatalError: partitions were added, and rows would change theirs.
    """
    known = [tail for tail in tails if tail is not None]
    newest = max((tail.transaction.generation for tail in known), default=0)
    if newest > checkpoint.generation:
        current = [tail for tail in known if tail.transaction.generation == newest]
        reason = "the checkpoint is older than what is in the topic"
        least = min(current, key=_order)
        return Resumption(_at(least, checkpoint), tuple(tails), reason)
    current = [tail for tail in known if tail.transaction.generation == checkpoint.generation]
    same = tuple(tail if tail in current else None for tail in tails)
    resume = checkpoint.resume
    if exact and current and isinstance(resume, BinlogPosition):
        least = min(current, key=_order)
        if least.boundary < resume.order:
            reason = f"the topic has lost records: its last ones are before {resume}"
            return Resumption(_at(least, checkpoint), same, reason)
    if spread and current and checkpoint.rows:
        _check_added(tails)
    return Resumption(checkpoint, same)


def _check_added(tails: Sequence[RelayPosition | None]) -> None:
    """Refuse partitions that were added behind the rows of a checkpoint.

    Subscribers read partitions side by side. The next change of a row that gets another partition
    could be read before the last one in its former one, which would then be what stays.
    """
    added = [str(number) for number, tail in enumerate(tails) if tail is None]
    if added:
        raise FatalError(
            f"nothing is in the partitions {', '.join(added)}, though each had a heartbeat before"
            " the checkpoint: they were added, and rows would change their partitions",
            hint="Let all subscribers come to the end. `setl stop` the channel, `setl position"
            " reset PIPELINE --to POSITION` with the position where it is (`setl position show`), "
            "and"
            " start it. Let subscribers read the new partitions, too (`partitions`)",
        )


def _order(position: RelayPosition) -> tuple[int, int, int, int]:
    return position.order


def _at(other_position: RelayPosition, checkpoint: Checkpoint) -> Checkpoint:
    """The boundary before the transaction of a position; its GTIDs are not known."""
    at = other_position.transaction
    origin = BinlogOrigin(at.server, at.writer, at.created) if at.server else None
    position = BinlogPosition(at.file, at.begin, "", origin)
    return replace(checkpoint, resume=position, applied=None, generation=at.generation)
