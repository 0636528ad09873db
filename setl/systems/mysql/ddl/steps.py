"""Runs the steps of a schema change on a target, each once, and writes down how far each came."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl import failpoints
from setl.codec.sql.redaction import without_texts
from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.errors import FatalError, TransientError
from setl.model.session import StatementSession
from setl.systems.mysql.connection import error_number, is_mariadb, translate
from setl.systems.mysql.ddl.advice import advice_on, not_replicated, reason_of
from setl.systems.mysql.ddl.collating import default_collations
from setl.systems.mysql.ddl.context import ChangeContext
from setl.systems.mysql.ddl.equivalence import (
    refuse_actions,
    refuse_difference,
    refuse_recomputed,
    refuse_unequal,
)
from setl.systems.mysql.ddl.late_created_tables import names_taken, refuse_rows_before
from setl.systems.mysql.ddl.ledger import BEGUN, DONE, Recorded, digest_of
from setl.systems.mysql.ddl.moved_rows import exchanges, refuse_second_move
from setl.systems.mysql.ddl.plan import Name, Step
from setl.systems.mysql.ddl.replaced import ReplacedTables
from setl.systems.mysql.ddl.rewriting import (
    for_target,
    with_existing_keys,
    without_missing_keys,
)
from setl.systems.mysql.ddl.settings import session_settings
from setl.systems.mysql.ddl.shadow_definition import NEUTRAL, constraining
from setl.systems.mysql.ddl.source_settings import DatabaseDefaults
from setl.systems.mysql.ddl.statements import as_it_came_out
from setl.systems.mysql.ddl.table_records import (
    CreatedTables,
    ExistingTables,
    SetAside,
    TableRecord,
)
from setl.systems.mysql.ddl.table_state import MISSING_TABLE, has_rows
from setl.systems.mysql.identifiers import qualified
from setl.systems.mysql.sink.loaded import loaded_all, unsure_of

# What a server says to a change that was made before: table, column, key or constraint is there
# already, or is not there any more.
_ALREADY: Final = MISSING_TABLE | {1050, 1054, 1060, 1061, 1068, 1091, 1826}
_EMPTYING: Final = frozenset({Action.CREATE, Action.DROP, Action.TRUNCATE})
_AS_IT_IS: Final = (
    "If the source still has the table, start again: the leader then creates it. Or make it by hand"
)


class Steps:
    """The steps of one change."""

    def __init__(
        self,
        context: ChangeContext,
        ddl: TableDdl,
        defaults: DatabaseDefaults | None,
        shadows: Sequence[str],
    ) -> None:
        """Run nothing yet.

        Args:
            context: the change, with a runner that is open if there are steps.
            ddl: what the change came to.
            defaults: those of the source's databases, None where it cannot be asked.
            shadows: those that may replace a table which the change is about.
        """
        self._context, self._target, self._change = context, context.target, context.change
        self._defaults, self._shadows = defaults, shadows
        self._action = ddl.action
        # Whether the table is another one afterwards, or none.
        self._removes = ddl.action is Action.DROP or ddl.replaces
        both_ways = context.target.marked_drops
        self._replaced = ReplacedTables(context) if both_ways else None

    @property
    def _connection(self) -> Connection[Any]:
        return self._context.connection

    def run(self, number: int, step: Step, known: Recorded | None) -> str:
        """Do a step if it is not done yet; returns its statement, for people."""
        if step.narrowed:
            step = with_existing_keys(self._connection, step)
        notes = "; ".join(step.notes)
        if not step.statement and step.creation is None:
            return f"nothing to do ({notes}): {self._change.statement}"
        statement = self._target.marked(step.statement)
        if self._is_done(known, step):
            return f"done before: {statement}"
        found = self._created_later(number, step)
        if found is None:
            return f"in the table since setl has created it: {statement}"
        self._refuse_later_model(number, step)
        return self._begin_and_run(number, step, known, notes, again=found)

    def _created_later(self, number: int, step: Step) -> bool | None:
        """Whether a table of a step has been made in an earlier life of the pipeline.

        None if what the step does is in its table already, which was created as it was later.
        """
        records = CreatedTables(self._connection, self._context.ticket)
        made = {table: records.position(table) for table in step.tables}
        of_now = {t: p for t, p in made.items() if p and p.generation == self._change.generation}
        later = [table for table, p in of_now.items() if p.version >= self._change.version]
        if later and not (self._removes or self._is_in_no_definition(step)):
            if not self._made_room(number, step, later):
                try:
                    refuse_rows_before(self._context, step, later)
                except FatalError as error:
                    statement = self._target.marked(step.statement)
                    raise self._context.stopped(number, statement, error) from error
                return None
            of_now = {t: p for t, p in of_now.items() if t not in later}
        return len(of_now) < sum(position is not None for position in made.values())

    def _begin_and_run(
        self, number: int, step: Step, known: Recorded | None, notes: str, *, again: bool
    ) -> str:
        connection, statement = self._connection, self._target.marked(step.statement)
        digest = digest_of(connection, step)
        went_back = known is not None and known.generation < self._change.generation
        if went_back:
            self._refuse_second_move(number, step)
        if known is not None and known.state == BEGUN and known.digest != digest:
            self._done(number, step, statement)
            return f"found done: {statement}"
        if not (step := without_missing_keys(connection, step)).statement:
            text = f"nothing to do, since the target's table has no such foreign key: {statement}"
            self._done(number, step, text)
            return text
        if step.creation is not None:
            step, notes = self._constraining(number, step)
            if not step.statement:
                statement = notes or f"nothing to do: {statement}"
                self._done(number, step, statement)
                return statement
            statement = self._target.marked(step.statement)
            digest = digest_of(connection, step)
        try:
            if self._replaced:
                self._replaced.refuse(step)
            passed = for_target(self._context, step, self._defaults)
            statement = self._target.marked(passed.text)
            notes = "; ".join(filter(None, (notes, *passed.notes)))
            refuse_unequal(self._context, step)
            settings = session_settings(connection, step)
        except FatalError as error:
            raise self._context.stopped(number, statement, error) from error
        self._write(number, BEGUN, statement, digest=digest, step=step)
        failpoints.reached("ddl.begun")
        absorbed = {
            *(_ALREADY if again or went_back else ()),
            *(MISSING_TABLE if step.may_lack else ()),
        }
        self._execute(number, step, statement, settings, absorbed)
        failpoints.reached("ddl.ran")
        if self._removes:
            self._forget_made(step.tables)
        self._done(number, step, statement)
        failpoints.reached("ddl.done")
        return f"{statement} ({notes})" if notes else statement

    def _is_in_no_definition(self, step: Step) -> bool:
        """Whether a table that was created later does not have what a statement does."""
        return self._action is Action.TRUNCATE or (step.ddl is not None and exchanges(step.ddl))

    def _execute(
        self,
        number: int,
        step: Step,
        text: str,
        settings: Sequence[str],
        absorbed: Collection[int],
    ) -> None:
        """Run a step's text, whatever the server says with an error that is among `absorbed`."""
        try:
            self._context.runner.run(text, step.session, settings)
        except FatalError as error:
            raise self._context.stopped(number, text, error) from error
        except pymysql.MySQLError as error:
            if error_number(error) in absorbed:
                return
            self._refused(number, step._replace(statement=text), error)

    def _constraining(self, number: int, step: Step) -> tuple[Step, str]:
        """A step of `creations` with the statement that is to run, "" for none.

        And what the table keeps though its shadow does not have it, for people; or "".
        """
        context, connection = self._context, self._connection

        def run_as(statement: str, session: StatementSession) -> None:
            mine = step._replace(statement=statement, session=session)
            passed = for_target(context, mine, self._defaults)
            settings = default_collations(connection, session)
            context.runner.run(self._target.marked(passed.text), session, settings)

        try:
            refuse_recomputed(context, step)
            what = constraining(connection, step, self._target.routing, run_as)
            refuse_actions(context, step, what.actions)
            refuse_difference(context, step, what.difference)
            if what.before:
                run_as(what.before, NEUTRAL)
        except FatalError as error:
            raise context.stopped(number, step.statement, error) from error
        except pymysql.MySQLError as error:
            self._refused(number, step, error)
            raise
        notes = f"the target's table keeps what the source's has not: {what.retained}"
        step = step._replace(statement=what.statement, session=NEUTRAL)
        return step, notes if what.retained else ""

    def _refuse_second_move(self, number: int, step: Step) -> None:
        """Refuse to move rows back that were moved before the pipeline went back."""
        try:
            refuse_second_move(step.ddl)
        except FatalError as error:
            statement = self._target.marked(step.statement)
            raise self._context.stopped(number, statement, error) from error

    def _made_room(self, number: int, step: Step, later: Sequence[Name]) -> bool:
        """Remove empty tables that setl has created under the names that a statement gives.

        So rows go into the table that was theirs then, and later statements find it as it was. If
        this dies in between, the next leader creates the tables again, and they are removed again.
        """
        tables = self._conflicting_tables(step, later)
        if not tables or self._later_model(step) or not self._is_understood(step):
            return False
        connection = self._context.begin()
        ExistingTables(connection, self._context.ticket).forget(*tables)
        connection.commit()
        unchecked = step.session._replace(foreign_keys=False)
        for table in tables:
            statement = self._target.marked(f"DROP TABLE {qualified(*table)}")
            try:
                self._context.runner.run(statement, unchecked)
            except pymysql.MySQLError as error:
                self._refused(number, step._replace(statement=statement), error)
        self._forget_made(tables)
        return True

    def _conflicting_tables(self, step: Step, later: Sequence[Name]) -> Sequence[Name]:
        """Those created tables that may be removed for a statement to run; see `names_taken`."""
        ddl, original = step.ddl, self._change.ddl
        # In two directions, a row may be on its way to the table that would be removed.
        if self._target.marked_drops or step.reread or ddl is None or original is None:
            return ()
        unread = [table for table in original.tables if self._change.unread(table)]
        if {to for table in unread for to, _ in self._target.targets_of(table)} & set(later):
            return ()
        return names_taken(self._connection, as_it_came_out(ddl, step.session), later)

    def _is_understood(self, step: Step) -> bool:
        """Whether a target of the other family takes a CREATE TABLE, as far as its parser tells.

        If not, the table stays that setl has created, which is like the source's.
        """
        alike = step.session.mariadb is is_mariadb(self._connection)
        if self._action is not Action.CREATE or alike:
            return True
        try:
            passed = for_target(self._context, step, self._defaults)
            return self._context.runner.parses(passed.text, step.session)
        except FatalError:
            return False

    def _later_model(self, step: Step) -> Name | None:
        """The table of which a statement makes a copy, if it is not yet or no more as it was."""
        for name in step.ddl.names if step.ddl is not None else ():
            if name.role is Role.LIKE:
                table = (name.schema, name.table)
                position = CreatedTables(self._connection, self._context.ticket).position(table)
                if position and position.generation == self._change.generation:
                    return table if position.version >= self._change.version else None
        return None

    def _refuse_later_model(self, number: int, step: Step) -> None:
        if model := self._later_model(step):
            why = f"it is like {'.'.join(model)}, which setl has created as it was later"
            statement = self._target.marked(step.statement)
            error = not_replicated(why, step.statement, _AS_IT_IS)
            raise self._context.stopped(number, statement, error)

    def _done(self, number: int, step: Step, statement: str) -> None:
        """Write down that a step is done, and what it did to names."""
        connection = self._connection
        # A table without rows is as the source's at any position of the stream.
        emptied = step.tables if self._action in _EMPTYING else ()
        emptied = unsure_of(connection, self._context.ticket, emptied)
        digest = self._replaced.digest(step) if self._replaced else ""
        empty = [table for table in emptied if not has_rows(connection, table)]
        self._write(number, DONE, statement, digest=digest, emptied=empty)

    def _forget_made(self, tables: Sequence[Name]) -> None:
        connection = self._context.begin()
        CreatedTables(connection, self._context.ticket).forget(*tables)
        SetAside(connection, self._context.ticket).forget(*tables)
        connection.commit()

    def _is_done(self, known: Recorded | None, step: Step) -> bool:
        if known is None or known.state != DONE:
            return False
        # Where the pipeline has gone back to before a swap, the table is as it became later. What
        # it is to lose may have been given to it again, by statements that it has had.
        return step.creation is not None or known.is_done(self._change.generation)

    def _refused(self, number: int, step: Step, error: pymysql.MySQLError) -> None:
        failure = translate(error)
        if isinstance(failure, TransientError):
            raise failure from error
        shown = without_texts(step.statement)[:300]
        code, by_hand = error_number(error) or 0, self._target.by_hand
        text = f"the target refuses a schema change: {shown}: {failure.message}{reason_of(code)}"
        hint = advice_on(code, by_hand, copied=step.copied, shadows=self._shadows)
        refused = FatalError(text, hint=hint)
        raise self._context.stopped(number, step.statement, refused) from error

    def _write(
        self,
        number: int,
        state: str,
        statement: str,
        *,
        digest: str,
        step: Step | None = None,
        emptied: Sequence[Name] = (),
    ) -> None:
        connection, ticket = self._context.begin(), self._context.ticket
        loaded_all(connection, ticket, emptied)
        if step is not None:  # it may take its tables away, or their names
            ExistingTables(connection, ticket).forget(*step.tables)
            SetAside(connection, ticket).put(step.aside, TableRecord())
        ledger = self._context.ledger
        ledger.write(number, state, statement, digest=digest)
        if state == DONE:
            ledger.trim()
        connection.commit()
