"""The position that a relay gives each record, as a header of the Kafka record.

The value is a record of the relay's format like any other. The header lets two readers see more: a
relay that takes over finds out what is in the topic already, and a source drops what it has seen,
such as those that a sender repeated after an answer was lost, or that a former leader still sent.
Places of one partition only grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from setl.content_shape import shape
from setl.errors import DataError

HEADER: Final = "setl"
"""Name of the Kafka record header."""

LAST: Final = (1 << 63) - 1
"""Ordinal of a record that ends its transaction; nothing of the transaction follows it."""

HEARTBEAT: Final = -1
"""Ordinal of a heartbeat: everything before its boundary is in the partition already."""

_DTS: Final = b"1"
"""The first word of a position of DTS records; of other formats it is their name.

A later form of the positions themselves would be another number, which this reader refuses.
"""
_NOTHING: Final = "-"


class RelayTransaction(NamedTuple):
    """A transaction as the places of its records name it.

    Attributes:
        generation: of the relay's checkpoint; grows when the source was replaced or the position
            was reset, after which positions restart.
        file: the binlog file of the boundary before it, where reading has to begin to get it.
        begin: the byte in that file.
        server: identity of the source, see `setl.model.position.BinlogOrigin`; "" if unknown.
        writer: see there.
        created: see there.
        gtid: its GTID, "" if unknown.
        format: of the values, see `setl.channel.fields.kafka_endpoints.KafkaTarget`. How ordinals
            count depends on it.
    """

    generation: int
    file: str
    begin: int
    server: str = ""
    writer: int = 0
    created: int = 0
    gtid: str = ""
    format: str = "dts"

    def encoded(self) -> bytes:
        """The header without the ordinal, which follows it; see `RelayPosition.encoded`."""
        words = (
            self.generation,
            self.file,
            self.begin,
            self.server or _NOTHING,
            self.writer,
            self.created,
            self.gtid or _NOTHING,
        )
        form = _DTS if self.format == "dts" else self.format.encode()
        return form + b" " + " ".join(map(str, words)).encode() + b" "


class RelayPosition(NamedTuple):
    """The place of one record in what a relay writes.

    Attributes:
        transaction: the transaction it is of. A heartbeat stands before the next one.
        ordinal: 0 for a BEGIN; for a row, or DDL inside the transaction, a number that grows
            along it, with gaps, and is the same each time the binlog is read, see
            `setl.relay.sequence`; `LAST` for its
            COMMIT, and for DDL that stands alone; `HEARTBEAT` for a heartbeat, which may be
            repeated.
    """

    transaction: RelayTransaction
    ordinal: int

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Grows along a partition; ValueError if the file has no number."""
        return self.transaction.generation, *self.boundary, self.ordinal

    @property
    def boundary(self) -> tuple[int, int]:
        """The boundary before its transaction, as `BinlogPosition.order` has it."""
        t = self.transaction
        return int(t.file.rpartition(".")[2]), t.begin

    def encoded(self) -> bytes:
        """The value of the header."""
        return self.transaction.encoded() + str(self.ordinal).encode()


def relay_position_of(headers: Iterable[tuple[str, bytes | None]]) -> RelayPosition | None:
    """The position that a record's headers tell; None if no relay wrote it.

    Raises:
        DataError: the header is there, and cannot be understood.
    """
    for name, value in headers:
        if name == HEADER:
            return _parsed(value or b"")
    return None


def _format_of(word: bytes) -> str:
    """The format that the first word names; ValueError if it is no name of one."""
    if word == _DTS:
        return "dts"
    if not (word.isalpha() and word.islower()):
        raise ValueError("another form of positions")
    return word.decode()


def _parsed(value: bytes) -> RelayPosition:
    try:
        words = value.split(b" ")
        # Of another form there may be more words, or fewer.
        form, generation, file, begin, server, writer, created, gtid, ordinal = words
        transaction = RelayTransaction(
            int(generation),
            file.decode(),
            int(begin),
            "" if server == b"-" else server.decode(),
            int(writer),
            int(created),
            "" if gtid == b"-" else gtid.decode(),
            _format_of(form),
        )
        position = RelayPosition(transaction, int(ordinal))
        _ = position.order  # a file without a number is no place
    except (ValueError, LookupError) as error:
        raise DataError(
            f"not a relay's place: {shape(value)}",
            hint="The record was written by another release of setl, or by something else",
        ) from error
    return position
