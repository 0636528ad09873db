"""Rows that both sites write: the values from which conflicts are decided."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Kind

RECENT_TABLE: Final = ("retl", "setl_recent")
"""Where each site tells what it has taken in of the other's writes, see ``sql/conflict.sql``."""


COMPARABLE: Final = frozenset({
    Kind.INTEGER, Kind.DECIMAL, Kind.YEAR, Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP,
})  # fmt: skip
"""Kinds of columns that can say which row is newer; their texts sort as what they mean."""


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """How a pipeline decides between its source's row and its target's. Picklable.

    Attributes:
        newest: name of the source column that says how new a row is; "" for the policy `home`.
        from_home: whether the source is the home site of the channel; else the target is.
    """

    newest: str
    from_home: bool

    @property
    def name(self) -> str:
        """The policy as the channel file spells it."""
        return f"newest: {self.newest}" if self.newest else "home"


class Step(NamedTuple):
    """A local change of the source, of one key.

    Attributes:
        version: order in the source, see `setl.model.position.document_version`.
        key: values of the key columns.
        before: the row that the change replaces, None for no row.
        after: the row that it leaves, None for no row.
    """

    version: int
    key: Row
    before: Row | None
    after: Row | None


class SiteWrites(NamedTuple):
    """What the clients of one site did to a row, as far as it matters to the other.

    Attributes:
        news: (version, value) of its writes, in their order: positions in that site's stream, and
            the value that says how new the row was. A value that a later one reaches is left out.
        seen: up to which version the last of these writes has seen the other site's.
        row: what the last of them left, None for no row.
    """

    news: tuple[tuple[int, Value], ...]
    seen: int
    row: Row | None

    @property
    def last(self) -> int:
        """The version of the last write."""
        return self.news[-1][0]


class WritesSeen(NamedTuple):
    """What the source tells of the target's own writes: it has taken them in.

    Attributes:
        version: where in the source it tells so.
        key: values of the key columns.
        writes: what the target's clients did.
    """

    version: int
    key: Row
    writes: SiteWrites


class ReadRow(NamedTuple):
    """A row that was read from the source's table, and that perhaps nobody ever wrote.

    Attributes:
        version: how far the source had come, or where in the source it tells of it.
        key: values of the key columns.
        row: the row, None if there is none.
    """

    version: int
    key: Row
    row: Row | None


class Mark(NamedTuple):
    """How far the source has come with the target's stream, at a position of its own.

    Attributes:
        version: the position.
        number: of the row of ``retl.setl_recent``; these grow.
        through: up to which version it has taken in the target's writes; 0 if it says nothing
            but how far it has read.
        passed: up to which number it has read the target's ``retl.setl_recent``.
    """

    version: int
    number: int
    through: int
    passed: int


class ReturningColumns(NamedTuple):
    """Which columns of a target table go to the source, so that the source has them, or will.

    Attributes:
        only: their names in lower case; None for all but `never`.
        never: names in lower case of columns that stay.
    """

    only: frozenset[str] | None
    never: frozenset[str]

    def has(self, column: str) -> bool:
        """Whether a column is one of them."""
        name = column.lower()
        return name not in self.never and (self.only is None or name in self.only)


@dataclass(frozen=True, slots=True)
class History:
    """What a stretch of the source says of the rows of one target table, each thing of it.

    Attributes:
        target: schema and table.
        policy: who wins.
        newest: the target column that says how new a row is; "" for the policy `home`.
        columns: the target's columns, in the order of the rows of `steps`.
        key: the names of the key columns, in the order of the keys of `steps`.
        steps: its changes, in source order.
        writes_seen: what it tells of the target's own writes, in source order.
        marks: how far it has come, in source order; in a history of `RECENT_TABLE`.
        held: rows of which it tells that it holds them, in source order.
        read: rows that were read from its table; nothing else is in the history then.
        returning: the target's columns that go back; None if that is not known. Of these, the
            source's table did not have those yet that `columns` lacks.
    """

    target: tuple[str, str]
    policy: ConflictPolicy
    newest: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    steps: list[Step] = field(default_factory=list[Step])
    writes_seen: list[WritesSeen] = field(default_factory=list[WritesSeen])
    marks: list[Mark] = field(default_factory=list[Mark])
    held: list[ReadRow] = field(default_factory=list[ReadRow])
    read: list[ReadRow] = field(default_factory=list[ReadRow])
    returning: ReturningColumns | None = None


Values = Mapping[str, Value]
"""A row by its columns' names."""


def values_text(values: Values | None) -> str | None:
    """A row as JSON text in ASCII; bytes stand in an object, in base64. None for no row."""
    return None if values is None else json.dumps(values_object(values))


def values_object(values: Values | None) -> dict[str, Any] | None:
    """A row as JSON values, bytes as in `values_text`."""
    if values is None:
        return None
    return {name: _packed(value) for name, value in values.items()}


def values_of(text: str | None) -> dict[str, Value] | None:
    """Inverse of `values_text`; raises ValueError for what it did not write."""
    if text is None:
        return None
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not a row")  # noqa: TRY004 - as for text that is no JSON
    return {name: value_of(value) for name, value in cast("dict[str, Any]", found).items()}


def site_writes_text(writes: SiteWrites, columns: Sequence[str]) -> str:
    """What a site did to a row as JSON text."""
    return json.dumps(site_writes_values(writes, columns))


def site_writes_values(writes: SiteWrites, columns: Sequence[str]) -> dict[str, Any]:
    """What a site did to a row as JSON values."""
    row: Values | None = None
    if writes.row is not None:
        row = {n: v for n, v in zip(columns, writes.row, strict=True) if v is not ABSENT}
    return {
        "news": [[version, _packed(value)] for version, value in writes.news],
        "seen": writes.seen,
        "row": values_object(row),
    }


def site_writes_from(found: Mapping[str, Any], columns: Sequence[str]) -> SiteWrites:
    """Inverse of `site_writes_values`; a column that it does not have is absent.

    Raises ValueError, KeyError or TypeError for what `site_writes_values` did not make.
    """
    news = tuple((int(version), value_of(value)) for version, value in found["news"])
    return SiteWrites(news, int(found["seen"]), row_from(found["row"], columns))


def row_from(found: Mapping[str, Any] | None, columns: Sequence[str]) -> Row | None:
    """Inverse of `values_object`; a column that it does not have is absent."""
    if found is None:
        return None
    return tuple(value_of(found[name]) if name in found else ABSENT for name in columns)


def _packed(value: Value) -> Any:
    return {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value


def value_of(value: Any) -> Value:
    """A value from how it stands in JSON."""
    if isinstance(value, dict):
        return b64decode(str(cast("dict[str, Any]", value)["base64"]))
    return value
