"""Extract: selects the rows of a batch that are applied, and their tables.

Runs in the driver, over headers. Nothing is decoded but the rows of three tables of setl's own:
``retl.retl_mark``, ``retl.xdual`` and ``retl.retl_buffer``. Everything else is decided by an
entry's kind and name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import dropwhile
from typing import Final, NamedTuple, Protocol

from setl.channel.names.shadow_tables import Shadow
from setl.channel.routes.routing import Route
from setl.codec.row_codec import RowCodec, single_entries
from setl.codec.sql.redaction import without_texts
from setl.codec.sql.statement import schema_beside, tables_of, tables_without_schema
from setl.errors import DataError, FatalError, SetlError
from setl.extract.begun import BegunTransaction
from setl.extract.ddl import is_own_ddl, is_without_its_mark, refuse_temporary
from setl.extract.free_gate import GateRow, gate_rows
from setl.extract.heartbeats import HEARTBEATS, HeartbeatSeen
from setl.extract.loopback import (
    OUTSIDE,
    PASSED,
    Echo,
    LoopbackState,
    MarkIdentity,
    after_entry,
    after_mark,
    echo_of,
    read_mark,
)
from setl.extract.statements import SkippedStatements
from setl.model.batch import Batch
from setl.model.change import DecodedRows
from setl.model.checkpoint import Checkpoint
from setl.model.conflict import RECENT_TABLE
from setl.model.entry import Entry, EntryKind

SYSTEM_SCHEMA: Final = "retl"

# Names of tables are a pool that a source can let grow without bound, for example by making
# a table a day; their routes can always be found again.
_MAX_ROUTES: Final = 10_000


class _System(Enum):
    """Tables of the system schema. None of them is ever applied as it is."""

    MARK = "retl_mark"
    HEARTBEAT = "xdual"
    FREE_GATE = "retl_buffer"
    RECENT = "setl_recent"
    OTHER = ""


# The way of rows of ``retl.setl_recent``; the tables that they are about have their own.
_AGREEMENT: Final = Route(index=-1, target=RECENT_TABLE)


class Routing(Protocol):
    """Where the rows of a table go. The answer for one name never changes."""

    def route(self, schema: str, table: str) -> tuple[Route, ...]:
        """The routes of a table, none if it is not mapped."""
        ...

    def shadow(self, schema: str, table: str) -> Shadow | None:
        """The mapped table whose online schema change a table belongs to."""
        ...


class RoutedRows(NamedTuple):
    """A rows entry that is to be applied.

    Attributes:
        entry: the rows, undecoded.
        routes: where they go, at least one.
    """

    entry: Entry
    routes: tuple[Route, ...]


@dataclass(slots=True)
class ExtractCounts:
    """What became of the rows of a batch.

    Numbers of rows are estimates where the source is a binlog (see `Entry.rows`), so the more
    telling ones are also given as numbers of entries, in which several records may be joined.

    Attributes:
        rows: rows that are to be applied.
        entries: entries that hold them.
        loopback_rows: rows dropped because this channel wrote them; marks are not counted.
        unmapped: rows of tables that the channel does not map.
        repeated: rows that were applied before and are read again for their transaction's mark.
        heartbeats: entries of ``retl.xdual``.
        echoes_dropped: transactions of this channel, dropped whole.
        echoes_replicated: transactions of this channel of which rows passed; never, unless somebody
            meddles with marks.
        statements: statements that were logged instead of rows and skipped, by schema.
    """

    rows: int = 0
    entries: int = 0
    loopback_rows: int = 0
    unmapped: int = 0
    repeated: int = 0
    heartbeats: int = 0
    echoes_dropped: int = 0
    echoes_replicated: int = 0
    statements: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Extracted:
    """What is left of a batch.

    Attributes:
        rows: what is to be applied, in source order.
        ddl: DDL of mapped tables, and of other objects in their schemas, in source order; its
            position among the rows is its position's.
        heartbeats: heartbeats seen, in source order.
        gate: rows that the free gate asks for, in source order.
        gate_problems: what is wrong with rows of the free gate that ask for nothing.
        counts: what became of the rest.
    """

    rows: list[RoutedRows] = field(default_factory=list[RoutedRows])
    ddl: list[Entry] = field(default_factory=list[Entry])
    heartbeats: list[HeartbeatSeen] = field(default_factory=list[HeartbeatSeen])
    gate: list[GateRow] = field(default_factory=list[GateRow])
    gate_problems: list[str] = field(default_factory=list[str])
    counts: ExtractCounts = field(default_factory=ExtractCounts)


class _Destinations(dict[tuple[str, str], "tuple[Route, ...] | _System"]):
    """What to do with the rows of each table, looked up once for each name."""

    def __init__(self, routing: Routing) -> None:
        super().__init__()
        self._routing = routing

    def __missing__(self, name: tuple[str, str]) -> tuple[Route, ...] | _System:
        if len(self) >= _MAX_ROUTES:
            self.clear()
        schema, table = name
        if schema.lower() == SYSTEM_SCHEMA:
            known = (_System.MARK, _System.HEARTBEAT, _System.FREE_GATE, _System.RECENT)
            found = next((s for s in known if s.value == table.lower()), _System.OTHER)
        else:
            found = self._routing.route(schema, table)
        self[name] = found
        return found


class Extractor:
    """Goes through the batches of one pipeline in order, and remembers open transactions.

    Not thread-safe. After a batch was not applied, `reset` comes before the next `extract`.
    """

    def __init__(
        self,
        routing: Routing,
        identity: MarkIdentity,
        codec: RowCodec,
        *,
        shadow_ddl: bool = False,
        agrees: bool = False,
        statements: SkippedStatements | None = None,
        maps: Callable[[str], bool] = lambda _: True,
        maps_name: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Start between two transactions, with nothing applied.

        Args:
            routing: which tables are mapped, and where to.
            identity: by what the channel knows its own marks.
            codec: decodes the rows of the system tables.
            shadow_ddl: whether DDL of tables of online schema changes is asked for, too.
            agrees: whether what the opposite pipeline tells of conflicts is to be replicated.
            statements: decides about row changes that were logged as statements; None lets none
                pass.
            maps: whether tables of a schema are mapped, if it has any.
            maps_name: whether a table of a name is mapped, whatever schema it is in.
        """
        self._destinations = _Destinations(routing)
        self._routing = routing
        self._shadow_ddl = shadow_ddl
        self._agrees = agrees
        self._maps = maps
        self._maps_name = maps_name
        self._statements = statements or SkippedStatements(lambda _, __: True)
        self._identity = identity
        self._codec = codec
        self._state: LoopbackState = OUTSIDE
        self._bound: BegunTransaction | None = None

    def reset(self, checkpoint: Checkpoint) -> None:
        """Get ready for a stream that starts again at `checkpoint`.

        The verdict of the transaction is forgotten, not restored: a checkpoint resumes at a
        boundary, so the stream tells it again, mark first. That is why a checkpoint inside a
        transaction goes back to its beginning, and holds how far its rows were applied.
        """
        self._state = OUTSIDE
        self._bound = BegunTransaction.of(checkpoint)

    @property
    def state(self) -> LoopbackState:
        """Where in a transaction the stream is, after the last batch."""
        return self._state

    def are_heartbeats(self, entries: Sequence[Entry]) -> bool:
        """Whether what comes next are whole transactions that hold nothing but heartbeats."""
        inside = self._state.inside or self._bound is not None
        for entry in entries:
            kind = entry.kind
            if kind is EntryKind.ROWS:
                if self._destinations[entry.schema, entry.table] is not _System.HEARTBEAT:
                    return False
            elif kind is EntryKind.DDL or kind is EntryKind.STATEMENT:
                return False
            if kind is not EntryKind.HEARTBEAT:
                inside = kind is not EntryKind.COMMIT
        return not inside

    def extract(self, batch: Batch) -> Extracted:
        """Sort out the next batch.

        Raises:
            DataError: a row of a system table cannot be decoded.
            FatalError: a schema change is setl's own, and nothing tells of which channel.
            PositionLostError: what was applied in part does not come again as it was.
        """
        extracted = Extracted()
        counts, routed = extracted.counts, extracted.rows
        destinations, bound, state = self._destinations, self._bound, self._state
        rows_kind = EntryKind.ROWS
        # Runs once for every entry of the source, so it is kept to dictionary look-ups.
        for entry in batch.entries if bound is None else self._cut_at(bound, batch.entries):
            kind = entry.kind
            if bound is not None:
                bound.see(entry)
            if kind is not rows_kind:
                state = after_entry(state, kind)
                if kind is EntryKind.COMMIT:
                    bound = None  # the stream only goes on from here
                else:
                    self._other(entry, batch, extracted)
                continue
            destination = destinations[entry.schema, entry.table]
            if isinstance(destination, _System):
                # Each record is looked at: a mark may stand in front of another one.
                for single in single_entries(self._codec, entry):
                    state = self._system(single, destination, state, bound, extracted)
                continue
            if not state.inside:
                state = after_entry(state, kind)
            # Records of several runs may lie between each other, so the first one that is not
            # covered says nothing of the next run.
            if bound is not None and bound.covers(entry):
                counts.repeated += entry.rows
                continue
            if state.loopback:
                counts.loopback_rows += entry.rows
            elif destination:
                counts.rows += entry.rows
                routed.append(RoutedRows(entry, destination))
                state = PASSED
            else:
                counts.unmapped += entry.rows
        counts.entries = len(routed)
        self._bound, self._state = bound, state
        return extracted

    def _cut_at(self, bound: BegunTransaction, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Entries, of which a run that is applied in part comes as its records.

        When the stream was read before, its records may have been joined otherwise.
        """
        for entry in entries:
            if entry.kind is EntryKind.ROWS and not bound.covers(entry):
                first, *others = single_entries(self._codec, entry)
                if others and bound.covers(first):
                    yield first
                    yield from others
                    continue
            yield entry

    def _system(
        self,
        entry: Entry,
        table: _System,
        state: LoopbackState,
        bound: BegunTransaction | None,
        extracted: Extracted,
    ) -> LoopbackState:
        """Act on rows of the system schema; returns the state after them."""
        if table is _System.MARK:
            return self._marks(entry, state, extracted.counts)
        if bound is None or not bound.covers(entry):
            if table is _System.HEARTBEAT:
                extracted.counts.heartbeats += 1
                extracted.heartbeats.extend(self._heartbeats(entry))
            elif table is _System.FREE_GATE and not state.loopback:
                self._gate(entry, extracted)
            elif table is _System.RECENT and self._agrees and state.loopback:
                # Its transaction is dropped, as this channel's own; but this is meant for us.
                extracted.rows.append(RoutedRows(entry, (_AGREEMENT,)))
        return after_entry(state, entry.kind)

    def _gate(self, entry: Entry, extracted: Extracted) -> None:
        try:
            wanted, wrong = gate_rows(self._decode(entry))
        except DataError as error:  # what people write there is no reason to stop
            wanted, wrong = [], [str(error)]
        extracted.gate.extend(wanted)
        extracted.gate_problems.extend(wrong)

    def _marks(self, entry: Entry, state: LoopbackState, counts: ExtractCounts) -> LoopbackState:
        schema, op, images = self._decode(entry)
        for before, after in images:
            mark = read_mark(self._identity, schema, op, before, after)
            echo = echo_of(self._identity, state, mark, schema, after)
            counts.echoes_dropped += echo is Echo.DROPPED
            counts.echoes_replicated += echo is Echo.PASSED
            state = after_mark(state, mark)
        return state

    def _other(self, entry: Entry, batch: Batch, extracted: Extracted) -> None:
        if entry.kind is EntryKind.DDL:
            self._ddl(entry, extracted)
        elif entry.kind is EntryKind.STATEMENT:
            self._statement(entry, batch, extracted.counts)

    def _statement(self, entry: Entry, batch: Batch, counts: ExtractCounts) -> None:
        behind = dropwhile(lambda other: other is not entry, batch.entries)
        end = next((other.position for other in behind if other.kind is EntryKind.COMMIT), None)
        schema = self._statements.skips(entry, end)
        if schema:
            counts.statements[schema] = counts.statements.get(schema, 0) + 1

    def _ddl(self, entry: Entry, extracted: Extracted) -> None:
        self._statements.changed(entry)
        if is_own_ddl(self._identity, entry.statement, entry.session):
            return
        tables = [named for named in tables_of(entry) if named[1]]
        if tables:
            concerns = any(self._concerns(schema, table) for schema, table in tables) or any(
                map(self._maps_name, tables_without_schema(entry))
            )
        else:
            schema = schema_beside(entry)
            concerns = schema is None or (schema.lower() != SYSTEM_SCHEMA and self._maps(schema))
        if concerns:
            refuse_temporary(entry)
            if entry.session and is_without_its_mark(
                self._identity, entry.statement, entry.session
            ):
                raise FatalError(
                    "a schema change was run with retl as the session's schema, as setl does, and"
                    f" its mark is missing: {without_texts(entry.statement)[:300]}",
                    hint="If a person ran it there, do what it did to the other site by hand;"
                    " else see that both sites have the table. Then move the position past it",
                    position=entry.position,
                )
            extracted.ddl.append(entry)

    def _concerns(self, schema: str, table: str) -> bool:
        """Whether DDL of this table may matter."""
        if schema.lower() == SYSTEM_SCHEMA:
            return False
        if self._destinations[schema, table]:
            return True
        return self._shadow_ddl and self._routing.shadow(schema, table) is not None

    def _decode(self, entry: Entry) -> DecodedRows:
        try:
            return self._codec.decode(entry.payload, entry.context)
        except SetlError as error:
            error.at(**_log_fields(entry))
            raise

    def _heartbeats(self, entry: Entry) -> Sequence[HeartbeatSeen]:
        try:
            return HEARTBEATS.read(self._codec, entry)
        except SetlError as error:
            error.at(**_log_fields(entry))
            raise


def _log_fields(entry: Entry) -> dict[str, object]:
    return {"table": f"{entry.schema}.{entry.table}", "position": entry.position}
