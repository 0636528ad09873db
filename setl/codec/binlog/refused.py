"""The errors for what cannot be replicated from a binlog."""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.event import EventType
from setl.errors import FatalError
from setl.model.position import BinlogPosition

_OLD_ROWS: Final = ("rows in the format of MySQL 5.1.5", "Upgrade the source")
_OLD_EVENTS: Final = ("events in the format of MySQL 4", "Upgrade the source")
_LOAD: Final = ", and load the tables that it changed with `setl load PIPELINE --replace`"
_PIECES: Final = (
    "SET GLOBAL binlog_row_event_fragment_threshold on the source to more bytes than its largest"
    " row has, and let clients connect again. "
)
_PAST: Final = (
    "`setl stop` the channel, move on with `setl position reset PIPELINE --to {position}`, "
    "which may name the next position to take, and start it"
)

_REFUSED: Final[dict[int, tuple[str, str]]] = {
    **dict.fromkeys((1, 6, 7, 8, 10, 12), _OLD_EVENTS),
    EventType.OLD_WRITE_ROWS: _OLD_ROWS,
    EventType.OLD_UPDATE_ROWS: _OLD_ROWS,
    EventType.OLD_DELETE_ROWS: _OLD_ROWS,
    EventType.MARIADB_PARTIAL_ROWS: (
        "a row event in pieces, which MariaDB from 12.3 on writes of the largest ones",
        f"{_PIECES}{_PAST}{_LOAD}",
    ),
    EventType.INCIDENT: (
        "an incident: the source says that it lost changes",
        f"{_PAST}. Load the tables again with `setl load PIPELINE --replace`",
    ),
}


def past(position: BinlogPosition) -> str:
    """How a pipeline is moved past what ends at a position; a sentence without its full stop.

    A load alone does not help: its rows go in between those of the stream, which stands still.
    """
    return _PAST.format(position=position)


def refused(kind: int, position: BinlogPosition) -> FatalError:
    """The error about an event of a type that cannot be replicated."""
    name, hint = _REFUSED.get(
        kind, ("events of a type that is not known", "This server's version is too new")
    )
    hint = hint.format(position=position)
    return FatalError(f"the binlog holds {name} (event type {kind})", hint=hint, position=position)


def damaged(kind: int, reason: str, position: BinlogPosition) -> FatalError:
    """The error about an event whose bytes make no sense."""
    return FatalError(
        f"an event of type {kind} in the binlog is damaged: {reason}",
        hint="Check the binlog with mysqlbinlog --verify-binlog-checksum on the source",
        position=position,
    )


def unknown_layout(what: str, position: BinlogPosition) -> FatalError:
    """The error about a binlog whose events begin otherwise than is taken for granted."""
    return FatalError(
        f"the binlog says that its events are laid out in a way that is not known: {what}",
        hint="Have a MySQL from 8.0.1 or a MariaDB from 10.5 on write it; if one has, check the"
        " binlog with mysqlbinlog --verify-binlog-checksum on the source",
        position=position,
    )


def unknown_statement(schema: str, text: str, position: BinlogPosition) -> FatalError:
    """The error about a statement of which it is not known that it changes no rows."""
    return FatalError(
        f"the source logged a statement that is not known, and may change rows: {text[:80]!r}",
        hint="See what it did to the tables that are mapped, and do that to the target. "
        + past(position),
        position=position,
        schema=schema,
    )


def taken_back(text: str, position: BinlogPosition, transaction: str) -> FatalError:
    """The error about rows that did not take effect, after they were replicated."""
    return FatalError(
        f"the source took back rows that were read already: {text[:80]}",
        hint=past(position) + ". Then compare with `setl verify --repair`",
        position=position,
        transaction=transaction,
    )


def too_dense(size: int, position: BinlogPosition, transaction: str) -> FatalError:
    """The error about a compressed transaction with more events than bytes to place them at."""
    return FatalError(
        f"a transaction was compressed to {size} bytes and holds more changes than that, so "
        "they cannot be distinguished by their places",
        hint="SET SESSION binlog_transaction_compression=OFF where such transactions come from. "
        + past(position)
        + _LOAD,
        position=position,
        transaction=transaction,
    )
