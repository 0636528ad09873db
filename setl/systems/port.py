"""The ports of a system: how the rest of setl reaches any source or target.

`setl.systems.registry.system_of` gives the system of a part of a channel file. Nothing is
connected by that, nor by any call here that only makes something; what connects says so by the
errors that it raises.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from setl.errors import ConfigurationError
from setl.load.target_view import LookAtTarget, TargetView
from setl.systems.stored_state import StoredState

if TYPE_CHECKING:
    # Only named here; with them come Spark, codecs and channel files, which relays and most
    # commands need not wait for.
    from setl.bulk.source_reader import SourceTables
    from setl.bulk.source_side import MappedTable
    from setl.bulk.target_reader import TargetReader
    from setl.channel.fields.endpoint import SourceConfig
    from setl.channel.file import Pipeline
    from setl.channel.routes.routing import Route, Router
    from setl.clock import Clock
    from setl.extract.statements import Effects
    from setl.load.creation import TableCreation
    from setl.load.deadletters.store import DeadLetterStore
    from setl.load.key_actions import KeyActions
    from setl.load.sink import Fence, RefuseTargets, SchemaChanges, SinkSettings
    from setl.model.position import Position
    from setl.relay.formats import RecordFormat
    from setl.relay.ports import RelayedTables, RelayLog
    from setl.select.checkpoints.note import Notes
    from setl.select.checkpoints.owner import Owner
    from setl.select.checkpoints.turn import Turns
    from setl.select.heartbeat import Heartbeat
    from setl.select.source import ReplaceableStore, Source
    from setl.select.start_point import StartPoint
    from setl.systems.conflicts import ConflictList
    from setl.systems.finding import Report
    from setl.systems.pipeline_check import PipelineCheck
    from setl.systems.seen_record import SeenRecord, Wanted
    from setl.systems.write_stop import WriteStop
    from setl.transform.documents import DocumentSource
    from setl.transform.rereading import RowSource


class SourceSystem(Protocol):
    """The source of a pipeline, and everything that is known about its system.

    Attributes:
        unit: what `distance` counts.
        reads_backwards: whether the last records can be had without reading all before them.
    """

    unit: Literal["bytes", "records"]
    reads_backwards: bool

    def stream(self, pipeline: Pipeline, channel: str, nid: str) -> Source:
        """What node `nid` reads for a pipeline.

        Raises:
            ConfigurationError: the pipeline stands for several.
        """
        ...

    def turns(self, source: Source) -> Turns | None:
        """The group that `source` has to share what it reads with, None if it need not."""
        ...

    def heartbeat(self) -> Heartbeat | None:
        """What writes signs of life to the source, None if nothing does.

        Pipelines that read the same source in one process may share it.
        """
        ...

    def checkpoints(
        self, pipeline: Pipeline, owner: Owner, notes: Notes, turns: Turns | None = None
    ) -> ReplaceableStore | None:
        """The checkpoints that the source itself keeps for its readers, None if it keeps none.

        With `turns`, they are stored as a member of that group.
        """
        ...

    @property
    def has_end(self) -> bool:
        """Whether the end of its stream is behind everything that its tables show.

        Else changes may be on their way into the stream that rows in the tables show already.
        """
        ...

    def tables(self, *, logged: bool = False) -> AbstractContextManager[SourceTables] | None:
        """The tables that changes come from, to be read as a whole; None if nobody can.

        Args:
            logged: whether values are to be as the stream has them, where it does not say what a
                server shows them as; see `setl.model.logged_bytes`. For documents.

        Raises on entering:
            SetlError: the database does not answer.
        """
        ...

    def write_stop(self) -> WriteStop | None:
        """What stops writes of applications to the database, None if nobody can."""
        ...

    def rows(self, *, logged: bool = False) -> RowSource | None:
        """What looks up single rows, None if nothing can; `logged` as for `tables`."""
        ...

    def documents(self) -> DocumentSource | None:
        """What looks up documents of several tables' rows, None if nothing can."""
        ...

    def relayed_tables(self) -> RelayedTables | None:
        """What a relay asks its source alongside the stream; None if it is none for a relay."""
        ...

    def parse_start_point(self, text: str) -> StartPoint:
        """Understand a position as a person writes it.

        Raises:
            ConfigurationError: it is none of those that the source has.
        """
        ...

    def find_position(
        self, pipeline: Pipeline, channel: str, nid: str, start_point: StartPoint
    ) -> Position:
        """Where a position is, at the source as it is now: a boundary between two transactions.

        Raises:
            PositionLostError: the position does not exist; says what does.
            ConfigurationError: the position is inside a transaction, or the account is refused.
            TransientError: the source cannot be reached.
        """
        ...

    def position_to_reach(self, pipeline: Pipeline, channel: str, nid: str, text: str) -> Position:
        """A position that somebody waits for, for `passed`; reads nothing of the stream's rows.

        Args:
            pipeline: the pipeline that reads it.
            channel: the channel's name.
            nid: as whom to ask.
            text: ``now`` for the end of the stream as it is at this moment, or a position as
                `parse_start_point` takes it.

        Raises:
            ConfigurationError: the text is no place, or one that does not say what lies before
                it, such as a time where nothing is dated exactly.
            PositionLostError: the source does not have the position.
            TransientError: the source cannot be reached.
        """
        ...

    def passed(self, reached: Position, position: Position) -> bool:
        """Whether a pipeline that has come to `reached` surely has all before `position`.

        False too where nobody can tell, as after the source was replaced by a server whose
        stream has other places: then the pipeline itself has to find its position there first.
        """
        ...

    def distance(self, position: Position, latest: Position) -> int | None:
        """How far a position is from the end of the stream, None if they are not of one stream.

        Raises:
            SetlError: the source does not answer.
        """
        ...

    def records(
        self,
        partitions: Sequence[int],
        start_point: StartPoint | None,
        wanted: Wanted,
        *,
        last: int,
        follow: bool,
    ) -> Generator[SeenRecord | None]:
        """Records of the stream for people; closing the generator closes the connections.

        Args:
            partitions: which partitions; empty for all.
            start_point: where to begin; None for the `last` ones that are there.
            wanted: which records count towards `last`.
            last: how many of the last ones, where `start_point` is None.
            follow: whether to wait for more at the end of what is there now.

        Yields:
            A record, or None about twice a second while none comes.

        Raises:
            SetlError: see `setl.operate.peek.look.look`.
        """
        ...

    def preflight(self, check: PipelineCheck, report: Report) -> None:
        """Report what is wrong with the source; fills in `origin` and `tables` of `check`."""
        ...


@dataclass(frozen=True, slots=True)
class Relaying:
    """How a relay writes into a target.

    Attributes:
        log: where the records go.
        exact: whether readers see each record once.
        heartbeat: seconds after which every partition gets a heartbeat record.
        partition_by: see `setl.relay.partitioning.Partitioner`.
        format: how records are written.
    """

    log: RelayLog
    exact: bool
    heartbeat: float
    partition_by: Literal["order", "table", "key"]
    format: RecordFormat


@dataclass(frozen=True, slots=True)
class DdlReplicationContext:
    """For whom schema changes are replicated, or tables are created.

    Attributes:
        mark: the channel's number, see `setl.channel.relations.mark_ids.channel_mark_id`.
        router: the pipeline's routes.
        marked: whether the change comes back to this channel, and so has to carry its mark.
        source: where the changes come from.
        accept: the findings that the pipeline is to live with, see
            `setl.operate.check.with_accepted`.
    """

    mark: int
    router: Router
    marked: bool
    source: SourceConfig
    accept: Sequence[str] = ()


class TargetSystem(Protocol):
    """The target of a pipeline, and everything that is known about its system.

    Rows are loaded into a target by `sink`, under its `fence`; changes are written into a log by
    `relaying`. A system that cannot do one of them raises ConfigurationError there.

    A class that derives from this one has the answers of a target that has nothing but rows, and
    has to say the rest itself.

    Attributes:
        reports_applied: whether it keeps with the rows how far the stream is applied, so that
            `SinkSettings.applied_through` tells.
        runs_statements: whether a CREATE TABLE that is replicated makes the table, or the first
            document its index; else `table_creation` makes it then.
    """

    reports_applied: ClassVar[bool] = False
    runs_statements: ClassVar[bool] = True

    @abstractmethod
    def sink(self, mark: int, *, dead_letter_limit: int) -> SinkSettings:
        """What writes rows.

        Args:
            mark: the channel's number, see `setl.channel.relations.mark_ids.channel_mark_id`.
            dead_letter_limit: open dead letters above which the pipeline stops; 0 stops it at
                the first faulty row.
        """
        ...

    @abstractmethod
    def fence(self, pipeline: str) -> Fence:
        """What keeps stale leaders of a pipeline, ``channel/pipeline``, from writing (I2)."""
        ...

    def checkpoints(self, owner: Owner, notes: Notes) -> ReplaceableStore | None:  # noqa: ARG002
        """The checkpoints that it keeps beside the rows, None if it keeps none.

        `TargetConfig.stores_checkpoints` has to say the same. Each store of one is told to `notes`.
        """
        return None

    def stored_state(self, pipeline: str) -> StoredState:  # noqa: ARG002
        """What it keeps about a pipeline, ``channel/pipeline``: its fence and its checkpoint.

        Raises:
            SetlError: it does not answer, or refuses.
        """
        return StoredState()

    def schema_changes(self, context: DdlReplicationContext) -> SchemaChanges | None:  # noqa: ARG002
        """What passes schema changes on, None if it has no schema."""
        return None

    def dead_letters(self) -> AbstractContextManager[DeadLetterStore]:
        """Opens the dead letters that are kept beside the rows.

        Raises:
            ConfigurationError: it keeps none, or the account is refused.
            TransientError: it cannot be reached.
        """
        raise no_dead_letters()

    @abstractmethod
    def reader(
        self, name: tuple[str, str], sources: Sequence[MappedTable], columns: Sequence[str]
    ) -> TargetReader:
        """What reads a table or index as a whole, for comparison with what goes into it.

        Args:
            name: (schema, table), or ("", index).
            sources: the source tables that go into it; they agree in what identifies a row.
            columns: the columns to compare.

        Raises:
            ConfigurationError: it does not exist or lacks columns, or is none to be compared.
            SetlError: it cannot be read.
        """
        ...

    @abstractmethod
    def holds_rows(self, name: tuple[str, str]) -> bool:
        """Whether a table or index has any row; one that does not exist has none.

        Raises:
            SetlError: it cannot be asked.
        """
        ...

    def agreeing_tables(
        self,
        source: SourceConfig,  # noqa: ARG002
        tables: Sequence[tuple[tuple[str, str], Route]],  # noqa: ARG002
    ) -> frozenset[str]:
        """Source tables of which it can hold any rows together that the source can hold.

        So that rows of them are in each other's way for a while at most, while some are newer
        than others. None of them need be told if such rows are never in each other's way.

        Args:
            source: whose tables they are.
            tables: schema and table, each with a route.

        Raises:
            SetlError: one of both does not answer.
        """
        return frozenset()

    def view(self, pipeline: str) -> LookAtTarget:  # noqa: ARG002
        """How to look at it while a pipeline, ``channel/pipeline``, may be waiting for it."""
        return lambda _: TargetView()

    def conflicts(self) -> ConflictList | None:
        """The decisions about rows that both sites write, None if it is no such site."""
        return None

    def write_stop(self) -> WriteStop | None:
        """What tells whether its account may write while others may not, None if nothing does."""
        return None

    def relaying(self, pipeline: str) -> Relaying:
        """How a relay, ``channel/pipeline``, writes into it."""
        raise no_log(pipeline)

    @abstractmethod
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        """Report what is wrong with the target."""
        ...


@runtime_checkable
class CreatingTarget(Protocol):
    """A target that can create the tables or indexes that rows need (`create: true`).

    A `TargetSystem` that has no tables to be created leaves it out.
    """

    def table_creation(self, context: DdlReplicationContext) -> TableCreation:
        """What creates them; nothing is connected yet.

        Raises:
            ConfigurationError: the channel file does not say what server the source's tables are
                on.
        """
        ...


@runtime_checkable
class TriggeringTarget(Protocol):
    """A target that may run programs of its own when rows are written to it.

    A `TargetSystem` that has none leaves it out.
    """

    def trigger_watch(
        self, router: Router, back: Router | None, accept: Sequence[str], clock: Clock
    ) -> RefuseTargets:
        """What refuses to write where that changes other rows of the channel.

        Args:
            router: the pipeline's routes.
            back: those of the pipeline that goes the other way, None if there is none.
            accept: the findings that the pipeline is to live with.
            clock: tells when to look again.
        """
        ...


@runtime_checkable
class ActingTarget(Protocol):
    """A target whose tables may have foreign keys with actions that a pipeline carries out.

    A `TargetSystem` that has none leaves it out.
    """

    def key_actions(
        self, context: DdlReplicationContext, *, keeps_letters: bool
    ) -> KeyActions | None:
        """What finds them, None where nobody can be asked what the source has.

        Args:
            context: what the pipeline passes.
            keeps_letters: whether it puts rows aside that the target refuses.
        """
        ...


@runtime_checkable
class OrderedSource(Protocol):
    """A source that may join rows of one table over those of others, unless it is told not to.

    A `Source` that never does leaves it out.
    """

    def keep_order(self, of: Callable[[str], bool]) -> None:
        """Join no rows over others from now on whose schema is such a one.

        What it says may change; streams that are opened later go by what it says then.
        """
        ...


@runtime_checkable
class StatementSource(Protocol):
    """A source whose stream may have statements instead of rows.

    A `SourceSystem` that has none leaves it out.
    """

    def statement_effects(self) -> Effects:
        """What tells what else such a statement does."""
        ...


@runtime_checkable
class StoringTarget(Protocol):
    """A target that is asked what it stores again and again without connecting each time.

    A `TargetSystem` whose every call is as cheap leaves it out.
    """

    def stored_states(self, pipeline: str) -> AbstractContextManager[Callable[[], StoredState]]:
        """Looks as `TargetSystem.stored_state` does, on one connection, for one thread."""
        ...


def no_log(pipeline: str) -> ConfigurationError:
    """The target takes rows, and no relay's records."""
    return ConfigurationError(
        "not a relay: it does not write a binlog to Kafka",
        hint="`setl node` runs it",
        pipeline=pipeline,
    )


def nothing_to_create() -> ConfigurationError:
    """The target is no `setl.systems.port.CreatingTarget`, and `create: true` asks for tables."""
    return ConfigurationError(
        "this target has no tables that could be created",
        hint="Leave `create` out of the channel file",
    )


def no_dead_letters() -> ConfigurationError:
    """The target has no place for faulty rows."""
    return ConfigurationError(
        "this target keeps no dead letters", hint="Leave `faulty_rows` out of the channel file"
    )
