"""Where in the stream of a binlog its reader is."""

from __future__ import annotations

import struct

from setl.codec.binlog.transactions.gtid import ExecutedGtids, MysqlGtids, executed_gtids
from setl.errors import TransientError
from setl.model.position import BinlogOrigin, BinlogPosition


class StreamPosition:
    """The file, the offset in it, the executed GTIDs, and which file of that name it is.

    GTIDs are known if they were at the start, or from the first file on whose beginning is read;
    until then positions carry "" for them.

    Positions carry which file they are of, if the start names at least the server: the file's
    FORMAT_DESCRIPTION event says when it was begun, and is sent first, wherever in the file a
    stream starts.

    Attributes:
        file: name of the binlog file.
        offset: bytes from its beginning.
        executed: GTIDs of the transactions before it; see `ExecutedGtids`.
    """

    def __init__(self, start: BinlogPosition) -> None:
        """Be at `start`."""
        self.file = start.file
        self.offset: int = start.offset
        self.executed = start.gtid
        self._gtids: ExecutedGtids | None = executed_gtids(start.gtid)
        self._origin = start.origin

    @property
    def position(self) -> BinlogPosition:
        """The position as a value."""
        return self.at(self.offset)

    def at(self, offset: int) -> BinlogPosition:
        """Another position in the same file, behind the same transactions."""
        return BinlogPosition(self.file, offset, self.executed, self._origin)

    @property
    def inside(self) -> BinlogPosition:
        """The position inside a transaction.

        No GTIDs name it: those before it would lead to the transaction's beginning, and a server
        says of this position that the transaction is executed.
        """
        return BinlogPosition(self.file, self.offset, "", self._origin)

    def advance_transaction(self, transaction: str) -> None:
        """Count a transaction, by its GTID, as executed."""
        if transaction and self._gtids is not None:
            self._gtids.add(transaction)
            self.executed = str(self._gtids)

    def know(self, gtids: ExecutedGtids | None) -> None:
        """Take over what a file says of the transactions before it."""
        self._gtids = gtids
        self.executed = "" if gtids is None else str(gtids)

    def know_more(self, gtids: MysqlGtids) -> None:
        """Take in what a file of MySQL says of the transactions before it.

        It names none that were in files of another name (``log_bin``).
        """
        if isinstance(self._gtids, MysqlGtids):
            gtids.add_all(self._gtids)
        self.know(gtids)

    def go_to(self, file: str, offset: int) -> bool:
        """Go to where the stream goes on; returns whether that is another file."""
        moved = file != self.file
        self.file, self.offset = file, offset
        if moved and self._origin is not None:
            self._origin = BinlogOrigin(self._origin.server)
        return moved

    def identify(self, format_description: bytes, created: int) -> None:
        """Learn which file it is, or see that it is the one that was meant.

        Args:
            format_description: the event, with its header.
            created: when the file was begun, in seconds since 1970.

        Raises:
            TransientError: it is another file of this name.
        """
        known = self._origin
        if known is None:
            return
        (writer,) = struct.unpack_from("<I", format_description, 5)
        self._origin = BinlogOrigin(known.server, writer, created)
        if known.created and self._origin != known:
            raise TransientError(
                f"{self.file} is not the file of this name that was read before",
                hint="The source was replaced or reset meanwhile; the position is looked up again",
                position=self.position,
            )
