"""Schema changes of the source: new columns are added, whatever else is about rows stops.

A table keeps a column that the source drops, as it was. A column is added in the log alone, without
a look at rows, so it is NULL in all of them; where the source gives its rows something else, no
record says what, and the pipeline stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from setl.channel.routes.routing import Route, Router, selected_columns
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, Clause, Role, TableDdl
from setl.codec.sql.tokens import Token
from setl.errors import FatalError, SetlError, TransientError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.schema import Column, Kind
from setl.model.session import StatementSession
from setl.systems.delta.commit import ATTEMPTS, VersionTakenError, check_epoch, committed
from setl.systems.delta.fence import admit
from setl.systems.delta.files import files_of, read_file, schema_of
from setl.systems.delta.location import Folder, Location, deltalake, translating
from setl.systems.delta.names import refuse_names
from setl.systems.delta.types import made_type, takes
from setl.systems.mysql.ddl.declared_columns import defined_columns
from setl.systems.mysql.ddl.effects import effects_of
from setl.systems.mysql.ddl.statements import refuse_other

if TYPE_CHECKING:
    from deltalake import DeltaTable

_BY_IGNORING: Final = (
    ". Then `setl apply` the file with `ddl: ignore`, and `setl start` the channel. Write"
    " `ddl: pass` again when the pipeline is past it"
)
_AGAIN: Final = "load the table again, with `setl load --replace`"
_ALTERED: Final = (
    "add columns that the table lacks, as with DeltaTable.alter.add_columns, or delete the table if"
    f" a column has another type now; then {_AGAIN}"
)
_KEYS: Final = frozenset({
    "INDEX", "KEY", "CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR",
    "CHECK",
})  # fmt: skip
_HARMLESS: Final = frozenset({
    "COMMENT", "ENGINE", "AUTO_INCREMENT", "ALGORITHM", "LOCK", "ROW_FORMAT", "KEY_BLOCK_SIZE",
    "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "DEFAULT", "CHARACTER",
    "CHARSET", "COLLATE", "ENABLE", "DISABLE", "FORCE", "ALTER", "WAIT", "NOWAIT", "ANALYZE",
    "OPTIMIZE", "REBUILD", "CHECK", "REPAIR", "REORGANIZE", "COALESCE", "PARTITION", "REMOVE",
    "ORDER", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "DELAY_KEY_WRITE",
    "ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "MAX_ROWS", "MIN_ROWS",
    "PACK_KEYS", "PAGE_CHECKSUM", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE", "TRANSACTIONAL",
})  # fmt: skip
"""What an ALTER TABLE does to no value of a row. ALTER is about defaults and indexes."""

_FILLED: Final = frozenset({
    "NOT", "DEFAULT", "AUTO_INCREMENT", "GENERATED", "AS", "SERIAL", "PRIMARY", "ON",
})  # fmt: skip
"""Words of a new column that may give a value to rows that are there; see `_fills`, too."""


class _Target(NamedTuple):
    """Where rows of a route go; the table is None if there is none."""

    route: Route
    folder: Folder
    table: DeltaTable | None

    @property
    def name(self) -> str:
        return ".".join(self.route.target)

    def has_values(self, schema: pa.Schema, column: str) -> bool:
        """Whether any row has another value than NULL there."""
        if self.table is None:
            return False
        with translating(self.folder):
            return any(
                found.null_count < len(found)
                for file in files_of(self.table)
                for found in read_file(self.folder, file.path, schema, [column]).columns
            )


class DeltaDdl:
    """The `setl.load.sink.SchemaChanges` of Delta tables."""

    def __init__(self, location: Location, router: Router) -> None:
        """Connect to nothing yet."""
        self._location = location
        self._router = router

    def apply(self, ticket: LoadTicket, change: SchemaChange) -> Sequence[str]:
        """See `setl.load.sink.SchemaChanges.apply`."""
        try:
            if (ddl := change.ddl) is not None:
                return tuple(self._carry_out(ticket, ddl, change.session))
            refuse_other(change, self._router)
        except SetlError as error:
            if isinstance(error, FatalError) and _BY_IGNORING not in error.hint:
                error.hint += _BY_IGNORING
            where = {"server": self._location, "position": change.position, "ddl": change.id}
            raise error.at(pipeline=ticket.pipeline_key, **where) from None
        return ()

    def _carry_out(
        self, ticket: LoadTicket, ddl: TableDdl, session: StatementSession
    ) -> Iterator[str]:
        for name in ddl.names:
            if name.role in (Role.NEW_NAME, Role.OTHER) and self._maps(name.schema, name.table):
                raise _refused(ddl, "rows come from another table, or under another name", _AGAIN)
        for name in ddl.subjects:
            for route in self._router.route(name.schema, name.table):
                if ddl.action is Action.ALTER:
                    yield from self._alter(ticket, ddl, route, session)
                elif ddl.action is Action.RENAME:
                    raise _refused(ddl, "rows come under another name from now on", _AGAIN)
                elif ddl.action in (Action.TRUNCATE, Action.DROP) or ddl.replaces:
                    yield self._empty(ddl, route)
                elif ddl.with_rows:
                    raise _refused(ddl, "it makes rows of which no record tells", _AGAIN)
                else:
                    yield f"nothing to do for {'.'.join(route.target)}: {ddl.text}"

    def _maps(self, schema: str, table: str) -> bool:
        return any(True for _ in self._router.route(schema, table))

    def _empty(self, ddl: TableDdl, route: Route) -> str:
        """All rows are gone at the source; here only if there are none, or a person says so."""
        table = self._location.of_table(route.target).open()
        name = ".".join(route.target)
        if table is None or not files_of(table):
            return f"{name} has no rows: {ddl.text}"
        raise _refused(
            ddl,
            f"all rows of the source's table are gone, and {name} may have others, too",
            "delete its rows, as with DELETE FROM in Spark or DeltaTable.delete()",
        )

    def _alter(
        self, ticket: LoadTicket, ddl: TableDdl, route: Route, session: StatementSession
    ) -> Iterator[str]:
        folder = self._location.of_table(route.target)
        target = _Target(route, folder, folder.open())
        if effects_of(ddl).loses and target.table is not None and files_of(target.table):
            raise _refused(ddl, "IGNORE removes rows of which no record tells", _AGAIN)
        added: list[Column] = []
        known = {column.name.lower(): column for column in defined_columns(ddl)}
        for clause in ddl.clauses():
            verb, second = clause.words[0], clause.words[1] if len(clause.words) > 1 else ""
            if verb == "ADD" and clause.columns:
                for tokens in clause.columns:
                    filled = _fills(tokens, session)
                    added += _added(ddl, target, tokens, known.get(_key(tokens)), filled=filled)
            elif verb == "DROP" and clause.columns:
                names = ", ".join(name_of(tokens[0]) for tokens in clause.columns)
                yield f"{target.name} keeps {names}, which the source drops: {ddl.text}"
            elif not _is_harmless(clause, verb, second):
                raise _refused(ddl, "what it does to rows that are there is in no record", _ALTERED)
        if not added:
            yield f"nothing to do for {target.name}: {ddl.text}"
            return
        self._add(ticket, target, added)
        yield f"{target.name} has {', '.join(c.name for c in added)} now: {ddl.text}"

    def _add(self, ticket: LoadTicket, target: _Target, columns: Sequence[Column]) -> None:
        folder = target.folder
        refuse_names(column.name for column in columns)
        schema = deltalake().Schema.from_arrow(
            pa.schema([pa.field(c.name, made_type(c)) for c in columns])
        )
        for _ in range(ATTEMPTS):
            table = folder.open()
            if table is None:
                return
            if not check_epoch(table, ticket.leadership, folder):
                admit(self._location, target.route.target, ticket.leadership)
            with suppress(VersionTakenError):
                committed(
                    table, folder, partial(_add_columns, table, schema.fields), ticket.leadership
                )
                return
        raise TransientError("others commit to the table all the time", server=folder.uri)


def _add_columns(table: DeltaTable, columns: Any, said: Any) -> None:
    table.alter.add_columns(columns, commit_properties=said)


def _key(tokens: Sequence[Token]) -> str:
    return name_of(tokens[0]).lower()


def _added(
    ddl: TableDdl, target: _Target, tokens: Sequence[Token], column: Column | None, *, filled: bool
) -> Iterator[Column]:
    """The columns that a table lacks for one that the source adds."""
    name = name_of(tokens[0])
    if target.table is None:
        return
    schema, empty = schema_of(target.table), not files_of(target.table)
    for _, own in selected_columns(target.route, [name]):
        if column is None:
            raise _refused(ddl, f"nothing is known of the type of {name}", _ALTERED)
        column = replace(_with_digits(column, tokens), name=own)
        if filled and not empty:
            why = f"rows that are there get a value in {name}, and no record says which"
            raise _refused(ddl, why, _ALTERED)
        there = next((f for f in schema if f.name.lower() == own.lower()), None)
        if there is None:
            yield column
        elif not takes(there.type, column):
            why = f"{target.name} has a column {own} that does not hold its values"
            raise _refused(ddl, why, "load a new table")
        elif not empty and target.has_values(schema, there.name):
            raise _refused(ddl, f"{target.name} has a column {own} with values already", _AGAIN)


def _is_harmless(clause: Clause, verb: str, second: str) -> bool:
    if (verb, second) == ("ADD", "PARTITION"):
        return True
    if verb in {"ADD", "DROP", "RENAME"}:
        return second in _KEYS and not (verb == "RENAME" and second not in {"INDEX", "KEY"})
    return verb in _HARMLESS or (verb == "" and not clause.columns)


def _with_digits(column: Column, tokens: Sequence[Token]) -> Column:
    """With the digits of a DECIMAL, which is DECIMAL(10,0) where none are written."""
    if column.kind is not Kind.DECIMAL:
        return column
    texts = [token.text for token in tokens[2:7]]
    if texts[:1] != ["("]:
        return replace(column, precision=10, scale=0)
    scale = int(texts[3]) if texts[2:3] == [","] else 0
    return replace(column, precision=int(texts[1]), scale=scale)


def _fills(tokens: Sequence[Token], session: StatementSession) -> bool:
    """Whether a new column may give a value to rows that are there."""
    words = [token.word for token in tokens[1:]]
    said = [word for word in words if word in _FILLED]
    if not said:
        # Such a TIMESTAMP is NOT NULL, unless explicit_defaults_for_timestamp is on.
        return (
            words[:1] == ["TIMESTAMP"] and "NULL" not in words and not session.explicit_timestamps
        )
    return said != ["DEFAULT"] or words[words.index("DEFAULT") + 1 :][:1] != ["NULL"]


def _refused(ddl: TableDdl, why: str, hint: str) -> FatalError:
    return FatalError(
        f"this schema change cannot be replicated: {why}: {ddl.text[:300]}",
        hint=f"By hand: {hint}{_BY_IGNORING}",
    )
