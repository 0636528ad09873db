"""The number that marks a channel's own writes in ``retl.retl_mark`` (I9, I10)."""

from __future__ import annotations

from zlib import crc32

from setl.channel.file import ChannelFile

WRITER_BITS = 10
"""Low bits of the ID of a row of the mark table that distinguish what writes at the same time."""

MAX_SLOTS = 1 << WRITER_BITS
"""Tasks of one pipeline that can write at the same time."""


def channel_mark_id(file: ChannelFile) -> int:
    """The channel's `CHANNEL_ID`: `mark_id`, or else a checksum of its name.

    From 1 to 2^31 - 1, since the column is an INT and Otter writes 0 for "no channel". The
    same on every node and for ever, which `hash` would not be. Two channels whose names have
    the same checksum would take each other's rows for their own; `mark_id` is the hint.
    """
    return mark_id_of(file.channel, file.mark_id)


def channel_writers(file: ChannelFile) -> frozenset[int]:
    """`writer_number` of each of a channel's pipelines."""
    return frozenset(writer_number(f"{file.channel}/{p.name}") for p in file.pipelines)


def writer_number(pipeline_key: str) -> int:
    """Which rows of the mark table a pipeline uses: those whose ID, without its low bits, is this.

    A hash, so that two pipelines might have the same; they would wait for each other then.

    Args:
        pipeline_key: ``channel/pipeline``.
    """
    return crc32(pipeline_key.encode())


def mark_id_of(channel: str, given: int | None) -> int:
    """`channel_mark_id` of a channel of which only its name and its `mark_id` are known."""
    return given if given is not None else crc32(channel.encode()) & 0x7FFFFFFF or 1
