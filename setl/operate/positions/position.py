"""Where a pipeline stands: its stored checkpoint beside the two ends of its source's stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from arbiter.port import Arbiter
from setl.channel.file import DtsSource, Pipeline
from setl.errors import SetlError
from setl.model.position import BinlogPosition, KafkaOrigin, KafkaPosition, Position
from setl.operate.positions.place import Place, find_place
from setl.operate.positions.stored import Stored, read_stored
from setl.run.ends import kept_in, source_of
from setl.systems.mysql.binlog.server import BinlogFile, BinlogServer
from setl.systems.mysql.endpoint import mysql_endpoint

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Standing:
    """A pipeline's stored checkpoint beside its source.

    Attributes:
        stored: the checkpoint.
        earliest: the oldest place that the source still has, None if it did not tell.
        latest: the end of its stream, None if it did not tell.
        behind: how far the checkpoint is from there, None where that cannot be compared.
        unit: ``bytes`` of binlog or ``records``.
        problems: why something is not known, one sentence for each end that did not answer.
    """

    stored: Stored
    earliest: Position | None = None
    latest: Position | None = None
    behind: int | None = None
    unit: str = "bytes"
    problems: tuple[str, ...] = ()


def look_at_position(pipeline: Pipeline, channel: str, arbiter: Arbiter, nid: str) -> Standing:
    """Where a pipeline stands; an end that does not answer is a finding, not an error.

    Args:
        pipeline: from a channel file with its references resolved.
        channel: the channel's name.
        arbiter: where the checkpoint is kept if the target does not keep it.
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

    stored = asked(lambda: read_stored(pipeline, channel, arbiter)) or Stored(kept_in(pipeline))
    if stored.damage:
        problems.append(stored.damage)
    latest = asked(lambda: source_of(pipeline, channel, nid).latest())
    earliest = asked(lambda: find_place(pipeline, channel, nid, Place("earliest")))
    standing = Standing(
        stored,
        earliest,
        latest,
        unit="records" if isinstance(pipeline.source, DtsSource) else "bytes",
    )
    if stored.checkpoint is not None and latest is not None:
        resume = stored.checkpoint.applied or stored.checkpoint.resume
        files = list[BinlogFile]()
        if not isinstance(pipeline.source, DtsSource):
            server = BinlogServer(mysql_endpoint(pipeline.source))
            files = asked(server.files) or []
        standing = replace(standing, behind=distance(resume, latest, files))
    return replace(standing, problems=tuple(problems))


def distance(place: Position, latest: Position, files: list[BinlogFile]) -> int | None:
    """Bytes or records from a place to the end; None if they are not of one stream.

    Args:
        place: where somebody stands.
        latest: the end of the stream.
        files: the source's binlog files, oldest first; none for Kafka.
    """
    if isinstance(place, KafkaPosition) and isinstance(latest, KafkaPosition):
        same = (place.topic, place.partition) == (latest.topic, latest.partition)
        same = same and _maybe_one(place.origin, latest.origin)
        return max(0, latest.offset - place.offset) if same else None
    if isinstance(place, BinlogPosition) and isinstance(latest, BinlogPosition):
        return _bytes_between(place, latest, files)
    return None


def _bytes_between(
    place: BinlogPosition, latest: BinlogPosition, files: list[BinlogFile]
) -> int | None:
    if place.origin and latest.origin and place.origin.server != latest.origin.server:
        return None  # names of files are alike on many servers
    names = [file.name for file in files]
    if place.file not in names or latest.file not in names:
        return None
    first, last = names.index(place.file), names.index(latest.file)
    # The stream may have moved on after its end was asked for.
    return max(0, sum(f.size for f in files[first:last]) + latest.offset - place.offset)


def _maybe_one(place: KafkaOrigin | None, latest: KafkaOrigin | None) -> bool:
    """Whether two origins may be the same topic; what is not known counts as the same."""
    if place is None or latest is None:
        return True
    return all(a == b or not a or not b for a, b in zip(place, latest, strict=True))


def position_text(position: Position | None) -> str:
    """A position with all that is known of it, for people."""
    if position is None:
        return ""
    if isinstance(position, BinlogPosition) and position.gtid:
        return f"{position} (GTID {position.gtid})"
    return str(position)
