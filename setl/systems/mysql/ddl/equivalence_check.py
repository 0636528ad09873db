"""Asks both servers what `equivalence` has to know before a statement runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.codec.sql.redaction import redacted
from setl.codec.sql.statement import quoting_of
from setl.codec.sql.table_ddl import Action, Role, TableDdl, parse_table_ddl
from setl.errors import FatalError, SetlError
from setl.model.session import StatementSession
from setl.systems.finding import accepting, finding_id
from setl.systems.mysql.acting_keys import RelatedTables
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import MysqlEndpoint, connect, is_mariadb, translate
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.ddl.between_families import reason_families_differ
from setl.systems.mysql.ddl.collating import (
    collated,
    default_collations,
    reason_charsets_differ,
    with_default,
)
from setl.systems.mysql.ddl.database_defaults import DatabaseDefaults
from setl.systems.mysql.ddl.effects import Effects, effects_of, without_ignore
from setl.systems.mysql.ddl.equivalence import (
    REASON_ROWS_LOST,
    reason_copies_differ,
    reason_not_equivalent_with_rows,
    reason_not_equivalent_without_rows,
    reason_not_reversible,
    reason_order_differs,
    reason_stored_rows_differ,
)
from setl.systems.mysql.ddl.late_created_tables import (
    existing_columns,
    reason_names_differ,
    reason_rows_differ,
    renames,
)
from setl.systems.mysql.ddl.mapping_limits import removes_rows
from setl.systems.mysql.ddl.moved_rows import moved_by, reason_partitions_differ
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.reread_names import reason_reads_differ
from setl.systems.mysql.ddl.rewriting import json_as_text, without_sequences
from setl.systems.mysql.ddl.settings import is_system_zone, lenient_modes
from setl.systems.mysql.ddl.table_state import (
    Name,
    TableState,
    TargetTable,
    default_collation,
    has_rows,
    has_unnumbered,
    kind_of,
    state_of,
    system_zone,
    target_table,
)
from setl.systems.mysql.ddl.translating import Translation, translated
from setl.systems.mysql.foreign_keys import (
    FOREIGN_KEY_ACTION,
    accepts_actions,
    logs_actions,
)
from setl.systems.mysql.server import Server

_ADVICE: Final = (
    "Make the change on the target{by_hand}, with the values that the rows have at the source; in"
    " the future, add such a column without them, and fill it with an UPDATE, which replicates. Or"
    " make it with any values, and load the table with `setl load --replace` when the pipeline runs"
    " again"
)
_ADVICE_ON_FILES: Final = (
    "Nothing has to be made at the target: mark the change as done, as follows. When the source has"
    " imported the table's rows, and the pipeline runs again, load it with `setl load --replace`"
)
_ADVICE_ON_LOSSES: Final = (
    "Make the change on the target{by_hand}, and load the table with `setl load --replace` when the"
    " pipeline runs again: that brings the rows which the source has kept, and removes others"
)
_ADVICE_ON_FAILED: Final = (
    "Compare the table with the source's, and do to the target{by_hand} what was done there"
)
_ADVICE_ON_ACTIONS: Final = (
    "Where the reason can be removed, do so and start again. Else, at the source, make the foreign"
    " key again without these actions, and change the child rows in the application; make the "
    "change"
    " on the target{by_hand}. Where no such row ever"
    f" goes, name {FOREIGN_KEY_ACTION}@schema.table under `accept` in the channel file"
)
_ADVICE_ON_BOTH_WAYS: Final = (
    "Make the change on the target{by_hand}, with the values that the rows have at the source; in"
    " the future, add such a column as NULL without them, and when it is at both sites change it"
    " to what it shall be"
)
_ADVICE_ON_CHARSETS: Final = (
    "Make the change on the target{by_hand}, with the collation that the column has at the source;"
    " in the future, name character set and collation of such a column"
)
_ADVICE_ON_READS: Final = (
    "Make the change on the target{by_hand}. Then load the table again, with `setl load --replace`,"
    " since rows that were read at the source (`read: source`) may be wrong"
)
_ADVICE_ON_MOVES: Final = (
    "Give the target's table the source's partitions{by_hand}, and start again. Or make the change"
    " there by hand, and load both tables with `setl load --replace` when the pipeline runs again"
)
_ADVICE_ON_COPIES: Final = (
    "Make the change on the target{by_hand}, under the time zone of the session that copied the"
    " rows where it is known. Where it is not, or rows were filled in another way, make it all the"
    " same, and load the table with `setl load --replace` when the pipeline runs again. Where"
    " online schema changes always copy times under UTC, name copied-in-utc@schema.table under"
    " `accept` in the channel file instead, and start again"
)
_ADVICE_ON_ROWS_BEFORE: Final = (
    "The target's table has the change, so only mark it as done as said next. When the pipeline"
    " runs again, load the table with `setl load --replace`"
)
_BY_COLUMN: Final = (
    "it is a part of a column's definition, where not every server makes a foreign key of it"
)
_STARTED_SINCE: Final = (
    "but the server was started again since, or there is too much ahead of the pipeline to see"
    " whether it was"
)
_ADVICE_BETWEEN_FAMILIES: Final = (
    "If both kinds of servers compute these values alike, make the change on the target{by_hand};"
    " else make it a plain column there, and load the table with `setl load --replace`"
)
_ADVICE_ON_DIFFERENCE: Final = (
    "Make the table at the target{by_hand} as the shadow was made, and leave its later changes to"
    " setl. Where the target's table differs from the source's on purpose, name"
    " shadow-definition@schema.table under `accept` in the channel file instead, and start again"
)
COPIED_IN_UTC: Final = "copied-in-utc"
SHADOW_DEFINITION: Final = "shadow-definition"
"""What `accept` of a pipeline calls them, see `setl.systems.finding.FOUND_LATER`."""
_MAY_BE_LACKING: Final = re.compile(
    r"\b(?:COLLATE|CHARSET|CHARACTER\s+SET|ENGINE)\b", re.IGNORECASE
)
_PRIVILEGE: Final = "SESSION_VARIABLES_ADMIN"


class EquivalenceCheck:
    """Refuses schema changes that may give target rows other values than the source's."""

    def __init__(
        self,
        source: MysqlEndpoint | None,
        by_hand: str,
        accept: Sequence[str] = (),
        *,
        both_ways: bool = False,
        dialect: Callable[[], Dialect],
        related: RelatedTables | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            source: the source's server, None where it cannot be asked.
            by_hand: how a person changes the target, for messages.
            accept: see `setl.systems.port.DdlReplicationContext`.
            both_ways: whether the target's clients write rows that go to the source.
            dialect: tells what the target knows.
            related: tells which tables' foreign keys setl carries out; None if it does for none.
        """
        self._related = related
        self._dialect = dialect
        self._both_ways = both_ways
        self._source = source
        self._by_hand = by_hand
        self._accept = accept

    def settings(
        self,
        target: Connection[Any],
        step: Step,
        session: StatementSession,
        unread: Callable[[Name], bool],
        *,
        source_key: Callable[[Step, tuple[str, ...], bool], tuple[str, ...]],
        source_had: Callable[[str, str], bool],
    ) -> list[str]:
        """What else the statement's session needs, beside `settings_for`.

        Args:
            target: a connection to the target.
            step: with the statement.
            session: the statement's.
            unread: see `SchemaChange`.
            source_key: tells a table's primary key at the source when the step's statement read
                its rows, given that at the target, and whether the statement gives it another one;
                () if it is not known.
            source_had: tells whether a setting of the source had the value then that it has now.

        Raises:
            FatalError: it is unknown that rows get what they got at the source.
            SetlError: a server does not answer.
        """
        if step.renames_away:
            self._refuse(_reason_children_differ(target, step.tables[0]), step)
        self._refuse(self._reason_names_differ(step), step, _ADVICE_ON_READS)
        if step.source is None:
            return []
        # Names are in backticks by now; of the session, only what decides about text matters.
        ddl = parse_table_ddl(step.statement, "", quoting_of(session))
        if ddl is None:
            return []
        effects = effects_of(ddl)
        advice = _ADVICE_ON_FILES if effects.files else _ADVICE
        reason = reason_not_equivalent_without_rows(effects, session, step.statement)
        self._refuse(reason, step, _ADVICE_ON_FAILED if session.error else advice)
        if step.creation is None:
            parents = [(n.schema, n.table) for n in ddl.names if n.role is Role.REFERENCED]
            alike = bool(session.mariadb) and is_mariadb(target)
            why_not = "" if alike or not _is_by_column(ddl) else _BY_COLUMN
            self.refuse_actions(step, effects.actions, source_had, parents, why_not)
        if is_system_zone(session):
            self._refuse(self._reason_zone_differs(target, source_had), step)
        # It runs without IGNORE, which takes values that do not fit.
        more = [lenient_modes(session, mariadb=is_mariadb(target))] if effects.loses else []
        names = step.source, step.tables[0]
        self._refuse(
            reason_partitions_differ(self._source, target, ddl, names), step, _ADVICE_ON_MOVES
        )
        if ddl.action is Action.ALTER:
            self._refuse(self._reason_reads_differ(target, ddl, step), step, _ADVICE_ON_READS)
            state = state_of(target, step.tables[0])
            if state.rows:
                lost = "" if step.whole or not effects.loses else REASON_ROWS_LOST
                self._refuse(lost, step, _ADVICE_ON_LOSSES)
                reason = reason_not_equivalent_with_rows(
                    effects, session, state, gathered=step.gathered
                )
                self._refuse(reason, step)
                reason = _reason_families_differ(target, effects, session, state)
                self._refuse(reason, step, _ADVICE_BETWEEN_FAMILIES)
                if self._both_ways:
                    self._refuse(
                        reason_not_reversible(effects, session), step, _ADVICE_ON_BOTH_WAYS
                    )
                if step.copied and not unread(step.source):
                    utc = self._accepts(COPIED_IN_UTC, step)
                    reason = reason_copies_differ(effects, session, state.definitions, utc=utc)
                    self._refuse(reason, step, _ADVICE_ON_COPIES)
                if self._numbers(target, effects, step.tables[0], state):
                    key = source_key(step, state.key, effects.rekeyed)
                    reason = reason_order_differs(effects, state, whole=step.whole, source_key=key)
                    self._refuse(reason, step)
                    more += self._counting(target, session)
        more += self._timestamps(target, step, session)
        collations = default_collations(target, session)
        if not collations:
            reason = reason_charsets_differ(step.statement, session)
            self._refuse(reason, step, _ADVICE_ON_CHARSETS)
        return more + collations

    def refuse_recomputed(
        self, target: Connection[Any], step: Step, unread: Callable[[Name], bool]
    ) -> None:
        """Refuse a swap whose copying computed again what the table's rows had.

        Args:
            target: a connection to the target.
            step: see `setl.systems.mysql.ddl.shadow_definition.creations`.
            unread: see `SchemaChange`.

        Raises:
            FatalError: it may have computed something else, and nobody has accepted it.
        """
        state = state_of(target, step.tables[0])
        if state.rows and step.source is not None and not unread(step.source):
            reason = reason_stored_rows_differ(state, utc=self._accepts(COPIED_IN_UTC, step))
            self._refuse(reason, step, _ADVICE_ON_COPIES)

    def refuse_actions(
        self,
        step: Step,
        actions: Sequence[str],
        source_had: Callable[[str, str], bool],
        parents: Sequence[Name] = (),
        why_not: str = "",
    ) -> None:
        """Refuse foreign keys that change rows by themselves, not in the stream nor here.

        What can be told of their tables is reported; of their columns, when they are there, see
        `setl.systems.mysql.acting_keys`.

        Args:
            step: makes them.
            actions: what they do by themselves.
            source_had: see `settings`.
            parents: the tables that they refer to, at the target, as far as they are known.
            why_not: why setl cannot carry them out, if that is known already.

        Raises:
            FatalError: they do so, and nobody has accepted it.
            SetlError: the source does not answer.
        """
        if actions and step.source and not accepts_actions(self._accept, ".".join(step.source)):
            why_not = why_not or self._why_not_carried_out((step.tables[0], *parents))
            reason = self._reason_actions_differ(actions, source_had) if why_not else ""
            if reason and self._related is not None:
                reason = f"{reason}, and setl cannot carry it out ({why_not})"
            self._refuse(reason, step, _ADVICE_ON_ACTIONS)

    def _why_not_carried_out(self, tables: Sequence[Name]) -> str:
        if self._related is None or self._source is None:
            return "the source cannot be asked"
        found = map(self._related.of_target, tables)
        return next((f"{table.name}: {table.why_not}" for table in found if table.why_not), "")

    def refuse_difference(self, step: Step, difference: str) -> None:
        """Refuse to let a table be that its shadow was created with another definition than.

        Args:
            step: see `setl.systems.mysql.ddl.shadow_definition.creations`.
            difference: between the two, "" for none.

        Raises:
            FatalError: there is one, and nobody has accepted it.
        """
        if difference and not self._accepts(SHADOW_DEFINITION, step):
            reason = (
                f"an online schema change ends, and its shadow was made otherwise: {difference}"
            )
            self._refuse(reason, step, _ADVICE_ON_DIFFERENCE)

    def _accepts(self, code: str, step: Step) -> bool:
        location = ".".join(step.source or step.tables[0])
        return bool(accepting(self._accept, finding_id(code, location)))

    def refuse_rows_before(
        self,
        target: Connection[Any],
        step: Step,
        session: StatementSession,
        later: Collection[Name],
        unread: Callable[[Name], bool],
    ) -> None:
        """Refuse to skip a statement that the table has had since it was created.

        Args:
            target: a connection to the target.
            step: with the statement.
            session: the statement's.
            later: those of its tables that were created after it, as the source had them.
            unread: see `SchemaChange`.

        Raises:
            FatalError: it did something to rows that came before it, and the target has some.
            SetlError: a server does not answer.
        """
        ddl = parse_table_ddl(step.statement, "", quoting_of(session))
        if ddl is None:
            return
        reason, held = "", step.tables if moved_by(ddl) is not None else step.tables[:1]
        if renames(ddl):
            reason = reason_names_differ(target, ddl, later)
        if not reason and ddl.action is Action.ALTER and any(has_rows(target, t) for t in held):
            all_come = step.source is not None and unread(step.source)
            # Rows that are read at the source are as they are there.
            moves = removes_rows(ddl) or moved_by(ddl) is not None
            if not step.reread and (moves or not all_come):
                reason = reason_rows_differ(ddl, existing_columns(target, step.tables[0]))
        if reason:
            raise FatalError(
                "rows of the target may not be as a schema change left them at the source, since"
                f" setl created the table as it was later: {reason}:"
                f" {redacted(step.statement)[:300]}",
                hint=_ADVICE_ON_ROWS_BEFORE,
            )

    def statement(
        self,
        target: Connection[Any],
        step: Step,
        session: StatementSession,
        defaults: DatabaseDefaults | None,
    ) -> Translation:
        """The step's statement with the collations that it leaves to its server written out.

        And with what types and words of the source are at the target, and without sequences that it
        lacks.

        Args:
            target: a connection to the target.
            step: with the statement.
            session: the statement's.
            defaults: those of the source's databases, None where it cannot be asked.

        Raises:
            FatalError: they are not known.
            SetlError: a server does not answer.
        """
        text = self._collated(target, step, session, defaults)
        ddl = parse_table_ddl(text, "", quoting_of(session))
        if step.source is None or ddl is None:
            return Translation(text)
        if session.mariadb or not session.known:
            text = without_sequences(target, ddl, text)
            if effects_of(ddl).loses:
                text = without_ignore(ddl, text)
            ddl = parse_table_ddl(text, "", quoting_of(session)) or ddl
        if session.mariadb and not is_mariadb(target):
            text = json_as_text(ddl, text)
            ddl = parse_table_ddl(text, "", quoting_of(session)) or ddl
        foreign = session.mariadb is not None and session.mariadb != is_mariadb(target)
        if not foreign and not _MAY_BE_LACKING.search(text):
            return Translation(text)
        table = target_table(target, ddl, step.tables[0]) if foreign else TargetTable()
        found = translated(ddl, self._dialect(), table, mariadb=session.mariadb)
        return Translation(text) if found.text == ddl.text else found

    def refused_duplicates(self, step: Step, session: StatementSession) -> FatalError | None:
        """What to say where the target has rows of which the source has kept some only.

        None if the statement is no ALTER IGNORE.
        """
        ddl = parse_table_ddl(step.statement, "", quoting_of(session))
        if ddl is None or not effects_of(ddl).loses:
            return None
        return FatalError(
            f"this schema change cannot be replicated: {REASON_ROWS_LOST}:"
            f" {redacted(step.statement)[:300]}",
            hint=_ADVICE_ON_LOSSES.format(by_hand=self._by_hand),
        )

    def loses_alike(
        self,
        target: Connection[Any],
        step: Step,
        session: StatementSession,
        unread: Callable[[Name], bool],
        source_key: Callable[[Step, tuple[str, ...], bool], tuple[str, ...]],
    ) -> bool:
        """Whether an ALTER IGNORE keeps the same ones of the target's rows as of the source's.

        It keeps the first in the order of the primary key, which has to be the same at both: the
        target's table came in the stream.

        Args:
            target: a connection to the target.
            step: with the statement.
            session: the statement's.
            unread: see `SchemaChange`.
            source_key: see `settings`.
        """
        ddl = parse_table_ddl(step.statement, "", quoting_of(session))
        whole = step.whole and not step.copied and not self._both_ways
        if ddl is None or not whole or step.source is None or unread(step.source):
            return False
        state = state_of(target, step.tables[0])
        key = source_key(step, state.key, True)  # noqa: FBT003
        return not reason_order_differs(effects_of(ddl), state, whole=True, source_key=key)

    def _collated(
        self,
        target: Connection[Any],
        step: Step,
        session: StatementSession,
        defaults: DatabaseDefaults | None,
    ) -> str:
        text = step.statement
        if defaults is None or step.source is None:
            return collated(text, session)
        text = collated(defaults.named(text, session, step.source[0]), session)
        ddl = parse_table_ddl(text, "", quoting_of(session))
        if ddl is None or ddl.action is not Action.CREATE:
            return text
        if with_default(text, session, "binary") == text:
            return text
        wanted = defaults.at_statement(step.source[0])
        if wanted and wanted != default_collation(target, step.tables[0][0]):
            return with_default(text, session, wanted)
        return text

    def _refuse(self, reason: str, step: Step, advice: str = _ADVICE) -> None:
        if reason:
            raise FatalError(
                f"this schema change cannot be replicated: {reason}:"
                f" {redacted(step.statement)[:300]}",
                hint=advice.format(by_hand=self._by_hand),
            )

    def _numbers(
        self, target: Connection[Any], effects: Effects, name: Name, state: TableState
    ) -> bool:
        """Whether a counter gives numbers to rows that are there."""
        column = effects.numbered
        if not column or column == state.counter or column not in state.types:
            return effects.numbers
        return effects.numbers or has_unnumbered(target, name, column)

    def _reason_names_differ(self, step: Step) -> str:
        """Why rows may have been read from another table than that which is renamed, or ""."""
        if self._source is None or step.source is not None or not step.reread:
            return ""
        with closing(connect(self._source)) as connection:
            again = next((name for name in step.reread if kind_of(connection, name)), None)
        return f"the source has another table {'.'.join(again)} by now" if again else ""

    def _reason_reads_differ(self, target: Connection[Any], ddl: TableDdl, step: Step) -> str:
        """Why rows may have been read by names that mean something else by now, or ""."""
        if self._source is None or not step.reread:
            return ""
        before = read_table(target, *step.tables[0])
        if before is None:
            return ""
        with closing(connect(self._source)) as connection:
            return reason_reads_differ(ddl, before, read_table(connection, *step.reread[0]))

    def _reason_actions_differ(
        self, actions: Sequence[str], had: Callable[[str, str], bool]
    ) -> str:
        """Why rows that foreign keys change by themselves need not be in the stream, or ""."""
        said = ", ".join(actions)
        logged = False
        if self._source is not None:
            with Server.opened(self._source) as server:
                logged = logs_actions(server)
        if not logged:
            return f"rows that a foreign key changes by {said} are not in the source's binlog"
        if not had("foreign keys", "logged"):
            return (
                f"rows that a foreign key changes by {said} are in the source's binlog now;"
                f" {_STARTED_SINCE}, and they need not have been before"
            )
        return ""

    def _reason_zone_differs(self, target: Connection[Any], had: Callable[[str, str], bool]) -> str:
        there = None
        if self._source is not None:
            with closing(connect(self._source)) as connection:
                there = system_zone(connection)
        here = system_zone(target)
        what = "it depends on the time zone of the source's machine"
        if there != here or there is None:
            zone = "not known" if there is None else there[0]
            return f"{what}, which is {zone}; the target's is {here[0]}"
        if not had("zone", there[0]):
            return f"{what}, which is {there[0]} now; {_STARTED_SINCE}, and it may have had another"
        return ""

    def _counting(self, target: Connection[Any], session: StatementSession) -> list[str]:
        wanted = {
            "auto_increment_increment": session.increment,
            "auto_increment_offset": session.offset,
        }
        return self._privileged(target, wanted)

    def _timestamps(
        self, target: Connection[Any], step: Step, session: StatementSession
    ) -> list[str]:
        explicit = session.explicit_timestamps
        if explicit is None:
            return []
        # Whoever copies a table gives its columns of that type their defaults again.
        concerned = "timestamp" in step.statement.lower()
        if not concerned and "timestamp" not in state_of(target, step.tables[0]).types.values():
            return []
        return self._privileged(target, {"explicit_defaults_for_timestamp": int(explicit)})

    def _privileged(self, target: Connection[Any], wanted: dict[str, int]) -> list[str]:
        """Settings that not every account may make, if they are other ones by themselves."""
        needed: list[str] = []
        with target.cursor() as cursor:
            for name, value in wanted.items():
                cursor.execute(f"SELECT @@SESSION.{name}")
                row = cursor.fetchone()
                if row is not None and int(row[0]) != value:
                    needed.append(f"SET SESSION {name} = {value}")
            try:
                for statement in needed:
                    cursor.execute(statement)
            except pymysql.MySQLError as error:
                failure: SetlError = translate(error)
                what = "BINLOG REPLAY" if is_mariadb(target) else _PRIVILEGE
                raise FatalError(
                    f"a schema change has to run under the source's settings: {failure.message}",
                    hint=f"GRANT {what} ON *.* to the target's account, and start again",
                ) from error
            finally:
                for statement in needed:
                    name = statement.split()[2]
                    cursor.execute(f"SET SESSION {name} = DEFAULT")
        return needed


def _is_by_column(ddl: TableDdl) -> bool:
    """Whether a foreign key is a part of a column's definition."""
    words = [token.word for token in ddl.tokens]
    return words.count("REFERENCES") > words.count("FOREIGN")


def _reason_children_differ(target: Connection[Any], name: Name) -> str:
    """Why a table cannot be renamed before it is dropped: foreign keys would go with it."""
    with target.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE"
            " WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s"
            " AND NOT (TABLE_SCHEMA = %s AND TABLE_NAME = %s)",
            (*name, *name),
        )
        found = [f"{schema}.{table}" for schema, table in cursor.fetchall()]
    if not found:
        return ""
    return (
        f"foreign keys of {', '.join(found)} refer to the table, and would refer to none any more"
    )


def _reason_families_differ(
    target: Connection[Any], effects: Effects, session: StatementSession, state: TableState
) -> str:
    if not session.known or session.mariadb is is_mariadb(target):
        return ""
    return reason_families_differ(effects, state.types)
