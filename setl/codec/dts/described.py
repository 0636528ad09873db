"""Tells that a record describes its table as another one did, though it has other tags.

Some tags are of the table, others of the transaction or of the record, such as times. So hardly any
two transactions have the same bytes there, and reading all names of columns again to find the same
table costs as much as decoding a row.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from setl.codec.dts.header import LOGICAL_TAGS
from setl.codec.dts.middle import NEVER
from setl.codec.dts.scan import MISREADS, Misread, extent_at

KEYS_TAG: Final = "pk_uk_info"
"""The tag that describes a table's keys."""

_TELLING: Final = frozenset(tag.encode() for tag in (KEYS_TAG, *LOGICAL_TAGS))
_NAMED: Final = 2  # the branch string of ``objectName``
_END: Final = 0  # of a map; also ``processTimestamps`` that are not there


class Described(NamedTuple):
    """What stands between the operation and the images of a record.

    Attributes:
        front: bytes up to the tags.
        tags: the tags that tell something of the table.
        columns: bytes behind the tags.
    """

    front: bytes = NEVER
    tags: dict[bytes, bytes] = {}  # noqa: RUF012 - nobody changes it
    columns: bytes = NEVER

    def end_of_same(self, data: bytes, at: int) -> int:
        """Where the images begin, if a record describes the same table; else -1.

        -1 also where only reading all of it tells.

        Args:
            data: the record.
            at: the offset behind its operation.
        """
        if not data.startswith(self.front, at):
            return -1
        try:
            tags, at = _telling(data, at + len(self.front))
        except MISREADS:
            return -1
        if tags != self.tags or not data.startswith(self.columns, at):
            return -1
        return at + len(self.columns)


NOTHING: Final = Described()
"""What no record is like."""


def described(data: bytes, at: int, images: int) -> Described:
    """What a record that can be read says between two offsets, `NOTHING` if it is unusual."""
    try:
        begin = extent_at(data, at + 1)[1] + 1
        if data[at] != _NAMED or data[begin - 1] != _END:
            return NOTHING
        tags, behind = _telling(data, begin)
    except MISREADS:
        return NOTHING
    return Described(data[at:begin], tags, data[behind:images])


def _telling(data: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The tags that tell something of the table, and the offset behind all tags.

    Raises one of `MISREADS`, also for tags that are not plain or have more than 63 bytes.
    """
    begin, found = at, dict[bytes, bytes]()
    count = data[at]
    at += 1
    for _ in range(count >> 1):
        key = at + 1 + (data[at] >> 1)
        end = key + 1 + (data[key] >> 1)
        name = data[at + 1 : key]
        if (data[at] | data[key]) & 1:
            raise Misread
        if name in _TELLING:
            found[name] = data[key + 1 : end]
        at = end
    if count:
        if data[at] != _END:
            raise Misread
        at += 1
    # Then no length was a part of a longer one either, and all is text.
    if count & 1 or not data[begin:at].isascii():
        raise Misread
    return found, at
