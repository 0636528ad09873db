"""How far standing verification of a pipeline is, and what it found: as the arbiter keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from setl.model.change import Row
from setl.model.key_values import key_from_json, key_to_json
from setl.model.position import stored_number

SAMPLES = 5
"""Rows that are named of a table."""

SAMPLED_TABLES = 20
"""Tables of which rows are named."""

TABLES = 200
"""Tables that are named; what differs in others is counted."""

_TEXT = 300  # characters of a key, a name or an error
_COLUMNS = 20  # names of columns in which a row differs


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that differs.

    Attributes:
        key: its key as text, for people.
        what: ``missing``, ``extra`` or ``different``.
        columns: names of the columns that differ, of a row that both sides have.
    """

    key: str
    what: str
    columns: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        columns = [cut(name) for name in self.columns[:_COLUMNS]]
        return {"key": cut(self.key), "what": self.what, "columns": columns}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> DifferingRow:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        return cls(str(value["key"]), str(value["what"]), tuple(map(str, value["columns"])))


@dataclass(frozen=True, slots=True)
class TableFinding:
    """What a pass found in a table, or has found so far.

    Attributes:
        table: the source tables, ``schema.table``, joined by commas.
        target: the target table or index that they go into.
        missing: keys that only the source has.
        extra: keys that only the target has.
        different: keys that both have, with other values.
        undecided: keys that changed at every look.
        at: when it was found, seconds since 1970.
        error: why the table could not be compared, "" if it could.
        rows: some of the rows that differ.
    """

    table: str
    target: str
    missing: int = 0
    extra: int = 0
    different: int = 0
    undecided: int = 0
    at: float = 0.0
    error: str = ""
    rows: tuple[DifferingRow, ...] = ()

    @property
    def differences(self) -> int:
        """Keys on which the two sides do not agree."""
        return self.missing + self.extra + self.different

    @property
    def silent(self) -> bool:
        """Whether there is nothing to say of the table."""
        return not (self.differences or self.undecided or self.error)

    def of_same_table(self, other: TableFinding) -> bool:
        """Whether both are of the same table and target."""
        return (self.table, self.target) == (other.table, other.target)

    def plus(self, other: TableFinding) -> TableFinding:
        """Together with what was found in another range of the table."""
        return replace(
            self,
            missing=self.missing + other.missing,
            extra=self.extra + other.extra,
            different=self.different + other.different,
            undecided=self.undecided + other.undecided,
            at=other.at or self.at,
            rows=(*self.rows, *other.rows)[:SAMPLES],
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        value: dict[str, Any] = {"table": cut(self.table), "target": cut(self.target)}
        for name in ("missing", "extra", "different", "undecided", "at"):
            value[name] = getattr(self, name)
        value["error"] = cut(self.error)
        value["rows"] = [row.to_json() for row in self.rows[:SAMPLES]]
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TableFinding:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        return cls(
            str(value["table"]),
            str(value["target"]),
            *(stored_number(value[n]) for n in ("missing", "extra", "different", "undecided")),
            at=float(value["at"]),
            error=str(value["error"]),
            rows=tuple(map(DifferingRow.from_json, value["rows"])),
        )


@dataclass(frozen=True, slots=True)
class VerificationPass:
    """One skip all tables, as far as it has come.

    Attributes:
        number: counts passes, from 1; 0 before the first.
        begun: seconds since 1970.
        ended: likewise; 0 before.
        rows: rows of the source compared.
        found: keys found to differ, those repaired since included.
        repaired: of these, keys that were sent again and did not differ any more.
        undecided: keys that changed at every look.
        tables_left_out: tables that could not be compared.
    """

    number: int = 0
    begun: float = 0.0
    ended: float = 0.0
    rows: int = 0
    found: int = 0
    repaired: int = 0
    undecided: int = 0
    tables_left_out: int = 0

    @property
    def differences(self) -> int:
        """Keys that differed and were not repaired."""
        return max(0, self.found - self.repaired)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> VerificationPass:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        return cls(
            stored_number(value["number"]),
            float(value["begun"]),
            float(value["ended"]),
            *(
                stored_number(value[name])
                for name in ("rows", "found", "repaired", "undecided", "tables_left_out")
            ),
        )


@dataclass(frozen=True, slots=True)
class VerificationPosition:
    """Where a pass is.

    Attributes:
        table: see `TableFinding`.
        target: likewise.
        after: values of the columns by which the table is cut, up to which it is compared; None
            at its beginning.
        so_far: what differs in the table up to there.
        warned: whether it was said that the table differs.
        failures: how often comparing the next range has failed.
    """

    table: str
    target: str
    after: Row | None
    so_far: TableFinding
    warned: bool = False
    failures: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse. Raises TypeError for what is no key."""
        return {
            "table": self.table,
            "target": self.target,
            "after": None if self.after is None else key_to_json(self.after),
            "so_far": self.so_far.to_json(),
            "warned": self.warned,
            "failures": self.failures,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> VerificationPosition:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        after = value["after"]
        return cls(
            str(value["table"]),
            str(value["target"]),
            None if after is None else key_from_json(after),
            TableFinding.from_json(value["so_far"]),
            bool(value["warned"]),
            stored_number(value["failures"]),
        )


@dataclass(frozen=True, slots=True)
class RangeRepair:
    """A range whose differing keys are sent again; it is compared once more afterwards.

    Attributes:
        requests: ids of the load requests.
        keys: how many keys these send.
        size: rows that the range was to have.
        found: what differed in it.
    """

    requests: tuple[str, ...]
    keys: int
    size: int
    found: TableFinding

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        return {
            "requests": list(self.requests),
            "keys": self.keys,
            "size": self.size,
            "found": self.found.to_json(),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RangeRepair:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        return cls(
            tuple(map(str, value["requests"])),
            stored_number(value["keys"]),
            stored_number(value["size"]),
            TableFinding.from_json(value["found"]),
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """How far standing verification is, over all leaderships.

    Tables are compared one after another in the order of their names, and each in the order of
    its key. So one place tells all: what lies before it is compared.

    Attributes:
        epoch: of the leadership that wrote this; 0 before the first.
        since: when the first pass began, seconds since 1970; 0 before.
        now: the pass that is under way, or the last one.
        rows_expected: rows that it will compare, as the source estimates them.
        position: where it is; None before the first table and after the last.
        repair: what is being repaired at the position, None for nothing.
        asked: keys that this pass has asked to be sent again.
        repairs_no_more: whether more differed than a pass repairs.
        last: the last pass that came to its end, None if none has.
        findings: tables of which there is something to say, as they were found last.
        unnamed_tables: differing tables besides, which the last pass or this one has found, of
            which nothing but the number is kept.
        unnamed_differences: what differs in them.
    """

    epoch: int = 0
    since: float = 0.0
    now: VerificationPass = VerificationPass()
    rows_expected: int | None = None
    position: VerificationPosition | None = None
    repair: RangeRepair | None = None
    asked: int = 0
    repairs_no_more: bool = False
    last: VerificationPass | None = None
    findings: tuple[TableFinding, ...] = ()
    unnamed_tables: int = 0
    unnamed_differences: int = 0

    @property
    def under_way(self) -> bool:
        """Whether a pass has begun and not ended."""
        return bool(self.now.number) and not self.now.ended

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        return {
            "epoch": self.epoch,
            "since": self.since,
            "now": self.now.to_json(),
            "rows_expected": self.rows_expected,
            "place": self.position.to_json() if self.position else None,
            "repair": self.repair.to_json() if self.repair else None,
            "asked": self.asked,
            "repairs_no_more": self.repairs_no_more,
            "last": self.last.to_json() if self.last else None,
            "findings": [finding.to_json() for finding in self.findings[:TABLES]],
            "unnamed_tables": self.unnamed_tables,
            "unnamed_differences": self.unnamed_differences,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Verification:
        """Inverse of `to_json`; raises TypeError, ValueError or KeyError for anything else."""
        expected, position, repair, last = (
            value[name] for name in ("rows_expected", "place", "repair", "last")
        )
        return cls(
            epoch=stored_number(value["epoch"]),
            since=float(value["since"]),
            now=VerificationPass.from_json(value["now"]),
            rows_expected=None if expected is None else stored_number(expected),
            position=None if position is None else VerificationPosition.from_json(position),
            repair=None if repair is None else RangeRepair.from_json(repair),
            asked=stored_number(value["asked"]),
            repairs_no_more=bool(value["repairs_no_more"]),
            last=None if last is None else VerificationPass.from_json(last),
            findings=tuple(
                TableFinding.from_json(each)
                for each in cast("Sequence[dict[str, Any]]", value["findings"])
            ),
            unnamed_tables=stored_number(value["unnamed_tables"]),
            unnamed_differences=stored_number(value["unnamed_differences"]),
        )


def no_finding(table: str, target: str) -> TableFinding:
    """Nothing found (so far) in a table."""
    return TableFinding(cut(table), cut(target))


def cut(text: str) -> str:
    """A text for people, not longer than is kept."""
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"
