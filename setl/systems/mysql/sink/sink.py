"""Writes changes into MySQL or MariaDB: one call is one transaction, fenced and marked."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from setl import failpoints
from setl.clock import Clock, SystemClock
from setl.errors import (
    CollisionError,
    ConfigurationError,
    DataError,
    FatalError,
    FencedError,
    SetlError,
    SharedTableError,
    TransientError,
)
from setl.load.deadletters.dead_letter import DeadLetter
from setl.load.deadletters.storing import DeadLetterUpdate, Faults, loaded_with, update_letters
from setl.load.sink import LoadTicket, OpenTable, ReadRendered
from setl.load.timings import Timings
from setl.model.change import TargetChanges
from setl.model.conflict import RECENT_TABLE, History
from setl.model.faulty import FaultyRow
from setl.model.labels import is_numbered
from setl.model.loaded import Loaded
from setl.systems.mysql.conflicts.resolving import (
    Resolved,
    resolve_histories,
    resolve_read,
    undecided_tables,
)
from setl.systems.mysql.conflicts.tables import TRIM_EVERY, trim_conflicts
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.load.bulk_connection import bulk_of
from setl.systems.mysql.load.delete_insert import DeleteInsertRows, delete_insert_rows
from setl.systems.mysql.load.exact import ExactLoad
from setl.systems.mysql.load.forms import filled_by, takes_as_is, takes_data
from setl.systems.mysql.load.generated import GeneratedLoad, KnownSessions, Part, RefuseOf
from setl.systems.mysql.load.key_actions import acts_on, delete_children, move_keys
from setl.systems.mysql.load.keyless import KeylessLoad, keyless_apart, replace_all
from setl.systems.mysql.load.local_data import LocalData, LocalTables
from setl.systems.mysql.load.new_rows import send_new_rows
from setl.systems.mysql.load.rendered import write_rendered
from setl.systems.mysql.load.row_statement import Limits
from setl.systems.mysql.load.rows import Refuse, write_rows
from setl.systems.mysql.load.statements import Strategy, TableWrites
from setl.systems.mysql.load.targets import Targets
from setl.systems.mysql.load.writer import Writer
from setl.systems.mysql.sink.attempts import Attempts, OutdatedError
from setl.systems.mysql.sink.loaded import (
    beyond_what_is_loaded,
    forget_loaded,
    is_loaded_as_of,
    leave_to_load,
    not_loaded_yet,
)
from setl.systems.mysql.sink.single_writer import MysqlSingleWriterTables
from setl.systems.mysql.sink.transactions import transactions
from setl.systems.mysql.sink.unlogged_columns import logged_columns_only
from setl.systems.mysql.stored.deadletters import MysqlDeadLetters
from setl.systems.mysql.stored.marks import applied_through
from setl.systems.mysql.values.fit import ChangedValueError
from setl.systems.mysql.values.row_text import VALUES

# MySQL takes a quarter less time for the same rows in statements of 256 KiB than of 1 MiB. To a
# server that is farther away, fewer answers are worth more.
_NEAR = 0.005  # seconds
_SIZE_NEAR = 1 << 18


@dataclass(frozen=True, slots=True)
class MysqlSinkSettings:
    """What a MySQL sink is made from. Picklable and hashable: it travels with the tasks.

    Attributes:
        endpoint: the server.
        mark: the channel's number in ``retl.retl_mark``.
        lock_wait: seconds a statement waits for a row lock.
        rows_per_statement: rows in one statement at most.
        statement_size: bytes above which a statement is divided.
        dead_letter_limit: open dead letters above which the pipeline stops; 0 stops it at the
            first faulty row.
        bulk_rows: rows from which on they are not written as literals, where the server has another
            way; None for never.
        deadlock_attempts: how often a transaction is tried that the server ends as the victim
            of a deadlock, before the batch has to be.
    """

    endpoint: MysqlEndpoint
    mark: int
    lock_wait: int = 10
    rows_per_statement: int = 1_000
    statement_size: int = 1 << 20
    bulk_rows: int | None = 8
    deadlock_attempts: int = 5
    dead_letter_limit: int = 0

    def make_sink(self) -> MysqlSink:
        """See `setl.load.sink.SinkSettings.make_sink`."""
        return MysqlSink(self, lambda: secrets.token_hex(8))

    def applied_through(self, ticket: LoadTicket) -> int:
        """See `SinkSettings.applied_through`; the marks of the pipeline tell."""
        with closing(connect(self.endpoint)) as connection, translating(self.endpoint):
            return applied_through(connection, ticket.pipeline_key)

    def forget_loaded(self, ticket: LoadTicket) -> None:
        """See `SinkSettings.forget_loaded`, and `setl.systems.mysql.sink.loaded`."""
        with closing(connect(self.endpoint)) as connection, translating(self.endpoint):
            forget_loaded(connection, ticket.pipeline_key)

    @property
    def takes_columns(self) -> bool:
        """See `SinkSettings.takes_columns`."""
        return True

    def single_writer_tables(self, clock: Clock) -> MysqlSingleWriterTables:
        """See `SinkSettings.single_writer_tables`."""
        return MysqlSingleWriterTables(self.endpoint, clock)


class MysqlSink:
    """The `Sink` for MySQL and MariaDB. Used by one thread at a time.

    Foreign keys are not checked, and their actions (ON DELETE CASCADE and its like) do not run:
    a target takes the changes that it is given. Where the source does not give those of child rows,
    `setl.systems.mysql.load.key_actions` carries them out. Triggers of the target do run.
    """

    def __init__(
        self,
        settings: MysqlSinkSettings,
        nonce: Callable[[], str],
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: where and how to write.
            nonce: gives a text that it never gave before, see
                `setl.systems.mysql.stored.marks.mark_info`.
            clock: for the time spent in the target.
            sleep: waits between attempts.
        """
        self._settings = settings
        self._nonce = nonce
        self._clock = clock or SystemClock()
        self._timings = Timings(self._clock)
        self._writer = Writer(
            settings.endpoint,
            settings.lock_wait,
            self._clock,
            bulk=settings.bulk_rows is not None,
        )
        self._targets = Targets(self._clock)
        self._local = LocalTables()
        self._sessions = KnownSessions()
        self._attempts = Attempts(
            settings.endpoint, self._writer, self._targets, settings.deadlock_attempts, sleep
        )
        self._untrimmed = TRIM_EVERY

    def apply(
        self,
        ticket: LoadTicket,
        changes: Sequence[TargetChanges],
        faulty: Sequence[FaultyRow] = (),
    ) -> Loaded:
        """See `setl.load.sink.Sink.apply`; in transactions as `transactions` deals them out."""
        changes = [c for c in changes if c.upserts or c.deletes]
        if not (changes or faulty or ticket.retry_ids):
            return Loaded()
        started = self._clock.monotonic()
        letters: list[DeadLetter] = []
        # What actions of foreign keys do goes with the rows that they act for.
        for part in [changes] if ticket.key_actions else transactions(changes):
            letters += self._apply(
                replace(ticket, retry_ids=()), part, DeadLetterUpdate(part, again=ticket.retry_ids)
            )
        if faulty or ticket.retry_ids:
            # Last, when it is known which of those that are loaded again are in.
            left = set(ticket.retry_ids) - {letter.id for letter in letters}
            update = DeadLetterUpdate(changes, faulty, ticket.retry_ids)
            letters += self._apply(replace(ticket, retry_ids=tuple(left)), (), update)
        loaded = Loaded(
            upserts=sum(len(c.upserts) for c in changes),
            deletes=sum(len(c.deletes) for c in changes),
            seconds=self._clock.monotonic() - started,
            statements=self._timings.taken(),
        )
        return loaded_with(letters, loaded)

    def apply_rendered(
        self, ticket: LoadTicket, change: TargetChanges, read: ReadRendered
    ) -> Loaded | None:
        """See `RenderedSink.apply_rendered`, and `setl.systems.mysql.load.rendered`."""
        if ".".join(change.target) in ticket.tables_with_dead_letters:
            return None  # rows may supersede dead letters, so somebody has to look at them
        started = self._clock.monotonic()
        try:
            rows = self._attempts.run(ticket, lambda: self._rendered(ticket, change, read))
        except (FencedError, TransientError):
            raise
        except SetlError:
            return None  # it is found again, by who looks at the rows one by one
        seconds = self._clock.monotonic() - started
        statements = self._timings.taken()
        if rows is None:
            return None
        return Loaded(upserts=rows, seconds=seconds, statements=statements)

    def replace_rows(self, ticket: LoadTicket, change: TargetChanges, read: OpenTable) -> Loaded:
        """See `setl.load.sink.ReplacingSink.replace_rows`."""
        started = self._clock.monotonic()
        rows = self._attempts.run(ticket, lambda: self._replacement(ticket, change, read))
        seconds = self._clock.monotonic() - started
        return Loaded(upserts=rows, seconds=seconds, statements=self._timings.taken())

    def resolve_conflicts(self, ticket: LoadTicket, histories: Sequence[History]) -> Loaded:
        """Apply what the source says of rows that both sites write, in one transaction.

        What was applied before, by version, is skipped. Raises what `apply` raises.
        """
        started = self._clock.monotonic()
        resolved = self._attempts.run(ticket, lambda: self._resolution(ticket, histories))
        self._untrimmed += resolved.reported
        seconds = self._clock.monotonic() - started
        return replace(resolved.loaded(seconds), statements=self._timings.taken())

    def close(self) -> None:
        """See `setl.load.sink.Sink.close`."""
        self._writer.close()

    def _apply(
        self, ticket: LoadTicket, changes: Sequence[TargetChanges], update: DeadLetterUpdate
    ) -> list[DeadLetter]:
        return self._attempts.run(ticket, lambda: self._transaction(ticket, changes, update))

    def _transaction(
        self, ticket: LoadTicket, changes: Sequence[TargetChanges], update: DeadLetterUpdate
    ) -> list[DeadLetter]:
        faults = Faults(update.faulty, self._settings.dead_letter_limit)
        connection = self._writer.open()
        self._targets.as_of(ticket.schema_version)
        changes = logged_columns_only(self._targets, connection, changes, faults)
        writes = [self._targets.writes(connection, c) for c in changes]
        _refuse_shared(changes, writes)
        for action in ticket.key_actions:
            self._targets.described(connection, action.child)
        self._writer.register(ticket)
        self._begin(ticket, [c.target for c in changes])
        if ticket.from_tables and any(change.keyless for change in changes):
            raise FatalError("rows of a table without a key were read from their table")
        if not (update.again or ticket.from_tables):
            changes = self._not_loaded_yet(connection, ticket, changes, writes)
        limits, plans = self._limits(), list(zip(writes, changes, strict=True))

        def refuse_of(change: TargetChanges) -> Refuse:
            return self._unless_outdated(faults.upserts(change))

        bound = {change.target for plan, change in plans if _depends_on_columns(plan)}
        keyless, plans = keyless_apart(plans)
        self._write_keyless(connection, ticket, keyless.first, limits)
        self._delete(connection, ticket, plans, limits, faults)

        def write_apart(parts: Sequence[Part], refuse_of: RefuseOf) -> None:
            for plan, change in parts:
                self._write_upserts(connection, plan, change, limits, refuse_of(change))

        def write_together(parts: Sequence[Part], refuse_of: RefuseOf) -> None:
            ExactLoad(connection, parts, limits, refuse_of, ticket.catching_up).run()

        for plan, change in plans:
            if not plan.single_writer:
                load = GeneratedLoad(connection, write_apart, refuse_of, limits, self._sessions)
                load.run([(plan, change)])
        alone = [(plan, change) for plan, change in plans if plan.single_writer]
        for target in dict.fromkeys(change.target for _, change in alone):
            parts = [part for part in alone if part[1].target == target]
            GeneratedLoad(connection, write_together, refuse_of, limits, self._sessions).run(parts)
        self._write_keyless(connection, ticket, keyless.last, limits)
        store = MysqlDeadLetters(connection, self._writer.max_packet)
        most, now = self._settings.dead_letter_limit, self._clock.now()
        letters = update_letters(
            store, ticket, update.written, faults.rows, most=most, now=now, again=update.again
        )
        for target in bound:
            self._targets.confirm_texts(connection, target)
        failpoints.reached("task.before_commit")
        connection.commit()
        failpoints.reached("task.after_commit")
        return letters

    def _delete(
        self,
        connection: Connection[Any],
        ticket: LoadTicket,
        plans: Sequence[Part],
        limits: Limits,
        faults: Faults,
    ) -> None:
        """Delete rows by their keys, and do what foreign keys do then."""
        if ticket.key_moves:
            move_keys(connection, plans, ticket.key_moves, limits)
        for plan, change in plans:
            write_rows(connection, plan.deletes, change.deletes, limits, faults.deletes(change))
        # Keys that have moved are deleted, too; their rows have not gone.
        acting = [] if ticket.key_moves else acts_on(plans, ticket.key_actions)
        if acting:
            described = partial(self._targets.described, connection)
            delete_children(connection, acting, described, limits)

    def _write_keyless(
        self,
        connection: Connection[Any],
        ticket: LoadTicket,
        parts: Sequence[Part],
        limits: Limits,
    ) -> None:
        for plan, change in parts:
            # Never put aside: a later change of such a row would not find it.
            refuse = self._unless_outdated(_raise_with(change))
            try:
                KeylessLoad(connection, plan, change, limits, refuse).run()
            except OutdatedError:
                raise
            except DataError:
                if change.target not in ticket.unread:
                    raise
                leave_to_load(connection, ticket, change.target)

    def _write_upserts(
        self,
        connection: Connection[Any],
        plan: TableWrites,
        change: TargetChanges,
        limits: Limits,
        refuse: Refuse,
    ) -> None:
        if plan.strategy is Strategy.DELETE_INSERT:
            rows = DeleteInsertRows(plan, change.key, change.upserts, refuse, change.partial)
            delete_insert_rows(connection, [rows], limits)
            return
        data = None
        if bulk_of(connection) is None and takes_data(plan, change, limits):
            data = self._local_data(connection, plan, change)
        if data is not None:
            send_new_rows(data, plan.inserts, change.upserts, limits)
        else:
            write_rows(connection, plan.inserts, change.upserts, limits, refuse)

    def _rendered(
        self, ticket: LoadTicket, change: TargetChanges, read: ReadRendered
    ) -> int | None:
        connection = self._writer.open()
        self._targets.as_of(ticket.schema_version)
        plan = self._targets.writes(connection, change)
        rows = read(VALUES, filled_by(plan, change)) if takes_as_is(plan, change) else None
        if rows is None:
            return None
        self._writer.register(ticket)
        self._begin(ticket, [change.target])
        data = self._local_data(connection, plan, change)
        count = write_rendered(connection, plan.inserts, rows, self._limits(), data)
        failpoints.reached("task.before_commit")
        connection.commit()
        failpoints.reached("task.after_commit")
        return count

    def _replacement(self, ticket: LoadTicket, change: TargetChanges, read: OpenTable) -> int:
        connection = self._writer.open()
        self._targets.as_of(ticket.schema_version)
        plan = self._targets.writes(connection, change)
        with read() as table:  # before anything is locked here: it may have to wait
            self._writer.register(ticket)
            self._begin(ticket, [change.target])
            is_loaded_as_of(connection, ticket, change.target, table.through)
            count = replace_all(connection, plan, change.target, table.rows, self._limits())
            if _depends_on_columns(plan):
                self._targets.confirm_texts(connection, change.target)
            failpoints.reached("task.before_commit")
            connection.commit()
        failpoints.reached("task.after_commit")
        return count

    def _local_data(
        self, connection: Connection[Any], plan: TableWrites, change: TargetChanges
    ) -> LocalData | None:
        if self._attempts.as_literals or not self._writer.sends_data:
            return None  # it was tried, and something of it was not taken; or cannot be
        if not self._local.may(change.target):
            return None
        return LocalData(connection, change.target, plan.inserts.columns, self._local)

    def _not_loaded_yet(
        self,
        connection: Connection[Any],
        ticket: LoadTicket,
        changes: Sequence[TargetChanges],
        writes: Sequence[TableWrites],
    ) -> list[TargetChanges]:
        """The changes, those of tables that are loaded once without what they have already.

        Raises:
            FatalError, DataError: as `beyond_what_is_loaded`.
        """
        result = list(changes)
        positions: dict[tuple[str, str], list[int]] = {}
        for i, (change, plan) in enumerate(zip(changes, writes, strict=True)):
            if plan.single_writer:
                positions.setdefault(change.target, []).append(i)
        for own in positions.values():
            parts = [changes[i] for i in own]
            keyless = any(change.keyless for change in parts)
            beyond = beyond_what_is_loaded if keyless else not_loaded_yet
            left = beyond(connection, ticket, parts)
            for i, change in zip(own, left, strict=True):
                result[i] = change
        return result

    def _unless_outdated(self, refuse: Refuse) -> Refuse:
        """Look at the table again before a row is blamed for what may be outdated.

        That another one is in its way, or that a column would change it.
        """

        def look_again(number: int, error: DataError) -> None:
            doubtful = isinstance(error, (CollisionError, ChangedValueError))
            if doubtful and not self._targets.fresh:
                raise OutdatedError(error.message)
            refuse(number, error)

        return look_again

    def _resolution(self, ticket: LoadTicket, histories: Sequence[History]) -> Resolved:
        connection = self._writer.open()
        self._targets.as_of(ticket.schema_version)
        names = dict.fromkeys(h.target for h in histories if h.target != RECENT_TABLE)
        read = any(history.read for history in histories)
        described = {name: self._targets.contested(connection, name) for name in names}
        pipeline = ticket.pipeline_key
        undecided = [] if read else undecided_tables(connection, pipeline, histories)
        for name in {history.target for history in undecided} - names.keys():
            with suppress(ConfigurationError):  # the table is gone, and so are its conflicts
                described[name] = self._targets.contested(connection, name)
        histories = [*histories, *undecided]
        self._writer.register(ticket)
        self._begin(ticket, list(names))
        # A statement for the columns that a table once had may be right and leave values out.
        self._targets.confirm(connection, described)
        reported, limits = (connection, pipeline, histories, described), self._limits()
        if read:
            resolved = resolve_read(*reported, through=ticket.through, limits=limits)
        else:
            resolved = resolve_histories(*reported, limits=limits)
        for name, table in described.items():
            if any(map(is_numbered, table.columns)):
                self._targets.confirm_texts(connection, name)
        if self._untrimmed >= TRIM_EVERY:
            trim_conflicts(connection, ticket.pipeline_key)
            self._untrimmed = 0
        failpoints.reached("task.before_commit")
        connection.commit()
        failpoints.reached("task.after_commit")
        return resolved

    def _begin(self, ticket: LoadTicket, tables: Sequence[tuple[str, str]]) -> None:
        self._writer.begin(ticket, self._settings.mark, self._nonce(), tables)

    def _limits(self) -> Limits:
        size, near = self._settings.statement_size, self._writer.answer_seconds < _NEAR
        bulk_rows = self._settings.bulk_rows
        return Limits(
            rows=self._settings.rows_per_statement,
            size=min(size, _SIZE_NEAR) if near else size,
            bulk_rows=sys.maxsize if bulk_rows is None else bulk_rows,
            packet=self._writer.max_packet,
            timings=self._timings,
        )


def _depends_on_columns(plan: TableWrites) -> bool:
    """Whether what is written means the same only as long as the table's columns are the same."""
    return bool(plan.numbered or plan.inserts.by_bytes or plan.deletes.by_bytes)


def _raise_with(change: TargetChanges) -> Refuse:
    def refuse(_: int, error: DataError) -> None:
        versions = change.upsert_versions
        raise error.at(version=max(versions, default=0) or None)

    return refuse


def _refuse_shared(changes: Sequence[TargetChanges], writes: Sequence[TableWrites]) -> None:
    for change, plan in zip(changes, writes, strict=True):
        if plan.single_writer and change.shared:
            raise SharedTableError(
                "the unique keys of the target table have changed: one task has to write it now",
                table=".".join(change.target),
            )
