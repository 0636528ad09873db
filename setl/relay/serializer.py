"""Serializer: the records of a relay, in one of several formats, and the ids that they carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from setl.errors import FatalError
from setl.model.change import DecodedRows
from setl.model.entry import Entry
from setl.model.position import BinlogPosition, Position, binlog_file_number

_FILE_ID_BITS: Final = 40  # of the id, for the position in a file; files are numbered above them


class Message(NamedTuple):
    """One record, as far as its format decides.

    Attributes:
        value: its bytes, None for a tombstone.
        key: its key, None if it has none.
    """

    value: bytes | None
    key: bytes | None = None


Messages = Sequence[Message]


class TransactionSerializer(Protocol):
    """Writes the records of one transaction, or of one DDL statement."""

    def begin(self, ident: int, entry: Entry) -> Messages:
        """Its BEGIN, at most one; `entry` is what it begins with, rows if need be."""
        ...

    def rows(
        self, first_id: int, entry: Entry, changes: DecodedRows, first: int = 0
    ) -> Sequence[Messages]:
        """The records of each of `changes`, which are rows of `entry`.

        Args:
            first_id: the id of the first row; ids count up.
            entry: where the rows are from.
            changes: all of its rows, or one.
            first: the number of the first of `changes` among the rows of the entry.

        Raises:
            DataError: a value cannot be written in the format.
        """
        ...

    def ddl(self, ident: int, entry: Entry) -> Messages:
        """A DDL statement, at most one record."""
        ...

    def commit(self, ident: int, entry: Entry) -> Messages:
        """Its COMMIT, at most one; `entry` is its last, rows if need be."""
        ...


class Serializer(Protocol):
    """Writes records of one stream.

    The same entries give the same number of records for each row, whenever they are read.
    """

    @property
    def format(self) -> str:
        """The format's name, as `setl.codec.dts.relayed.RelayTransaction` has it."""
        ...

    @property
    def parts(self) -> int:
        """The most records that one row makes."""
        ...

    def transaction(
        self, begin: BinlogPosition, opening: Entry, first: Entry
    ) -> TransactionSerializer:
        """For a transaction behind the boundary `begin`.

        Args:
            begin: the boundary.
            opening: its BEGIN entry, or its first rows if it has none.
            first: the first of its entries that passes.
        """
        ...

    def heartbeat(self, ident: int, position: BinlogPosition, seconds: int) -> Message:
        """A heartbeat: all before `position` was sent; `seconds` since 1970 UTC."""
        ...


def record_id(position: BinlogPosition) -> int:
    """The id of what stands at a position of the binlog; grows along it.

    Inside a transaction ids count on from its boundary, by `setl.relay.sequence`. In one that
    is compressed they grow beyond its end, and may be found again in the next ones.
    """
    return (binlog_file_number(position.file) << _FILE_ID_BITS) + position.offset


def binlog_position(position: Position) -> BinlogPosition:
    """The position, if it is one of a binlog.

    Raises:
        FatalError: it is not.
    """
    if isinstance(position, BinlogPosition):
        return position
    raise FatalError(
        f"a relay cannot go on from {position}, which is no place in a binlog",
        hint="Reset the position: it was kept for another kind of source",
    )
