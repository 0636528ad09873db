"""Reads by hand the front of a record, which most records of a transaction have in common."""

from __future__ import annotations

from typing import Final, NamedTuple

from setl.codec.dts.middle import source_end, tags_at
from setl.codec.dts.scan import FRONT, Misread, extent_at, long_at
from setl.codec.dts.wire import operation_byte

_BEGIN: Final = operation_byte("BEGIN")
_COMMIT: Final = operation_byte("COMMIT")
_LONGEST: Final = 9  # bytes of a number that certainly has 64 bits
_NOT_THERE: Final = b"\0\0"  # ``objectName`` and ``processTimestamps``


class Front(NamedTuple):
    """What stands before the operation.

    Attributes:
        ident: ``id`` as it stands in the bytes.
        seconds: ``sourceTimestamp`` likewise.
        position: where ``sourcePosition`` begins.
        safe: where ``safeSourcePosition`` begins.
        origin: where ``sourceTxid`` begins, which ``source`` follows.
        operation: where the operation is.
    """

    ident: bytes
    seconds: bytes
    position: int
    safe: int
    origin: int
    operation: int


def front_of(value: bytes) -> Front:
    """The front of a record. Raises one of `setl.codec.dts.scan.MISREADS`."""
    match = FRONT(value)
    if match is None:
        raise Misread
    position = match.end()
    safe = extent_at(value, position)[1]
    origin = extent_at(value, safe)[1]
    ident, seconds = match.groups()
    return Front(ident, seconds, position, safe, origin, source_end(value, origin))


class Alike(NamedTuple):
    """The front of a record as far as that of the next one is mostly the same.

    Then they differ in the three lowest bytes of the id, and in the text of ``sourcePosition``,
    which is as long. So the front of the next one is well formed if it has `version` and `middle`
    in their places, and three bytes between them that say that more of the id follows (`MORE`).
    All positions are counted from the begin of the record.

    Attributes:
        version: the first byte.
        middle: what stands from `MIDDLE` on, up to the length of the text.
        text: where the text begins.
        end: where it ends.
    """

    version: int
    middle: bytes
    text: int
    end: int


MIDDLE: Final = 4
MORE: Final = 0x80
_LONG: Final = 0x81  # a length with more bytes, or negative


def alike_front(data: bytes) -> Alike | None:
    """What the next record's front is compared with; None if this one is unusual."""
    match = FRONT(data)
    if match is None or match.start(1) != 1 or match.end(1) <= MIDDLE:
        return None
    offset = match.end()
    if offset >= len(data) or data[offset] & _LONG:
        return None
    text = offset + 1
    end = text + (data[offset] >> 1)
    return Alike(data[0], data[MIDDLE:text], text, end)


class Bare(NamedTuple):
    """What a BEGIN or COMMIT says.

    Attributes:
        begins: whether it is a BEGIN.
        seconds: when the source wrote it, seconds since 1970.
        gtid: of a BEGIN, the tag GTID, "" without.
    """

    begins: bool
    seconds: int
    gtid: str


def read_bare(value: bytes, front: Front) -> Bare | None:
    """What a BEGIN or COMMIT says; None for another record, or one that is not as usual.

    Raises one of `setl.codec.dts.scan.MISREADS` likewise.
    """
    begins = value[front.operation] == _BEGIN
    if not (begins or value[front.operation] == _COMMIT):
        return None
    at = front.operation + 1
    # A full reader refuses text that is not UTF-8. Lengths of more than one byte are no ASCII.
    if not value[front.position : at].isascii() or not value.startswith(_NOT_THERE, at):
        return None
    if max(len(front.ident), len(front.seconds)) > _LONGEST:
        return None
    seconds, _ = long_at(front.seconds, 0)
    gtid = tags_at(value, at + len(_NOT_THERE))[0].get("GTID", "") if begins else ""
    return Bare(begins, seconds, gtid)
