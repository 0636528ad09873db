"""A load of whole tables: how far it has come, as it is kept with the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from setl.model.change import Row
from setl.model.key_values import key_from_json, key_to_json
from setl.model.position import (
    Position,
    position_from_json,
    position_to_json,
    stored_number,
)


@dataclass(frozen=True, slots=True)
class TableLoad:
    """How far whole tables are loaded alongside the stream.

    Tables are loaded one after another in the order of their names, and each in the order of its
    key. So one place tells all: what lies before it is loaded. A table that is created later
    needs no load, since all its rows are in the stream.

    Attributes:
        id: that of the request that it carries out. Ids begin again where requests are kept again,
            after the checkpoint; see `sent`.
        sent: when that request was made, seconds since 1970, which tells it from others of the
            same id.
        tables: the source tables to load, as ``schema.table``.
        entries: entries of the channel file's `tables` whose tables are to be loaded, see
            `setl.channel.routes.routed_table.RoutedTable.name`. Without these and `tables`: all.
        narrowed: whether the request says which rows, and nothing can be read without it.
        table: the source table that is being loaded, "" before the first.
        after: values of the columns by which that table is cut, up to which its rows are loaded;
            of a request with keys, how many of these are done; None for none.
        rows: rows read from the source.
        table_rows: of `table`, rows that were looked at so far.
        begun: when the load began, seconds since 1970.
        until: where the source's stream ended when the last rows had been read; None before, and
            where only `until_time` says it. Once the stream is applied up to there, the target's
            rows are the source's of that position; before, some may be newer than the stream has
            come.
        until_time: the source's clock at that moment, seconds since 1970, of a stream whose
            positions nobody can ask for; 0 else.
        ended: when the stream had come there, seconds since 1970; 0 before.
        cancelled: whether somebody ended it before it was done.
        error: why it ended before it was done, "" if it did not.
        taken: entries of the channel file whose tables this load or one before it has taken up.
            None in what an older version has stored, which took all.
        only: the tables of this pass, as ``schema.table``; empty for all that are wanted. A skip
            some follows where a schema change of the stream has put their rows elsewhere.
        again: the tables of the next pass, empty for none.
        origins: names that tables were given since the load began, each with the name that the
            table which has it now had then; its own for one that has it back, or that is gone.
        read_to: where the source's stream ended when rows had been read last, if there are more to
            read; None before the first ones, and where nobody can ask.
        whole: tables without a key that are read, as ``schema.table``. Changes of them that the
            stream has before the position at which they were read are left out of it.
        acted: tables that may lack rows since actions of foreign keys ran meanwhile, as
            ``schema.table``.
    """

    id: str
    tables: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    narrowed: bool = False
    table: str = ""
    after: Row | None = None
    rows: int = 0
    begun: float = 0.0
    until: Position | None = None
    until_time: float = 0.0
    ended: float = 0.0
    cancelled: bool = False
    error: str = ""
    taken: tuple[str, ...] | None = None
    only: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    origins: tuple[tuple[str, str], ...] = ()
    table_rows: int = 0
    sent: float = 0.0
    read_to: Position | None = None
    whole: tuple[str, ...] = ()
    acted: tuple[str, ...] = ()

    @property
    def reads(self) -> bool:
        """Whether rows are left to be read."""
        return self.until is None and not self.until_time and not self.ended

    @property
    def unreached(self) -> Position | None:
        """A position before which the target may have rows that the stream has not brought yet."""
        return None if self.ended else self.until or self.read_to

    @property
    def elsewhere(self) -> TableLoad:
        """The load where the stream has other places, of which no end is known."""
        return replace(self, until=None, read_to=self.unreached)

    @property
    def goes_on(self) -> bool:
        """Whether nobody ended it and nothing went wrong."""
        return not self.cancelled and not self.error

    def left(self, wanted: Sequence[str]) -> list[str]:
        """Those of the tables that it wants which are not loaded yet, in order."""
        under_way = "" if self.after is None else self.table
        mine = [name for name in wanted if not self.only or name in self.only]
        return sorted(name for name in mine if name > self.table or name == under_way)

    def with_again(self, tables: Sequence[str], origins: tuple[tuple[str, str], ...]) -> TableLoad:
        """The load with tables that are to be read from their beginning, under their present names.

        Args:
            tables: them.
            origins: see the class.
        """
        again = tuple(dict.fromkeys((*self.again, *tables)))
        after = None if self.table in tables else self.after
        moved = replace(self.elsewhere, after=after, until_time=0.0)
        return replace(moved, again=again, origins=origins)

    @property
    def next_round(self) -> TableLoad:
        """The load when a pass is over and `again` asks for another one."""
        return replace(self, table="", table_rows=0, after=None, only=self.again, again=())

    def at(self, table: str, after: Row | None, rows: int) -> TableLoad:
        """The load after so many further rows; `after` is None if the table is done."""
        rows += self.table_rows if table == self.table else 0
        return replace(self, table=table, after=after, table_rows=rows)

    def with_whole(self, table: str) -> TableLoad:
        """The load with one more table that was read as a whole."""
        return replace(self, whole=tuple(dict.fromkeys((*self.whole, table))))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        value: dict[str, Any] = {"id": self.id, "rows": self.rows, "begun": self.begun}
        optional: dict[str, Any] = {
            "tables": list(self.tables),
            "entries": list(self.entries),
            "narrowed": self.narrowed,
            "table": self.table,
            "table_rows": self.table_rows,
            "until_time": self.until_time,
            "ended": self.ended,
            "cancelled": self.cancelled,
            "error": self.error,
            "only": list(self.only),
            "again": list(self.again),
            "origins": [list(pair) for pair in self.origins],
            "sent": self.sent,
            "whole": list(self.whole),
            "acted": list(self.acted),
        }
        value |= {name: held for name, held in optional.items() if held}
        if self.after is not None:
            value["after"] = key_to_json(self.after)
        if self.until is not None:
            value["until"] = position_to_json(self.until)
        if self.read_to is not None:
            value["read_to"] = position_to_json(self.read_to)
        if self.taken is not None:
            value["taken"] = list(self.taken)
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TableLoad:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        after, until, taken = value.get("after"), value.get("until"), value.get("taken")
        read_to = value.get("read_to")
        return cls(
            id=str(value["id"]),
            tables=tuple(map(str, value.get("tables", ()))),
            entries=tuple(map(str, value.get("entries", ()))),
            narrowed=bool(value.get("narrowed", False)),
            table=str(value.get("table", "")),
            after=None if after is None else key_from_json(after),
            rows=stored_number(value.get("rows", 0)),
            begun=float(value.get("begun", 0)),
            until=None if until is None else position_from_json(until),
            until_time=float(value.get("until_time", 0)),
            ended=float(value.get("ended", 0)),
            cancelled=bool(value.get("cancelled", False)),
            error=str(value.get("error", "")),
            taken=None if taken is None else tuple(map(str, taken)),
            only=tuple(map(str, value.get("only", ()))),
            again=tuple(map(str, value.get("again", ()))),
            origins=tuple((str(now), str(before)) for now, before in value.get("origins", ())),
            table_rows=stored_number(value.get("table_rows", 0)),
            sent=float(value.get("sent", 0)),
            read_to=None if read_to is None else position_from_json(read_to),
            whole=tuple(map(str, value.get("whole", ()))),
            acted=tuple(map(str, value.get("acted", ()))),
        )
