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

from setl.codec.binlog.transactions.gtid_event import TAG, tag_at
from setl.errors import FatalError


class ExecutedGtids(Protocol):
    """What has been executed up to a position of the stream."""

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


def gtids_beyond(one: str, other: str) -> str:
    """Those of `one` that come after, or are not among, all that `other` names; "" if none do.

    Of MariaDB, each names its domain's newest transaction, and all before it.
    """
    if ":" in one or ":" in other:
        return str(MysqlGtids(one).without(MysqlGtids(other)))
    newest = {domain: (number, server) for domain, server, number in mariadb_gtids(other)}
    return ",".join(
        f"{domain}-{server}-{number}"
        for domain, server, number in sorted(mariadb_gtids(one))
        if newest.get(domain, (-1, 0))[0] < number
        or (newest[domain][0] == number and newest[domain][1] != server)
    )


class MysqlGtids:
    """MySQL's set: for each source the intervals of executed numbers.

    A source is a server's UUID, or a UUID and a tag with a colon between. Servers write the tags
    of a UUID behind it, as in ``uuid:1-3:tag:1-5``; here each is a part of its own, as in
    ``uuid:1-3,uuid:tag:1-5``, which servers understand too.
    """

    def __init__(self, text: str = "") -> None:
        # source → starts and ends (inclusive), both ascending and apart from each other
        self._intervals: dict[str, tuple[list[int], list[int]]] = {}
        self._texts: dict[str, str] = {}
        self._changed: set[str] = set()  # sources whose text is another one now
        for part in filter(None, (part.strip() for part in text.split(","))):
            server, *words = (word.strip().lower() for word in part.split(":"))
            source = server
            for word in words:
                found = _INTERVAL.fullmatch(word)
                if found is not None:
                    first = int(found.group(1))
                    self.add_interval(source, first, int(found.group(2) or first))
                elif TAG.fullmatch(word):
                    source = f"{server}:{word}"
                else:
                    raise FatalError(
                        f"not a set of GTIDs that can be followed: {part!r}",
                        hint="They are written uuid:1-100, or uuid:tag:1-100, with commas between",
                    )

    def add(self, gtid: str) -> None:
        """See `ExecutedGtids.add`."""
        source, _, number = gtid.rpartition(":")
        self.add_interval(source, int(number), int(number))

    def add_interval(self, source: str, first: int, last: int) -> None:
        """Take in the numbers from `first` to `last`."""
        starts, ends = self._intervals.setdefault(source, ([], []))
        # All intervals that overlap or touch [first, last] become one with it.
        low = bisect_right(ends, first - 2)
        high = bisect_right(starts, last + 1)
        if low < high:
            first, last = min(first, starts[low]), max(last, ends[high - 1])
        starts[low:high], ends[low:high] = [first], [last]
        self._changed.add(source)

    def add_all(self, other: MysqlGtids) -> None:
        """Take in another set."""
        for source, (starts, ends) in other._intervals.items():
            for first, last in zip(starts, ends, strict=True):
                self.add_interval(source, first, last)

    def without(self, other: MysqlGtids) -> MysqlGtids:
        """Those that another set has not."""
        rest = MysqlGtids()
        for source, (starts, ends) in self._intervals.items():
            gone = other._intervals.get(source, ([], []))
            for first, last in zip(starts, ends, strict=True):
                begin = first
                for start, end in zip(*gone, strict=True):
                    if start > last:
                        break
                    if begin < start:
                        rest.add_interval(source, begin, start - 1)
                    begin = max(begin, end + 1)
                if begin <= last:
                    rest.add_interval(source, begin, last)
        return rest

    def __str__(self) -> str:
        texts = self._texts
        for source in self._changed:
            texts[source] = source + "".join(
                f":{a}" if a == b else f":{a}-{b}"
                for a, b in zip(*self._intervals[source], strict=True)
            )
        self._changed.clear()
        if len(texts) == 1:
            return next(iter(texts.values()))
        return ",".join(texts[source] for source in sorted(texts))

    @classmethod
    def from_previous_event(cls, body: bytes) -> MysqlGtids:
        """From the body of a PREVIOUS_GTIDS event.

        Number of sources, then for each its UUID, the number of intervals and these, with
        exclusive ends; all numbers take 8 bytes. If any has a tag, the first and the last byte
        of the number of sources are 1. Then the tag stands behind each UUID, with its length in
        front as a `variable_integer`. Source: ``Gtid_set::encode`` in MySQL.

        Raises:
            struct.error, ValueError, IndexError: it is none.
        """
        gtids = cls()
        (count,) = struct.unpack_from("<Q", body)
        form = count >> 56
        if form > 1:
            raise ValueError(f"its form {form} is not known")
        count = count >> 8 & 0xFFFF_FFFF_FFFF if form else count
        at = 8
        for _ in range(count):
            source = str(uuid.UUID(bytes=body[at : at + 16]))
            at += 16
            if form:
                tag, at = tag_at(body, at)
                source += f":{tag}" if tag else ""
            (intervals,) = struct.unpack_from("<Q", body, at)
            at, last = at + 8, 0
            if source in gtids._intervals:
                raise ValueError(f"it names {source} twice")
            for _ in range(intervals):
                first, end = struct.unpack_from("<QQ", body, at)
                # Servers refuse another order, too. It would make this take quadratic time.
                if not last < first < end:
                    raise ValueError(f"its interval {first} to {end - 1} is empty or out of order")
                gtids.add_interval(source, first, end - 1)
                at, last = at + 16, end
        if at != len(body):
            raise ValueError(f"it has {len(body)} bytes and not {at}")
        return gtids

    def encoded(self) -> bytes:
        """The set as a server takes it in COM_BINLOG_DUMP_GTID: as in the event above."""
        sources = sorted(self._intervals)
        tagged = any(":" in source for source in sources)
        data = struct.pack("<Q", 1 << 56 | len(sources) << 8 | 1 if tagged else len(sources))
        for source in sources:
            server, _, tag = source.partition(":")
            starts, ends = self._intervals[source]
            data += uuid.UUID(server).bytes
            if tagged:
                data += bytes([len(tag) << 1]) + tag.encode("ascii")
            data += struct.pack("<Q", len(starts))
            for first, last in zip(starts, ends, strict=True):
                data += struct.pack("<QQ", first, last + 1)
        return data


def executed_gtids(text: str) -> ExecutedGtids | None:
    """The GTIDs that a text names, of either server; None for an empty one.

    Raises:
        FatalError, ValueError: it is no set of GTIDs.
    """
    if not text:
        return None
    return MysqlGtids(text) if ":" in text else MariadbGtids(text)
