"""Rows that both sites write: what travels of them to the place where conflicts are decided."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from setl.model.change import Row, Value
from setl.model.schema import Kind

CONFLICT_TABLE: Final = ("retl", "setl_conflict")
"""Where decisions are written down, see ``sql/conflict.sql``."""


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
    """One thing that the source says of one key, in source order.

    A local change of the source has neither `asks` nor `answers`. See
    `setl.load.conflicts.agreement` for what the other two are.

    Attributes:
        version: order in the source, see `setl.model.position.document_version`.
        key: values of the key columns.
        before: the row that the change replaces, None for no row.
        after: the row that it leaves, None for no row.
        deleted: the row that was there last, if `after` is None and that is known.
        asks: id of the question, or "".
        answers: id of the question that it answers, or "".
    """

    version: int
    key: Row
    before: Row | None
    after: Row | None
    deleted: Row | None = None
    asks: str = ""
    answers: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """What a stretch of the source says of the rows of one target table, each thing of it.

    Attributes:
        target: schema and table.
        policy: who wins.
        newest: the target column that says how new a row is; "" for the policy `home`.
        columns: the target's columns, in the order of the rows of `steps`.
        key: the names of the key columns, in the order of the keys of `steps`.
        steps: what it says, in source order.
    """

    target: tuple[str, str]
    policy: ConflictPolicy
    newest: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    steps: list[Step] = field(default_factory=list[Step])


Values = Mapping[str, Value]
"""A row by its columns' names."""


def values_text(values: Values | None) -> str | None:
    """A row as JSON text in ASCII; bytes stand in an object, in base64. None for no row."""
    if values is None:
        return None
    return json.dumps({name: _packed(value) for name, value in values.items()})


def values_of(text: str | None) -> dict[str, Value] | None:
    """Inverse of `values_text`; raises ValueError for what it did not write."""
    if text is None:
        return None
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not a row")  # noqa: TRY004 - as for text that is no JSON
    return {name: _unpacked(value) for name, value in cast("dict[str, Any]", found).items()}


def _packed(value: Value) -> Any:
    return {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Value:
    if isinstance(value, dict):
        return b64decode(str(cast("dict[str, Any]", value)["base64"]))
    return value
