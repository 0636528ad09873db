"""The number by which a channel knows its own writes in ``retl.retl_mark`` (I9, I10)."""

from __future__ import annotations

from zlib import crc32

from setl.config.channel import ChannelFile


def channel_mark_id(file: ChannelFile) -> int:
    """The channel's `CHANNEL_ID`: `mark_id`, or else a checksum of its name.

    From 1 to 2^31 - 1, since the column is an INT and Otter writes 0 for "no channel". The
    same on every node and for ever, which `hash` would not be. Two channels whose names have
    the same checksum would take each other's rows for their own; `mark_id` is the way out.
    """
    if file.mark_id is not None:
        return file.mark_id
    return crc32(file.channel.encode()) & 0x7FFFFFFF or 1
