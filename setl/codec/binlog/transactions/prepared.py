"""Prepared XA transactions of a binlog, and what it means that one is rolled back.

A binlog has the rows of an XA transaction where it was prepared, and they are replicated there. Its
XA COMMIT or XA ROLLBACK stands somewhere behind, with the transaction's id and nothing else. So a
rollback takes back rows that were replicated, unless the transaction had none of a table that goes
anywhere: that is remembered of each transaction, or looked up in what was written before.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from setl.codec.binlog.event import HEADER_BYTES
from setl.model.position import BinlogPosition

_MAX_PREPARED: Final = 10_000
"""Transactions that are remembered; others are looked up."""

_EVENT: Final = struct.Struct("<BiII")  # in one phase, format, bytes of both parts
_TEXT: Final = re.compile(
    r"\s*XA\s+ROLLBACK\s+X'([0-9a-f]*)'\s*,\s*X'([0-9a-f]*)'\s*,\s*(\d+)\s*", re.IGNORECASE
)


class Xid(NamedTuple):
    """What an XA transaction is known by, until it has ended.

    Attributes:
        format: a number that the application chose.
        transaction: the global part.
        branch: the part for this server.
    """

    format: int
    transaction: bytes
    branch: bytes


Matters = Callable[[str, str], bool]
"""Whether the rows of a table, by schema and table, go anywhere."""

Earlier = Callable[[Xid, BinlogPosition], bool | None]
"""Whether what was prepared last under an id, before a position, had rows that matter.

None if the binlog does not have it. Raises SetlError if it cannot be read.
"""


def everything(schema: str, table: str) -> bool:  # noqa: ARG001
    """The `Matters` of a reader for whom all rows count."""
    return True


def nothing(schema: str, table: str) -> bool:  # noqa: ARG001
    """The `Matters` of a reader who applies nothing."""
    return False


def unknown(xid: Xid, position: BinlogPosition) -> bool | None:  # noqa: ARG001
    """The `Earlier` of a reader who looks nothing up."""
    return None


def prepared_xid(event: bytes) -> Xid | None:
    """The id in an XA_PREPARE event; None if the transaction was committed with it.

    Raises:
        struct.error, ValueError: the event is damaged.
    """
    in_one_phase, number, first, second = _EVENT.unpack_from(event, HEADER_BYTES)
    if in_one_phase:
        return None
    at = HEADER_BYTES + _EVENT.size
    transaction, branch = event[at : at + first], event[at + first : at + first + second]
    if len(transaction) != first or len(branch) != second:
        raise ValueError("its id ends behind it")
    return Xid(number, transaction, branch)


class PreparedTransactions:
    """The XA transactions that one stream has read to their PREPARE. Belongs to one thread."""

    def __init__(self, matters: Matters, earlier: Earlier) -> None:
        """Nothing is read yet.

        Args:
            matters: tells of tables.
            earlier: tells of transactions that were prepared in front of the stream's start.
        """
        self._matters = matters
        self._earlier = earlier
        self._open: set[tuple[str, str]] | None = None
        self._mattered: dict[Xid, bool] = {}

    def begin(self, *, xa: bool) -> None:
        """A transaction begins, perhaps one of XA."""
        self._open = set() if xa else None

    def rows(self, schema: str, table: str) -> None:
        """Rows of a table stand in it."""
        if self._open is not None:
            self._open.add((schema, table))

    def prepare(self, event: bytes) -> None:
        """It ends, with an XA_PREPARE event. Raises what `prepared_xid` raises."""
        xid, tables, self._open = prepared_xid(event), self._open, None
        if xid is None:
            return
        self._mattered.pop(xid, None)  # an id may be used again once its transaction has ended
        if tables is None:
            return  # its begin did not say that it is one of XA
        self._mattered[xid] = any(self._matters(*table) for table in tables)
        if len(self._mattered) > _MAX_PREPARED:
            del self._mattered[next(iter(self._mattered))]

    def takes_back(self, text: str, position: BinlogPosition) -> bool:
        """Whether rows that matter are, or may be, taken back by an XA ROLLBACK.

        Args:
            text: the statement.
            position: where it ends.

        Raises:
            SetlError: the transaction had to be looked up, and that failed.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            return True
        transaction, branch, number = match.groups()
        xid = Xid(int(number), bytes.fromhex(transaction), bytes.fromhex(branch))
        mattered = self._mattered.get(xid)
        if mattered is None:
            mattered = self._earlier(xid, position)
        return mattered is not False
