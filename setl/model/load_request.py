"""What an operator asks of a pipeline about whole tables, or about rows of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from setl.counting import count
from setl.model.change import Row
from setl.model.key_values import key_from_json, key_to_json
from setl.model.position import stored_number

KEYS_PER_REQUEST = 5_000
"""So that a request fits where requests are kept: ZooKeeper takes a megabyte."""

FREE_GATE = "free gate"
"""The reason of requests that rows of ``retl.retl_buffer`` make."""

_MOST_BYTES = 400_000  # of keys; as JSON they are larger


_NAMED = 5
"""Tables that a request names where people read it."""


class RequestState(Enum):
    """What becomes of a request."""

    WAITING = "waiting"  # or being carried out
    PAUSED = "paused"  # by an operator; it goes on where it was
    CANCELLED = "cancelled"  # by an operator; what is loaded stays
    DONE = "done"
    FAILED = "failed"

    @property
    def is_open(self) -> bool:
        """Whether it is still to be carried out, now or later."""
        return self in (RequestState.WAITING, RequestState.PAUSED)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Rows of the source that are read and written into the target, at a position of the stream.

    Either all rows of some tables, or those of them for which a condition is true, or the rows
    of one table that have one of some keys. Of a key that the source does not have any more, the
    target's row is deleted.

    Attributes:
        id: names it within its pipeline; "" before it is stored.
        tables: source tables as ``schema.table``.
        entries: entries of the channel file's `tables` whose tables are meant, see
            `setl.channel.routes.routed_table.RoutedTable.name`. Without these and `tables`: all.
        where: SQL condition over the source's columns, as its server understands it; "" for all
            rows.
        key: names of the columns of `keys`; empty for those of the table's own key.
        keys: values of these columns, in their normal form or as text; empty for all rows, and once
            it has ended.
        keys_before: how many keys these were, once it has ended: they are not kept any more.
        into_empty: whether it is refused if the target has rows already.
        reason: what it is for, a word for people: ``start`` of what the channel file asks for,
            ``load``, ``resend``, ``repair``, ``free gate``.
        by: who asked, for people.
        sent: when, seconds since 1970.
        state: what became of it.
        answer: the outcome in a sentence, "" before.
        rows: rows that were read, once it has ended.
        ended: when, seconds since 1970; 0 before.
        revision: for compare-and-set.
    """

    id: str = ""
    tables: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    where: str = ""
    key: tuple[str, ...] = ()
    keys: tuple[Row, ...] = ()
    keys_before: int = 0
    into_empty: bool = False
    reason: str = "load"
    by: str = ""
    sent: float = 0.0
    state: RequestState = RequestState.WAITING
    answer: str = ""
    rows: int = 0
    ended: float = 0.0
    revision: int = 0

    @property
    def narrowed(self) -> bool:
        """Whether it says which rows of a table it wants."""
        return bool(self.where or self.keys or self.keys_before)

    @property
    def what(self) -> str:
        """What is to be read, for people: of many tables, the first."""
        # An entry that writes to tables of the same name ends with its arrow.
        named = self.tables or tuple(entry.removesuffix(" ->") for entry in self.entries)
        tables = ", ".join(named[:_NAMED]) or "all tables"
        if more := len(named[_NAMED:]):
            tables += f" and {more} more"
        if keys := self.keys_before or len(self.keys):
            return f"{count(keys, 'key')} of {tables}"
        return f"{tables} where {self.where}" if self.where else tables

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse.

        Of a request that has ended, keys are only counted: nobody needs them, and all requests are
        read each time that somebody looks what became of one.
        """
        value: dict[str, Any] = {
            "tables": list(self.tables),
            "entries": list(self.entries),
            "where": self.where,
            "reason": self.reason,
            "by": self.by,
            "sent": self.sent,
            "state": self.state.value,
            "answer": self.answer,
            "rows": self.rows,
            "ended": self.ended,
        }
        if self.into_empty:
            value["into_empty"] = True
        if self.keys or self.keys_before:
            value["key"] = list(self.key)
        if self.ended and (keys := self.keys_before or len(self.keys)):
            value["keys_before"] = keys
        elif self.keys:
            value["keys"] = [key_to_json(key) for key in self.keys]
        return value

    @classmethod
    def from_json(cls, ident: str, value: dict[str, Any], revision: int) -> LoadRequest:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        keys = cast("Sequence[Any]", value.get("keys", ()))
        ended = float(value.get("ended", 0))
        before = stored_number(value.get("keys_before", 0))
        return cls(
            id=ident,
            tables=tuple(map(str, value.get("tables", ()))),
            entries=tuple(map(str, value.get("entries", ()))),
            where=str(value.get("where", "")),
            key=tuple(map(str, value.get("key", ()))),
            keys=tuple(key_from_json(key) for key in keys),
            keys_before=before,
            into_empty=bool(value.get("into_empty", False)),
            reason=str(value.get("reason", "load")),
            by=str(value.get("by", "")),
            sent=float(value.get("sent", 0)),
            state=RequestState(value["state"]),
            answer=str(value.get("answer", "")),
            rows=stored_number(value.get("rows", 0)),
            ended=ended,
            revision=revision,
        )


def in_pieces(keys: Iterable[Row]) -> Iterator[Sequence[Row]]:
    """Keys in pieces that fit into one request each."""
    piece: list[Row] = []
    size = 0
    for key in keys:
        piece.append(key)
        size += sum(2 * len(v) if isinstance(v, bytes) else len(str(v)) + 4 for v in key)
        if len(piece) >= KEYS_PER_REQUEST or size >= _MOST_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
