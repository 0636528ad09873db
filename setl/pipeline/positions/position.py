"""Where a pipeline stands: its stored checkpoint beside the two ends of its source's stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from arbiter.port import Arbiter, Invalid
from arbiter.values import PipelineId
from setl.config.channel import DtsSource, MysqlTarget, Pipeline
from setl.config.connections import mysql_endpoint
from setl.errors import FatalError, SetlError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition, KafkaOrigin, KafkaPosition, Position
from setl.mysql.kept import Kept, read_kept
from setl.pipeline.ends import keeps_checkpoint, source_of
from setl.pipeline.positions.place import Place, find_place
from setl.select.binlog_server import BinlogFile, BinlogServer

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored checkpoint and where it was found.

    Attributes:
        kept_in: ``target`` or ``zookeeper``.
        checkpoint: what is stored, None if nothing is, or nothing that can be read.
        by: epoch of the leadership that stored it, None if unknown.
        at: when, seconds since 1970 UTC; None if unknown.
        fence: epoch in the target's fence; None without a fence, or if it was never raised.
        fenced_by: node that raised the fence, "" if none did.
        damage: why what is stored cannot be read, "" if it can or nothing is.
    """

    kept_in: str
    checkpoint: Checkpoint | None = None
    by: int | None = None
    at: float | None = None
    fence: int | None = None
    fenced_by: str = ""
    damage: str = ""


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

    kept_in = "target" if keeps_checkpoint(pipeline) else "zookeeper"
    stored = asked(lambda: read_stored(pipeline, channel, arbiter)) or Stored(kept_in)
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


def read_stored(pipeline: Pipeline, channel: str, arbiter: Arbiter) -> Stored:
    """The stored checkpoint of a pipeline, wherever it is kept.

    Raises:
        TransientError: the target cannot be reached.
        ConfigurationError: the target refuses the account, or lacks a table.
    """
    key = f"{channel}/{pipeline.name}"
    kept = Kept()
    if isinstance(pipeline.target, MysqlTarget):
        kept = read_kept(mysql_endpoint(pipeline.target), key)
    if keeps_checkpoint(pipeline):
        stored = Stored(
            "target",
            by=kept.stored_by,
            at=kept.stored_at,
            fence=kept.fence,
            fenced_by=kept.fenced_by,
        )
        return _with_checkpoint(stored, lambda: json.loads(kept.checkpoint or "null"))
    stored = Stored("zookeeper", fence=kept.fence, fenced_by=kept.fenced_by)
    try:
        found = arbiter.stored_position(PipelineId(channel, pipeline.name))
    except Invalid as error:
        return replace(stored, damage=str(error))
    if found is None:
        return stored
    value: dict[str, Any] = found[0]
    epoch = value.get("epoch")
    stored = replace(stored, by=epoch if isinstance(epoch, int) else None)
    return _with_checkpoint(stored, lambda: value["checkpoint"])


def _with_checkpoint(stored: Stored, read: Callable[[], Any]) -> Stored:
    try:
        value = read()
        if value is None:
            return stored
        return replace(stored, checkpoint=Checkpoint.from_json(value))
    except (FatalError, ValueError, TypeError, KeyError, AttributeError) as error:
        return replace(stored, damage=f"what is stored is no checkpoint: {error}")


def position_text(position: Position | None) -> str:
    """A position with all that is known of it, for people."""
    if position is None:
        return ""
    if isinstance(position, BinlogPosition) and position.gtid:
        return f"{position} (GTID {position.gtid})"
    return str(position)
