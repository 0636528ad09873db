"""Positions: where in a source stream something is, and where reading goes on.

A position always means "the stream goes on here": the position *after* the entry it belongs
to. Reading from an entry's position delivers what follows the entry, not the entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from setl.content_shape import shape
from setl.errors import FatalError
from setl.model.file_count import BY_NUMBER, FILE_BITS, OFFSET_BITS, FileCount

# Bits of a document version, highest first: generation, then the order within a source, for which
# see `setl.model.file_count`. 63 bits in all, since Elasticsearch takes versions as signed 64-bit
# integers.
GENERATION_BITS = 11
_ORDER_BITS = FILE_BITS + OFFSET_BITS


class BinlogOrigin(NamedTuple):
    """Which binlog file a file name means: servers number their files alike.

    Attributes:
        server: MySQL's ``server_uuid``; MariaDB has none, there its ``server_id``.
        writer: ``server_id`` in the FORMAT_DESCRIPTION event that the file begins with.
        created: that event's timestamp, when the file was begun, in seconds since 1970; 0 as
            long as the event was not seen.
    """

    server: str
    writer: int = 0
    created: int = 0


class KafkaOrigin(NamedTuple):
    """Which topic a topic's name means.

    Attributes:
        cluster: id of the Kafka cluster, "" if the brokers do not tell.
        topic: id of the topic, new each time a topic of this name is made; "" if the brokers
            do not tell, as those before Kafka 2.8.
    """

    cluster: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A position in a MySQL or MariaDB binlog.

    Attributes:
        file: the binlog file's name, such as ``mariadb-bin.000003``.
        offset: byte offset in that file, of the event that comes next.
        gtid: the GTIDs executed up to here in the server's own notation, or "".
        origin: which server's file it is; None in positions that were stored without it.
    """

    file: str
    offset: int
    gtid: str = ""
    origin: BinlogOrigin | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Sorts positions of one source; raises ValueError for a file without a number."""
        return binlog_file_number(self.file), self.offset

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """A position in one partition of a Kafka topic.

    Attributes:
        topic: the topic.
        partition: the partition number.
        offset: offset of the record that comes next.
        timestamp: the source's commit time of the record before it, in seconds; used to find
            the position again when the brokers were replaced and offsets mean nothing.
        record: CRC-32 of the value of the record before it, 0 if unknown; tells whether a
            topic of the same name is the same topic.
        origin: which cluster's topic it is; None in positions that were stored without it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int = 0
    record: int = 0
    origin: KafkaOrigin | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Sorts positions of one partition."""
        return 0, self.offset

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


Position = BinlogPosition | KafkaPosition


@lru_cache(maxsize=1024)
def binlog_file_number(file: str) -> int:
    """The number a binlog file's name ends with; ValueError if it has none."""
    match = re.search(r"\.(\d+)$", file)
    if match is None:
        raise ValueError(f"not a binlog file name: {file!r}")
    return int(match.group(1))


def position_to_json(position: Position) -> dict[str, Any]:
    """A position as plain JSON values; `position_from_json` is its inverse."""
    value: dict[str, Any]
    if isinstance(position, BinlogPosition):
        value = {"file": position.file, "offset": position.offset, "gtid": position.gtid}
    else:
        value = {
            "topic": position.topic,
            "partition": position.partition,
            "offset": position.offset,
            "timestamp": position.timestamp,
            "record": position.record,
        }
    if position.origin is not None:
        value["origin"] = position.origin._asdict()
    return value


def stored_number(value: Any) -> int:
    """A whole number as it was stored; raises ValueError for one that no counter here reaches."""
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("a number that does not fit into 64 bits")
    return number


def position_from_json(value: dict[str, Any]) -> Position:
    """Inverse of `position_to_json`; raises FatalError for anything else."""
    try:
        origin = value.get("origin")
        if "file" in value:
            return BinlogPosition(
                str(value["file"]),
                stored_number(value["offset"]),
                str(value.get("gtid", "")),
                origin
                and BinlogOrigin(
                    str(origin["server"]),
                    stored_number(origin["writer"]),
                    stored_number(origin["created"]),
                ),
            )
        return KafkaPosition(
            str(value["topic"]),
            stored_number(value["partition"]),
            stored_number(value["offset"]),
            stored_number(value.get("timestamp", 0)),
            stored_number(value.get("record", 0)),
            origin and KafkaOrigin(str(origin["cluster"]), str(origin["topic"])),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise FatalError(
            f"not a stored position: {shape(value)}",
            hint="It was not written by this version of setl; reset the position",
        ) from error


def document_version(generation: int, position: Position, files: FileCount = BY_NUMBER) -> int:
    """The external version of a document written from this position (I12).

    It grows with the order of the source, so that an old write cannot replace a newer one. The
    generation stands above that order. It is raised when positions of another server follow, or a
    place further back: these would look like the past otherwise.

    Args:
        generation: of the checkpoint.
        position: the position.
        files: how its files are counted, see `Checkpoint.files`.

    Raises:
        FatalError: there is no room above.
    """
    if isinstance(position, KafkaPosition):
        order = position.offset
    else:
        # Nothing is written from files before the one where the generation began.
        count = max(0, files.of(binlog_file_number(position.file)))
        order = (count << OFFSET_BITS) + position.offset
    version = (generation << _ORDER_BITS) + order
    if not 0 <= version < 1 << GENERATION_BITS + _ORDER_BITS:
        raise FatalError(
            f"the pipeline has used up its {1 << GENERATION_BITS} generations: generation "
            f"{generation} leaves no room for {position} in the version of a document",
            hint="Copy the channel under another name, with its tables loaded again, and into "
            "another index where the target is one",
            position=position,
        )
    return version


def next_generation(generation: int, position: Position, files: FileCount) -> int:
    """The generation that goes above all that was written in this one, up to a position.

    Also above what is in the target and not yet in the checkpoint.
    """
    if isinstance(position, KafkaPosition):
        return generation + 1
    return generation + files.generations(binlog_file_number(position.file))


def files_from(position: Position) -> FileCount:
    """How binlog files are counted by a generation that begins at a position."""
    if isinstance(position, KafkaPosition):
        return BY_NUMBER
    return FileCount.beginning_at(binlog_file_number(position.file))


def first_version(generation: int) -> int:
    """A bound below all document versions of a generation, and above those of earlier ones."""
    return generation << _ORDER_BITS


def version_generation(version: int) -> int:
    """The generation that a document version was made of, or one before that.

    The latter where its binlog files have taken up room above, see `setl.model.file_count`.
    """
    return version >> _ORDER_BITS


def version_text(version: int, near: Position | None, files: FileCount = BY_NUMBER) -> str:
    """The position that a document version was made from, as text.

    Args:
        version: what `document_version` gave.
        near: a position of the same stream, which tells what versions do not: the topic, or how
            binlog files are called; and of a file that is still being read, how far beyond 4 GiB
            it reaches. None gives the bare numbers.
        files: how they are counted.
    """
    major = version >> OFFSET_BITS & (1 << FILE_BITS) - 1
    minor = version & (1 << OFFSET_BITS) - 1
    if isinstance(near, KafkaPosition):
        return str(KafkaPosition(near.topic, near.partition, major << OFFSET_BITS | minor))
    if near is None:
        return f"{major}:{minor}"
    name, _, number = near.file.rpartition(".")
    known = binlog_file_number(near.file)
    found, behind = files.past(known, near.offset).number(major, known)
    offset = (behind << OFFSET_BITS) + minor
    return str(BinlogPosition(f"{name}.{found:0{len(number)}d}", offset))
