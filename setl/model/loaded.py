"""What a load has done: counted by sinks and tasks, and added up."""

from __future__ import annotations

from dataclasses import dataclass, field

from setl.model.histogram import Histogram
from setl.model.table_rows import ByTable, TableRows, added

_NONE = Histogram()


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a sink, a task or a whole load has done. The sum of two is what both have done.

    Attributes:
        rows: row changes decoded, before compaction.
        redelivered: of these, changes that an earlier leadership had applied.
        upserts: rows or documents written.
        deletes: deletes sent.
        stale: writes the target refused because it holds something newer (Elasticsearch 409).
        held: the highest version of what the target holds in their place; 0 if it did not say.
        seconds: time spent in the target.
        transform_seconds: time spent in decoding, compaction and mapping.
        conflicts_source: rows changed on both sites of which the source's stayed.
        conflicts_target: rows changed on both sites of which the target's stayed.
        dead_letters: faulty rows that were put aside.
        tables_with_dead_letters: ``schema.table`` or indexes that these were meant for.
        fault: the error of the first of them, "" if there is none.
        tables: what was written to each table or index.
        statements: times of the statements or requests that wrote it, in seconds.
        began: when the first task began to write, seconds since 1970; 0 if none did.
    """

    rows: int = 0
    redelivered: int = 0
    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    held: int = 0
    seconds: float = 0.0
    transform_seconds: float = 0.0
    conflicts_source: int = 0
    conflicts_target: int = 0
    dead_letters: int = 0
    tables_with_dead_letters: frozenset[str] = frozenset()
    fault: str = ""
    tables: ByTable = field(default_factory=dict[str, TableRows])
    statements: Histogram = _NONE
    began: float = 0.0

    def __add__(self, other: Loaded) -> Loaded:
        return Loaded(
            rows=self.rows + other.rows,
            redelivered=self.redelivered + other.redelivered,
            upserts=self.upserts + other.upserts,
            deletes=self.deletes + other.deletes,
            stale=self.stale + other.stale,
            held=max(self.held, other.held),
            seconds=self.seconds + other.seconds,
            transform_seconds=self.transform_seconds + other.transform_seconds,
            conflicts_source=self.conflicts_source + other.conflicts_source,
            conflicts_target=self.conflicts_target + other.conflicts_target,
            dead_letters=self.dead_letters + other.dead_letters,
            tables_with_dead_letters=self.tables_with_dead_letters | other.tables_with_dead_letters,
            fault=self.fault or other.fault,
            tables=added(self.tables, other.tables),
            statements=self.statements + other.statements,
            began=min(self.began or other.began, other.began or self.began),
        )
