"""Binlog events that servers of both families sent, one or more of every kind and column type.

`tests.integration.record_binlog_corpus` records them.
"""

import lzma
import struct
from functools import cache

from tests.unit.codec.binlog_events import DATA

FILE = DATA / "corpus.xz"
_FRONT = struct.Struct(
    "<HI?"
)  # bytes of the family's name, of the event; whether it has a checksum


def store(corpus):
    """Write (event, checksum) pairs by family."""
    data = b"".join(
        _FRONT.pack(len(family), len(event), checksum) + family.encode() + event
        for family, events in corpus.items()
        for event, checksum in events
    )
    FILE.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


@cache
def corpus():
    """The (event, checksum) pairs by family."""
    data, at = lzma.decompress(FILE.read_bytes()), 0
    found = {}
    while at < len(data):
        name, size, checksum = _FRONT.unpack_from(data, at)
        at += _FRONT.size
        family = data[at : at + name].decode()
        at += name
        found.setdefault(family, []).append((data[at : at + size], checksum))
        at += size
    return found
