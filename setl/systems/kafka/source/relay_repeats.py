"""Notices what a relay wrote a second time.

A sender repeats a record whose acknowledgement was lost, and a relay that lost its leadership may
still send what it had at hand, after its successor has sent the same. The positions that a relay
writes beside its records only grow along a partition, so a record whose place is not beyond the
last one has been there before.
"""

from __future__ import annotations

import logging
from typing import Final

from setl.codec.dts.relayed import HEADER, HEARTBEAT, relay_position_of
from setl.systems.kafka.record import Headers

_LOG = logging.getLogger(__name__)

_UNKNOWN: Final = (-1, -1, -1, -1)


class RelayRepeats:
    """Looks at the headers of one partition's records in order.

    Attributes:
        dropped: records that were repeats, since it was made.
        is_relayed: whether the record that was looked at last has a position that a relay wrote.
    """

    def __init__(self, topic: str, partition: int) -> None:
        """Nothing has been seen; the first record is never a repeat."""
        self.dropped = 0
        self.is_relayed = False
        self._name = f"{topic}[{partition}]"
        self._prefix = b"\0"  # of the last position: all but its ordinal
        self._ordinal = HEARTBEAT
        self._order: tuple[int, int, int, int] = _UNKNOWN
        self._relayed_range: tuple[int, int] | None = (
            None  # offset of its first record, and how many
        )

    def is_repeat(self, offset: int, headers: Headers) -> bool:
        """Whether a record with headers is of a relay, and has been there before.

        Raises:
            DataError: the header is of another release, or the headers cannot be read.
        """
        if self.goes_on(headers):
            return False
        if not self._known(headers):
            return False
        self.dropped += 1
        first, count = self._relayed_range or (offset, 0)
        self._relayed_range = first, count + 1
        return True

    def goes_on(self, headers: Headers) -> bool:
        """Whether a record is of the transaction of the last one, and stands behind it.

        Then it is the last one. Nearly all records are so: only the ordinal differs, and
        understanding a whole place costs ten times as much.
        """
        self.is_relayed = False
        name, header = headers[0] if headers else ("", None)
        if name != HEADER or header is None or not header.startswith(self._prefix):
            return False
        ordinal = header[len(self._prefix) :]
        if not ordinal.isdigit() or (number := int(ordinal)) <= self._ordinal:
            return False
        self.is_relayed = True
        self._ordinal = number
        if self._relayed_range:
            self._log_repeats()
        return True

    def _known(self, headers: Headers) -> bool:
        position = relay_position_of(headers)
        if position is None:
            return False
        self.is_relayed = True
        order = position.order
        last = (*self._order[:3], self._ordinal)
        if order < last or (order == last and position.ordinal != HEARTBEAT):
            return True
        self._order, self._ordinal = order, position.ordinal
        self._prefix = position.transaction.encoded()
        if self._relayed_range:
            self._log_repeats()
        return False

    def _log_repeats(self) -> None:
        """Log the stretch of repeats that ends here."""
        first, count = self._relayed_range or (0, 0)
        self._relayed_range = None
        _LOG.info(
            "%s: %d records from offset %d on were dropped: a relay had written them before",
            self._name,
            count,
            first,
        )
