"""The ports of Load: writing one task's share of a batch, and taking a target over."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from setl.clock import Clock
from setl.codec.sql.statement import table_ddl
from setl.codec.sql.table_ddl import TableDdl
from setl.model.change import Row, TargetChanges
from setl.model.checkpoint import ShownPosition
from setl.model.conflict import History
from setl.model.faulty import FaultyRow
from setl.model.file_count import BY_NUMBER, FileCount
from setl.model.key_action import KeyAction, KeyMove
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import Position, document_version
from setl.model.session import StatementSession


@dataclass(frozen=True, slots=True)
class LoadTicket:
    """On whose behalf a task writes. Travels with the data, never in a global.

    Attributes:
        leadership: on whose behalf.
        batch_id: the batch.
        slot: number of this task among those that write the batch at the same time, from 0.
        at: the position of the stream that `through` was made from; None if nobody asks for it.
        tables_with_dead_letters: ``schema.table`` or indexes for which dead letters are open; only
            for them a sink has to look whether a change that it writes supersedes one.
        retry_ids: ids of the dead letters that are loaded again; those whose rows are in when the
            call ends are gone.
        through: version (see `document_version`) of the end of what is loaded; a sink that can
            keeps it with the rows, so that a later leader can tell what it applies again.
        generation: of the checkpoint.
        files: see `Checkpoint.files`; with the generation, what versions are made by.
        begun: when the leader decided on the load, seconds since 1970 by its clock; before it
            made sure that it still leads. 0 if nobody noted it.
        from_tables: whether the rows were read from the source's tables, which may be ahead of
            the stream; how far a table has come with the stream says nothing about them.
        catching_up: source tables, as ``schema.table``, that may have such rows in the target. A
            row that conflicts with another one there is removed: the stream is about to bring
            it again, since the source cannot hold both either.
        position: the end of what is loaded, as those need it who read rows at the source; None if
            nobody does.
        key_actions: foreign keys of the target whose actions run with what is deleted; one sink
            gets all of it then, and writes it in one transaction.
        key_moves: rows of parents whose referenced columns change, in order; with the same keys.
        schema_version: changes whenever tables of the target may have changed; what a sink
            knows of them is forgotten then.
        unread: targets, (schema, table), whose rows are about to be replaced as a whole, see
            `ReplacingSink`.
    """

    leadership: Leadership
    batch_id: int
    slot: int
    through: int = 0
    begun: float = 0.0
    at: Position | None = None
    tables_with_dead_letters: frozenset[str] = frozenset()
    retry_ids: tuple[str, ...] = ()
    schema_version: int = 0
    from_tables: bool = False
    catching_up: frozenset[str] = frozenset()
    position: ShownPosition | None = None
    generation: int = 0
    files: FileCount = BY_NUMBER
    unread: frozenset[tuple[str, str]] = frozenset()
    key_actions: tuple[KeyAction, ...] = ()
    key_moves: tuple[KeyMove, ...] = ()

    def version_of(self, position: Position) -> int:
        """The document version of a position, see `document_version`."""
        return document_version(self.generation, position, self.files)

    @property
    def pipeline_key(self) -> str:
        """``channel/pipeline``, what the tables of ``retl`` call a pipeline."""
        return self.leadership.key

    @property
    def epoch(self) -> int:
        """The leadership's number."""
        return self.leadership.epoch


class Sink(Protocol):
    """Writes changes into one target. Lives in a Spark worker and outlives tasks.

    Order: the caller loads batches one after another; within a batch the sinks of several
    tasks write at the same time, each with keys of its own. Idempotence: applying the same
    changes again, or an older stretch followed by all that came after it, ends in the same
    state. Crash: in MySQL all of one call is there or nothing; in Elasticsearch a part may
    be, and applying it again completes it.
    """

    def apply(
        self,
        ticket: LoadTicket,
        changes: Sequence[TargetChanges],
        faulty: Sequence[FaultyRow] = (),
    ) -> Loaded:
        """Write, and return only when the target has it for good.

        Args:
            ticket: on whose behalf.
            changes: what to write.
            faulty: rows that could not be transformed, to be kept as dead letters.

        Raises:
            FencedError: a newer leadership exists; nothing was written by this call.
            TransientError: it may work when the batch is tried again.
            DataError: the target refuses a row or document for good; says which and why. Not
                with dead letters: there the row becomes one, and all others are written.
            FatalError: there are too many dead letters; nothing more was put aside.
            ConfigurationError: a table, column, index or privilege is missing.
        """
        ...

    def close(self) -> None:
        """Drop the connection. Safe to call twice."""
        ...


@runtime_checkable
class ConflictSink(Sink, Protocol):
    """A sink that can decide what becomes of rows that both sites write (I17)."""

    def resolve_conflicts(self, ticket: LoadTicket, histories: Sequence[History]) -> Loaded:
        """Apply what the source says of such rows, all of it in one transaction.

        What was applied before, by version, is skipped. Raises what `apply` raises.
        """
        ...


ReadRendered = Callable[[str, Sequence[int]], "Iterator[list[bytes]] | None"]
"""Gives rows in a form, of the columns with these indexes in `TargetChanges.columns`; None if it
cannot. Each call reads again."""


@runtime_checkable
class RenderedSink(Sink, Protocol):
    """A sink that takes rows as the source's server writes them, without a look at any value."""

    def apply_rendered(
        self, ticket: LoadTicket, change: TargetChanges, read: ReadRendered
    ) -> Loaded | None:
        """Write rows of a table; as `apply` in all that is said of order and crashes.

        Args:
            ticket: on whose behalf.
            change: where the rows go, without any; each key is in one row at most.
            read: gives the rows.

        Returns:
            None if nothing was written, since it is not sure that each row would be in the target
            what it is at the source. `apply` then writes it, or says what is wrong.

        Raises:
            FencedError: a newer leadership exists; nothing was written by this call.
            TransientError: it may work when the batch is tried again.
        """
        ...


class WholeTable(NamedTuple):
    """All rows of a source table, as of one position of the stream.

    Attributes:
        through: the version of that position, see `document_version`.
        rows: the rows, some thousand at a time.
    """

    through: int
    rows: Iterator[list[Row]]


OpenTable = Callable[[], AbstractContextManager[WholeTable]]
"""Reads a source table again, as of a position that is not before that of the ticket."""


@runtime_checkable
class ReplacingSink(Sink, Protocol):
    """A sink that can load a table of rows that no key distinguishes.

    Such rows are not written over others, and each change must be applied once. So what the target
    has of the table is replaced as a whole, together with the note of the position up to which the
    stream's changes are in these rows.

    Order: as for `apply`. Changes that come after the call are compared with the position; those
    before it are left out. Changes that come before the call, while the table is among
    `LoadTicket.unread`, need not be applied: the rows that replace everything have them.
    Idempotence: a second call replaces the rows again, by those of a later position. Crash: all of
    a call is there, or nothing. So a leader that dies before it has stored that the table is loaded
    leaves a table that is whole, and the next one loads it again.
    """

    def replace_rows(self, ticket: LoadTicket, change: TargetChanges, read: OpenTable) -> Loaded:
        """Remove all rows of a table and write those that are read; in one transaction.

        Args:
            ticket: on whose behalf.
            change: where the rows go, without any.
            read: reads them; called again where the transaction is tried again.

        Raises:
            SetlError: as `apply`, and what `read` raises; nothing was written by this call.
            ConfigurationError: another pipeline writes the table, too.
        """
        ...


RefuseTargets = Callable[[Collection[tuple[str, str]]], None]
"""Called when rows are about to be written to these tables, by schema and name. Raises
ConfigurationError if they must not be; another SetlError if the target does not answer."""


class SingleWriterTables(Protocol):
    """Which tables one task writes alone. Used by one thread at a time."""

    def add(self, table: tuple[str, str]) -> None:
        """Count a table among them, because a sink has found it to be one."""
        ...

    def among(self, tables: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Which of these tables, (schema, table), one task has to write alone.

        Raises:
            SetlError: the target does not answer.
        """
        ...

    def check_name_collisions(self, tables: Iterable[tuple[str, str]], version: int) -> None:
        """Refuse tables that the target takes for one, unlike the source: their rows would merge.

        Args:
            tables: some; they are compared with those of earlier calls, too.
            version: see `LoadTicket.schema_version`; with another one tables may be renamed.

        Raises:
            ConfigurationError: two of them are one table there.
            SetlError: the target does not answer.
        """
        ...


class NoSingleWriterTables:
    """The `SingleWriterTables` of a target in which rows are never in each other's way."""

    def check_name_collisions(self, tables: Iterable[tuple[str, str]], version: int) -> None:
        """See `SingleWriterTables.check_name_collisions`."""

    def add(self, table: tuple[str, str]) -> None:
        """See `SingleWriterTables.add`."""

    def among(self, tables: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:  # noqa: ARG002
        """See `SingleWriterTables.among`."""
        return frozenset()


class SinkSettings(Hashable, Protocol):
    """What a sink is made from. Picklable and hashable: it travels with the tasks.

    A class that derives from this one has what is said here of a target that keeps nothing
    beside its rows, and in which rows are never in each other's way.
    """

    @abstractmethod
    def make_sink(self) -> Sink:
        """A new sink, connected to nothing yet."""
        ...

    def applied_through(self, ticket: LoadTicket) -> int:  # noqa: ARG002
        """Up to which version the pipeline's rows may be in the target already; 0 if unknown.

        Raises:
            SetlError: the target does not answer.
        """
        return 0

    def forget_loaded(self, ticket: LoadTicket) -> None:
        """Forget how far tables of the target have come, where it keeps that with their rows.

        For a pipeline that begins as if it never ran: positions of a stream say nothing about
        another.

        Raises:
            SetlError: the target does not answer.
        """

    @property
    def takes_columns(self) -> bool:
        """Whether the sink takes rows as `setl.codec.columns.column_rows.ColumnRows`."""
        return False

    def single_writer_tables(self, clock: Clock) -> SingleWriterTables:  # noqa: ARG002
        """Tells which tables of the target one task writes alone."""
        return NoSingleWriterTables()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A DDL statement of the source.

    Attributes:
        id: names it for ever: its GTID, or its position where there is none.
        statement: its text.
        session: the session that ran it.
        generation: of the checkpoint; higher than at an earlier attempt if the pipeline has
            gone back to an earlier position since, or the source was replaced.
        version: its position in the source, see `document_version`.
        unread: whether all rows of a source table, (schema, table), are still to be read from it.
        position: its position in the source, None if unknown.
    """

    id: str
    statement: str
    session: StatementSession
    generation: int
    version: int
    unread: Callable[[tuple[str, str]], bool] = lambda _: False
    position: Position | None = None

    @property
    def ddl(self) -> TableDdl | None:
        """The statement as its session understood it; None if it is not about tables."""
        return table_ddl(self.statement, self.session)


class SchemaChanges(Protocol):
    """Passes schema changes on to a target (I16). Used by one thread at a time.

    Order: all earlier rows are applied and the checkpoint before the change is stored when it is
    called, and no row after it is. Idempotence: a change that was done is not done again.
    Crash: a change that may or may not have been done is found out about when it comes again.
    """

    def apply(self, ticket: LoadTicket, change: SchemaChange) -> Sequence[str]:
        """Do a change; returns what was done, for people: nothing if it is not the target's.

        Raises:
            FencedError: a newer leadership exists; nothing was begun.
            TransientError: it may work when tried again.
            FatalError: it cannot be replicated, or the target refuses it.
            ConfigurationError: a table or a privilege is missing.
        """
        ...


class Fence(Protocol):
    """Keeps older leaderships from writing into a target (I2).

    It says which epoch may write. A sink has to look at that in the transaction in which it
    writes, on behalf of `LoadTicket.epoch`; a look before it would be too early. A target that
    refuses older versions by itself needs neither: see `setl.load.version_fence`.
    """

    def end_writers(self, epoch: int) -> None:
        """End what still writes on behalf of `epoch`, for a leader whose session may be over.

        The fence would hold those writers too, once a successor has raised it. This ends them
        before, so that nothing is written by a node that knows it must not write any more (I3),
        however long its cancelled tasks take to end. May be called more than once, from any
        thread; does nothing for a target that has no connections to end.

        Raises:
            TransientError: the target does not answer, within the limit for connecting.
        """

    @abstractmethod
    def raise_to(self, epoch: int, nid: str) -> None:
        """Make `epoch` the only one that may write; called before the first entry is selected.

        Returns when no transaction of an older epoch is open or can begin. Calling it again
        with the same epoch changes nothing. After a crash in the middle either the old or
        the new epoch holds; both are safe, since the old leader is gone or still alone.

        Raises:
            FencedError: the target already knows a higher epoch.
            TransientError: the target cannot be reached or stale transactions do not end.
            ConfigurationError: the fence table or a privilege is missing.
        """
        ...
