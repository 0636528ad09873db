"""What is told of a pipeline: its state, its figures, and what a change of leadership has cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from setl.model.standing import TableFinding, VerificationPass
from setl.model.table_load import TableLoad
from setl.model.table_rows import ByTable, TableRows
from setl.run.measured.pace import Stage

MOST_SCHEMAS = 100
"""Schemas of which passed statements are counted one by one."""


WAITING = "waiting"
COMPARING = "comparing"
REPAIRING = "repairing"
THROTTLED = "throttled"
FAILING = "failing"


@dataclass(frozen=True, slots=True)
class VerifiedSoFar:
    """Counters of one leadership.

    Attributes:
        rows: rows of the source compared.
        found: keys found to differ, those repaired since included.
        repaired: of these, keys that were sent again and did not differ any more.
    """

    rows: int = 0
    found: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class VerificationFigures:
    """How standing verification does.

    Attributes:
        state: ``waiting`` for the next pass, ``comparing``, ``repairing``, ``throttled`` or
            ``failing``.
        waits_for: what it is throttled by, "" for nothing.
        error: why it could not compare, "" if it could.
        number: the pass that is under way, or the last one; 0 before the first.
        begun: when that began, seconds since 1970; 0 before the first.
        table: the table that is compared, "" for none.
        rows: rows of the source compared in this pass.
        rows_expected: rows that it will compare, as the source estimates them; None if unknown.
        coverage: how much of the pass is done, from 0 to 1.
        next_at: when the next pass is to begin, seconds since 1970; None while one is under way.
        age: seconds since the last whole pass ended, or since the first began while none has
            ended; None before.
        differences: keys that differ, as far as is known.
        undecided: keys that changed at every look, in this pass.
        tables_left_out: tables that could not be compared in this pass.
        repaired: keys repaired in this pass.
        repairs_no_more: why nothing more is repaired in this pass, "" if it is.
        last: the last whole pass, None if there was none.
        findings: tables of which there is something to say.
        unnamed_tables: differing tables besides.
        whole: why some targets are compared as a whole each time, by their name; as far as this
            leadership has seen it.
        counters: of this leadership.
    """

    state: str
    waits_for: str = ""
    error: str = ""
    number: int = 0
    begun: float = 0.0
    table: str = ""
    rows: int = 0
    rows_expected: int | None = None
    coverage: float = 0.0
    next_at: float | None = None
    age: float | None = None
    differences: int = 0
    undecided: int = 0
    tables_left_out: int = 0
    repaired: int = 0
    repairs_no_more: str = ""
    last: VerificationPass | None = None
    findings: Sequence[TableFinding] = ()
    unnamed_tables: int = 0
    whole: Mapping[str, str] = field(default_factory=dict[str, str])
    counters: VerifiedSoFar = VerifiedSoFar()


@dataclass(frozen=True, slots=True)
class SchemaStatements:
    """How many statements of a schema were skipped.

    A type of its own, since names of schemas that are not mapped are not for everybody, see
    `setl.node.public_form`.
    """

    number: int = 0


class RunState(Enum):
    """What a pipeline is doing on the node that leads it."""

    STANDBY = "standby"
    TAKING = "taking over"
    RUNNING = "running"
    RETRYING = "retrying"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class TableLoadFigures:
    """What is told of a load of whole tables.

    Attributes:
        id: tells it from others.
        state: ``reading``, ``catching up`` (all rows are read, and the stream comes to where they
            were read), ``paused``, ``done``, ``failed`` or ``cancelled``.
        table: the table that is read.
        tables_left: how many are not done, None if that is not known.
        rows: rows read, over all leaderships.
        rows_per_second: of this leadership, while it reads.
        begun: seconds since 1970.
        ended: seconds since 1970, 0 before.
        rows_expected: rows that there are to read in all, as the source estimates them; None if
            nobody knows.
        bytes_per_second: of these rows at the source, estimated likewise.
        seconds_left: until they are read at this rate, None if that is not known.
        throttle_count: how often it waited because of a limit, in this leadership.
        waits_for: the limit for which it waits now, "" for none.
        table_rows: rows of `table` that were looked at so far, in the pass that goes on.
        table_rows_expected: rows of `table`, as the source estimates them; None if nobody knows.
    """

    id: str
    state: str
    table: str = ""
    tables_left: int | None = None
    rows: int = 0
    rows_per_second: float = 0.0
    begun: float = 0.0
    ended: float = 0.0
    rows_expected: int | None = None
    bytes_per_second: float = 0.0
    seconds_left: float | None = None
    throttle_count: int = 0
    waits_for: str = ""
    table_rows: int = 0
    table_rows_expected: int | None = None


@dataclass(frozen=True, slots=True)
class LoadOutlook:
    """What is known of a load of whole tables besides how far it has come.

    Attributes:
        tables_left: see `TableLoadFigures`; so with what has no text of its own.
        rows_expected: rows in all, None if nobody knows.
        throttle_count: how often it was throttled.
        waits_for: for which limit it waits.
        row_bytes: bytes of a row, on the average.
        paused: whether an operator has paused it.
        table_rows_expected: of the table that is read.
    """

    tables_left: int | None = None
    rows_expected: int | None = None
    throttle_count: int = 0
    waits_for: str = ""
    row_bytes: float = 0.0
    paused: bool = False
    table_rows_expected: int | None = None


@dataclass(slots=True)
class Figures:
    """A snapshot, which nobody changes; counters start at 0 with each leadership.

    Attributes:
        state: what the pipeline is doing.
        error: the error that it is retrying after or failed with, "" if none.
        position: up to where everything is applied, as text.
        rows_total: row changes applied since the pipeline's first start, over all leaderships.
        rows_applied: row changes decoded and applied, before compaction.
        rows_redelivered: of these, changes that may have been applied before, by an earlier
            leadership or by an attempt of this one that was repeated.
        rows_loopback: row changes dropped because this channel wrote them.
        echoes_dropped: transactions dropped because this channel wrote them.
        echoes_replicated: transactions of this channel that were not dropped, or not whole.
        rows_unmapped: rows entries dropped because no mapping wants their table.
        upserts: rows or documents written, after compaction.
        deletes: deletes sent, after compaction.
        stale: writes the target refused because it holds something newer.
        conflicts_source: rows changed on both sites of which the source's stayed.
        conflicts_target: rows changed on both sites of which the target's stayed.
        ddl_replicated: schema changes of the source done to the target as well.
        ddl_ignored: schema changes of the source that were not.
        last_ddl: the last one that was, the front of it; "" if there was none.
        last_ddl_ignored: the last one that was not, with its position and time; "" if there was
            none.
        statements_skipped: statements that the source logged instead of rows and that were
            skipped.
        statements_by_schema: the same by the schema that they write, at most `MOST_SCHEMAS` of
            these.
        batches: batches acknowledged.
        loads: Spark jobs that loaded them; fewer than batches when the pipeline is behind.
        dead_letters: faulty rows that wait for a decision.
        dead_lettered: faulty rows that were put aside.
        retries: rollbacks.
        attempts: attempts in a row that have failed; 0 while the pipeline gets on.
        pending: batches selected and not yet acknowledged.
        buffered_bytes: bytes of records in these.
        buffer_bytes: how many these may be; nothing more is read then.
        held_back_seconds: time in which nothing was read since there was no room for it.
        behind: records between what is applied and the end of the source, None if it does not
            tell (a binlog counts bytes).
        waiting_for: what the source waits for before it can deliver, "" for nothing.
        reads_with_others: whether the source is read on a connection that other pipelines of this
            node read, too.
        lag: seconds by which the target is behind; grows for as long as nothing newer is applied,
            whatever the state. None where it is not led.
        lag_p50: median of the samples kept, None without samples.
        lag_p99: 99th percentile of the samples kept.
        rows_per_second: average of the last seconds.
        first_applied_at: when this leadership applied its first batch with rows, seconds since
            1970, None before.
        table_load: the load of whole tables, None if there never was one.
        tables: rows written in this leadership, by table or index, at most
            `setl.model.table_rows.MOST_TABLES` of these.
        verification: how standing verification does, None if the channel file asks for none, and
            where it is not led.
        seconds: time spent by stage.
        stage: where the run is, `Stage.NONE` while none runs.
        stage_seconds: since it came there.
        stalled: why it makes no progress, "" while it does or has nothing to do.
        stalled_stage: the stage to blame for that; differs from `stage` while it tries again.
        stalled_reason: the reason in a word or two, one of `setl.run.measured.pace.Reason`.
        stalled_seconds: for how long nothing has advanced.
        no_heartbeats: why none can be written to the source, "" if they are, or none are asked for.
    """

    state: RunState = RunState.STANDBY
    error: str = ""
    position: str = ""
    rows_total: int = 0
    rows_applied: int = 0
    rows_redelivered: int = 0
    rows_loopback: int = 0
    echoes_dropped: int = 0
    echoes_replicated: int = 0
    rows_unmapped: int = 0
    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    conflicts_source: int = 0
    conflicts_target: int = 0
    ddl_replicated: int = 0
    ddl_ignored: int = 0
    last_ddl: str = ""
    last_ddl_ignored: str = ""
    statements_skipped: int = 0
    statements_by_schema: Mapping[str, SchemaStatements] = field(
        default_factory=dict[str, SchemaStatements]
    )
    batches: int = 0
    loads: int = 0
    dead_letters: int = 0
    dead_lettered: int = 0
    retries: int = 0
    attempts: int = 0
    pending: int = 0
    buffered_bytes: int = 0
    buffer_bytes: int = 0
    held_back_seconds: float = 0.0
    behind: int | None = None
    waiting_for: str = ""
    reads_with_others: bool = False
    lag: float | None = None
    lag_p50: float | None = None
    lag_p99: float | None = None
    rows_per_second: float = 0.0
    first_applied_at: float | None = None
    table_load: TableLoadFigures | None = None
    tables: ByTable = field(default_factory=dict[str, TableRows])
    verification: VerificationFigures | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    stage: Stage = Stage.NONE
    stage_seconds: float = 0.0
    stalled: str = ""
    stalled_stage: str = ""
    stalled_reason: str = ""
    stalled_seconds: float = 0.0
    no_heartbeats: str = ""


@dataclass(frozen=True, slots=True)
class HandoverCost:
    """What a change of leadership has cost, once that is known.

    Attributes:
        working_at: when the new leadership acknowledged its first batch, with rows or without,
            seconds since 1970. This is when the outage was over.
        first_applied_at: when it applied its first batch with rows, None if there was none yet.
        redelivered: row changes that were applied again; None if the target does not tell.
        stored_at: when the leadership before stored its last checkpoint, by this node's clock; None
            if there was none, or the store does not tell.
    """

    working_at: float
    first_applied_at: float | None
    redelivered: int | None
    stored_at: float | None = None


def table_load_figures(load: TableLoad, outlook: LoadOutlook, rate: float) -> TableLoadFigures:
    """What is told of a load.

    Args:
        load: the load.
        outlook: what else is known.
        rate: rows a second.
    """
    state = "reading" if load.reads else "catching up"
    if outlook.paused:
        state = "paused"
    if load.ended:
        state = "cancelled" if load.cancelled else "failed" if load.error else "done"
    reads = state == "reading"
    expected, left = outlook.rows_expected, None
    if expected is not None:
        expected = max(expected, load.rows) if load.reads else load.rows
        left = round((expected - load.rows) / rate, 1) if reads and rate else None
    return TableLoadFigures(
        load.id,
        state,
        load.table,
        outlook.tables_left if not load.ended else None,
        load.rows,
        round(rate, 1) if reads else 0.0,
        load.begun,
        load.ended,
        rows_expected=expected,
        bytes_per_second=round(rate * outlook.row_bytes) if reads else 0.0,
        seconds_left=left,
        throttle_count=outlook.throttle_count,
        waits_for=outlook.waits_for if reads else "",
        table_rows=load.table_rows if reads else 0,
        table_rows_expected=outlook.table_rows_expected if reads else None,
    )
