"""Where the transactions of a binlog stream begin and end, and what of them takes effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setl.codec.binlog.refused import taken_back
from setl.codec.binlog.transactions.stream_position import StreamPosition
from setl.codec.binlog.transactions.transaction import OpenTransaction
from setl.errors import TransientError
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition


class TransactionBounds:
    """The transaction that a stream is in, if it is in one.

    Entries of a transaction come out together with its end, see `OpenTransaction`.

    Attributes:
        transaction: its GTID; "" outside of one, and without GTIDs.
        begun: whether its first event was read, and its last one was not.
        is_open: whether its BEGIN was read, and its end was not.
        announced: whether the statement that follows has no effect.
        gtid_at: where the GTID begins that was read last, of MariaDB; 0 without.
        inner_end: end of the compressed transaction that is being read, or 0.
    """

    def __init__(
        self, position: StreamPosition, hold_bytes: int, is_whole: Callable[[BinlogPosition], bool]
    ) -> None:
        """Be in none.

        Args:
            position: where the stream is; moved to the end of what is compressed.
            hold_bytes: see `BinlogHeaderReader`.
            is_whole: likewise.
        """
        self._position = position
        self._is_whole = is_whole
        self.transaction = ""
        self.begun = self.is_open = self.announced = False
        self.gtid_at = self.inner_end = 0
        self._held = OpenTransaction(hold_bytes, self._open_is_whole)

    @property
    def has_rows(self) -> bool:
        """Whether the open transaction has rows so far."""
        return self._held.has_rows

    def name(self, transaction: str) -> None:
        """The GTID was read of the transaction that comes."""
        self.transaction = transaction
        self.begun = True

    def begin(self, event: bytes, seconds: int) -> None:
        """BEGIN was read, or what stands for it."""
        self.is_open = self.begun = True
        self._held.begin(
            Entry(
                EntryKind.BEGIN,
                self._position.position,
                float(seconds),
                transaction=self.transaction,
                payload=event,
            )
        )

    def emit(self, entry: Entry) -> Sequence[Entry]:
        """Take an entry in; returns those that cannot be held back (any longer)."""
        return self._held.add(entry) if self.is_open else (entry,)

    def commit(self, seconds: int) -> Sequence[Entry]:
        """What took effect.

        Raises:
            TransientError: its rows were left out, since its end was missing.
        """
        opened = self.is_open
        if opened and self._held.is_cut:
            raise TransientError(
                "the end of a transaction came that was not in the binlog a moment ago",
                position=self._position.position,
                transaction=self.transaction,
            )
        end = self.end(EntryKind.COMMIT, seconds)
        return self._held.commit(end) if opened else (end,)

    def savepoint(self, name: str) -> None:
        """A savepoint of this name was set."""
        self._held.savepoint(name)

    def rollback(self, seconds: int, text: str) -> Sequence[Entry]:
        """What remains after a ROLLBACK; raises FatalError if it is too late to take rows back."""
        remaining = self._held.rollback() if self.is_open else []
        if remaining is None:
            raise taken_back(text, self._position.position, self.transaction)
        return [*remaining, self.end(EntryKind.COMMIT, seconds)]

    def rollback_to(self, name: str, text: str) -> None:
        """The same of a ROLLBACK TO a savepoint."""
        if self.is_open and not self._held.rollback_to(name):
            raise taken_back(text, self._position.position, self.transaction)

    def end(self, kind: EntryKind, seconds: int) -> Entry:
        """The entry of something that ends a transaction; it may be all of it."""
        transaction = self.transaction
        self._position.advance_transaction(transaction)
        self._forget()
        self.announced = False
        self._position.offset = self.inner_end or self._position.offset
        return Entry(kind, self._position.position, float(seconds), transaction=transaction)

    def break_off(self) -> None:
        """Another file begins: transactions do not go on there, this one was lost with the server.

        Raises:
            FatalError: rows of it were handed on.
        """
        if self.is_open and self._held.rollback() is None:
            what = "the file ends inside a transaction"
            raise taken_back(what, self._position.position, self.transaction)
        self._forget()

    def _forget(self) -> None:
        self.is_open = self.begun = False
        self.transaction = ""

    def _open_is_whole(self) -> bool:
        return not self.gtid_at or self._is_whole(self._position.at(self.gtid_at))
