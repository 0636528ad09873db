"""Decisions about rows that both sites write, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

MAX_CONFLICTS: Final = 10_000
"""Decisions of each pipeline that a target keeps, the newest."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One decision; rows are JSON objects, None where there was no row.

    Attributes:
        id: grows with time.
        found_at: when, seconds since 1970 by the target's clock.
        table: ``schema.table`` of the target.
        key: the row's key.
        policy: ``home`` or ``newest: column``.
        winner: ``source`` or ``target``; ``forgot``, with no row, where too many rows waited for
            the other site.
        version: place of the change in the source.
        incoming: what the source said.
        held: what the target held.
        result: what the target held afterwards.
    """

    id: int
    found_at: float
    table: str
    key: dict[str, Any]
    policy: str
    winner: str
    version: int
    incoming: dict[str, Any] | None
    held: dict[str, Any] | None
    result: dict[str, Any] | None


class ConflictList(Protocol):
    """The decisions that a target has noted."""

    def newest(self, pipeline: str, *, table: str = "", limit: int = 20) -> Sequence[Conflict]:
        """The newest decisions of a pipeline in which one side lost, the newest last.

        Args:
            pipeline: ``channel/pipeline``.
            table: only this ``schema.table`` of the target, "" for all.
            limit: how many at most.

        Raises:
            SetlError: the target cannot be asked.
        """
        ...

    def unpassed(self, pipeline: str) -> int:
        """Of how many rows a pipeline keeps something until the opposite one has read it.

        Raises:
            SetlError: the target cannot be asked.
        """
        ...

    def trim(self, pipeline: str, keep: int) -> int:
        """Delete all but the newest decisions of a pipeline; returns how many were deleted.

        Raises:
            SetlError: the target cannot be asked.
        """
        ...
