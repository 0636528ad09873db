"""Sets of executed GTIDs, as MySQL and as MariaDB write them.

They are kept up to date while reading, so that a position can be found again on another
server, where file names and offsets mean nothing.
"""

from __future__ import annotations

import re
import struct
import uuid
from bisect import bisect_right
from typing import Final, Protocol

from setl.errors import FatalError


class ExecutedGtids(Protocol):
    """What has been executed up to a place of the stream."""

    def add(self, gtid: str) -> None:
        """Take one more transaction in. Raises ValueError for text of another notation."""
        ...

    def __str__(self) -> str:
        """The set in the server's notation."""
        ...


class MariadbGtids:
    """MariaDB's state: the last ``domain-server-sequence`` of each domain."""

    def __init__(self, text: str = "") -> None:
        self._last: dict[int, str] = {}
        for gtid in filter(None, (part.strip() for part in text.split(","))):
            self.add(gtid)

    def add(self, gtid: str) -> None:
        """See `ExecutedGtids.add`."""
        self._last[int(gtid.partition("-")[0])] = gtid

    def __str__(self) -> str:
        last = self._last
        if len(last) == 1:
            return next(iter(last.values()))
        return ",".join(last[domain] for domain in sorted(last))

    @classmethod
    def from_list_event(cls, body: bytes) -> MariadbGtids:
        """From the body of a GTID_LIST event: 28 bits count and flags, then the GTIDs."""
        gtids = cls()
        count = struct.unpack_from("<I", body)[0] & 0x0FFFFFFF
        for at in range(4, 4 + 16 * count, 16):
            domain, server, sequence = struct.unpack_from("<IIQ", body, at)
            gtids.add(f"{domain}-{server}-{sequence}")
        return gtids


_INTERVAL: Final = re.compile(r"(\d+)(?:-(\d+))?")


def mariadb_gtids(text: str) -> frozenset[tuple[int, int, int]]:
    """MariaDB's GTIDs as domain, server and sequence.

    Raises:
        ValueError: `text` is of another notation.
    """
    found: set[tuple[int, int, int]] = set()
    for gtid in filter(None, (part.strip() for part in text.split(","))):
        domain, server, sequence = gtid.split("-")
        found.add((int(domain), int(server), int(sequence)))
    return frozenset(found)


def mariadb_missing(state: str, gtid: str) -> str:
    """Those of `gtid` that a binlog does not hold, as text; "" if it holds all.

    Args:
        state: ``gtid_binlog_state``: for each domain and each server that wrote to it, the
            newest GTID. (``gtid_binlog_pos`` has one server for each domain, which does not
            tell whether the binlog holds another server's transaction of that number.)
        gtid: what to look for.

    Raises:
        ValueError: `gtid` is no GTIDs of MariaDB.
    """
    newest = {(domain, server): number for domain, server, number in mariadb_gtids(state)}
    return ",".join(
        f"{domain}-{server}-{number}"
        for domain, server, number in sorted(mariadb_gtids(gtid))
        if newest.get((domain, server), -1) < number
    )


def same_gtids(one: str, other: str) -> bool:
    """Whether two texts name the same GTIDs, whatever the order and the spaces."""
    if ":" in one or ":" in other:
        return str(MysqlGtids(one)) == str(MysqlGtids(other))
    return mariadb_gtids(one) == mariadb_gtids(other)


class MysqlGtids:
    """MySQL's set: for each server's UUID the intervals of executed numbers."""

    def __init__(self, text: str = "") -> None:
        # uuid → starts and ends (inclusive), both ascending and apart from each other
        self._intervals: dict[str, tuple[list[int], list[int]]] = {}
        self._texts: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            server, *intervals = part.split(":")
            for interval in intervals:
                found = _INTERVAL.fullmatch(interval.strip())
                if found is None:
                    raise FatalError(
                        f"not a set of GTIDs that can be followed: {part!r}",
                        hint="GTIDs with tags are not supported",
                    )
                first = int(found.group(1))
                self.add_interval(server.strip().lower(), first, int(found.group(2) or first))

    def add(self, gtid: str) -> None:
        """See `ExecutedGtids.add`."""
        server, _, number = gtid.partition(":")
        self.add_interval(server, int(number), int(number))

    def add_interval(self, server: str, first: int, last: int) -> None:
        """Take in the numbers from `first` to `last`."""
        starts, ends = self._intervals.setdefault(server, ([], []))
        # All intervals that overlap or touch [first, last] become one with it.
        low = bisect_right(ends, first - 2)
        high = bisect_right(starts, last + 1)
        if low < high:
            first, last = min(first, starts[low]), max(last, ends[high - 1])
        starts[low:high], ends[low:high] = [first], [last]
        self._texts[server] = server + "".join(
            f":{a}" if a == b else f":{a}-{b}" for a, b in zip(starts, ends, strict=True)
        )

    def __str__(self) -> str:
        texts = self._texts
        if len(texts) == 1:
            return next(iter(texts.values()))
        return ",".join(texts[server] for server in sorted(texts))

    @classmethod
    def from_previous_event(cls, body: bytes) -> MysqlGtids | None:
        """From the body of a PREVIOUS_GTIDS event; None for a format with tags.

        Number of servers, then for each its UUID, the number of intervals and these, with
        exclusive ends; all numbers take 8 bytes. Servers that know tags put the format into
        the first number's highest byte.
        """
        gtids = cls()
        (count,) = struct.unpack_from("<Q", body)
        if count >> 56:
            return None
        at = 8
        for _ in range(count):
            server = str(uuid.UUID(bytes=body[at : at + 16]))
            (intervals,) = struct.unpack_from("<Q", body, at + 16)
            at += 24
            for _ in range(intervals):
                first, end = struct.unpack_from("<QQ", body, at)
                gtids.add_interval(server, first, end - 1)
                at += 16
        return gtids
