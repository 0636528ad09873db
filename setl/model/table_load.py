"""A load of whole tables: how far it has come, as it is kept with the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from setl.model.change import Row, Value
from setl.model.position import (
    Position,
    position_from_json,
    position_to_json,
    stored_number,
)


@dataclass(frozen=True, slots=True)
class TableLoad:
    """How far whole tables are loaded beside the stream.

    Tables are loaded one after another in the order of their names, and each in the order of its
    key. So one place tells all: what lies before it is loaded. A table that is created later
    needs no load, since all its rows are in the stream.

    Attributes:
        id: tells this load from others of the pipeline.
        tables: the source tables to load, as ``schema.table``; empty for all that are mapped.
        table: the source table that is being loaded, "" before the first.
        after: values of the columns by which that table is cut, up to which its rows are loaded;
            None for none.
        rows: rows read from the source.
        begun: when the load began, seconds since 1970.
        until: where the source's stream ended when the last rows had been read; None before. Once
            the stream is applied up to there, the target's rows are the source's of that place;
            before, some may be newer than the stream has come.
        ended: when that was so, seconds since 1970; 0 before.
        cancelled: whether somebody ended it before it was done.
    """

    id: str
    tables: tuple[str, ...] = ()
    table: str = ""
    after: Row | None = None
    rows: int = 0
    begun: float = 0.0
    until: Position | None = None
    ended: float = 0.0
    cancelled: bool = False

    @property
    def reads(self) -> bool:
        """Whether rows are left to be read."""
        return self.until is None and not self.ended

    def wants(self, table: str) -> bool:
        """Whether a source table, ``schema.table``, belongs to it."""
        return not self.tables or table in self.tables

    def left(self, existing: Sequence[str]) -> list[str]:
        """Those of the tables that are there which are not loaded yet, in order."""
        wanted = sorted(name for name in existing if self.wants(name))
        under_way = "" if self.after is None else self.table
        return [name for name in wanted if name > self.table or name == under_way]

    def at(self, table: str, after: Row | None, rows: int) -> TableLoad:
        """The load after so many further rows; `after` is None if the table is done."""
        return replace(self, table=table, after=after, rows=self.rows + rows)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        value: dict[str, Any] = {"id": self.id, "rows": self.rows, "begun": self.begun}
        if self.tables:
            value["tables"] = list(self.tables)
        if self.table:
            value["table"] = self.table
        if self.after is not None:
            value["after"] = [_value_to_json(each) for each in self.after]
        if self.until is not None:
            value["until"] = position_to_json(self.until)
        if self.ended:
            value["ended"] = self.ended
        if self.cancelled:
            value["cancelled"] = True
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TableLoad:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        after, until = value.get("after"), value.get("until")
        return cls(
            id=str(value["id"]),
            tables=tuple(map(str, value.get("tables", ()))),
            table=str(value.get("table", "")),
            after=None if after is None else tuple(map(_value_from_json, after)),
            rows=stored_number(value.get("rows", 0)),
            begun=float(value.get("begun", 0)),
            until=None if until is None else position_from_json(until),
            ended=float(value.get("ended", 0)),
            cancelled=bool(value.get("cancelled", False)),
        )


def _value_to_json(value: Value) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"no value of a key: {value!r}")


def _value_from_json(value: Any) -> Value:
    if isinstance(value, dict):
        return bytes.fromhex(str(cast("dict[str, Any]", value)["hex"]))
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"no value of a key: {value!r}")
