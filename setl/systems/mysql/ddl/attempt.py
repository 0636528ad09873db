"""Carries out one schema change on a target, step by step, and writes down how far it came.

See `setl.systems.mysql.ddl.replicating` for what the record in ``retl.setl_ddl`` is for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import starmap
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl import failpoints
from setl.codec.sql.redaction import without_texts
from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.errors import FatalError, SetlError, TransientError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.session import StatementSession
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import error_number, is_mariadb, translate
from setl.systems.mysql.ddl.advice import advice_on, reason_of
from setl.systems.mysql.ddl.collating import default_collations
from setl.systems.mysql.ddl.effects import with_ignore
from setl.systems.mysql.ddl.ledger import BEGUN, DONE, FAILED, STORED, Ledger, Recorded, digest_of
from setl.systems.mysql.ddl.moved_rows import exchanges, refuse_second_move
from setl.systems.mysql.ddl.plan import Plan, Step, Swap
from setl.systems.mysql.ddl.replaced import ReplacedTables
from setl.systems.mysql.ddl.rewriting import drops_foreign_keys, with_existing_keys, without_missing
from setl.systems.mysql.ddl.shadow_definition import NEUTRAL, constraining
from setl.systems.mysql.ddl.shadow_swaps import (
    refuse_altered,
    refuse_other_shadows,
    refuse_unseen,
)
from setl.systems.mysql.ddl.source_key import made_by
from setl.systems.mysql.ddl.statements import (
    as_it_came_out,
    did_nothing,
    dropped_databases,
    parsed,
    refuse_other,
)
from setl.systems.mysql.ddl.table_records import CreatedTables, ExistingTables, SetAside
from setl.systems.mysql.ddl.table_state import MISSING_TABLE, Name, has_rows
from setl.systems.mysql.ddl.target import DdlTarget, Run
from setl.systems.mysql.identifiers import qualified
from setl.systems.mysql.sink.loaded import loaded_all, unsure_of

# What a server says to a change that was made before: table, column, key or constraint is there
# already, or is not there any more.
_ALREADY: Final = MISSING_TABLE | {1050, 1054, 1060, 1061, 1068, 1091, 1826}
_DUPLICATE: Final = 1062
_EMPTYING: Final = frozenset({Action.CREATE, Action.DROP, Action.TRUNCATE})
_BY_HAND: Final = (" by hand", "{by_hand}")
_ADVICE_ON_DROP: Final = (
    "Drop their tables at the target{by_hand}, and `setl start` the channel, which then skips it"
)
_AS_IT_IS: Final = (
    "If the source still has the table, start again: the leader then creates it. Or make it by hand"
)


class Attempt:
    """One attempt at one change, over connections of its own."""

    def __init__(self, target: DdlTarget, ticket: LoadTicket, change: SchemaChange) -> None:
        self._target = target
        self._ticket = ticket
        self._change = change
        self._writer = target.writer()
        self._runner = target.runner()
        self._equivalence_check = target.equivalence_check()
        self._defaults = target.database_defaults(ticket, change, self._writer.open, self._begin)
        self._settings = target.server_settings(ticket, change, self._writer.open, self._begin)
        self._action: Action | None = None
        self._removes = False  # whether the table is another one afterwards, or none

    def carry_out(self, ddl: TableDdl) -> Sequence[str]:
        """Do what is not done yet; returns what was done, for people."""
        if did_nothing(ddl, self._change.session):
            return (f"it did nothing at the source: {self._change.statement}",)
        ddl = as_it_came_out(ddl, self._change.session)
        ledger = Ledger(self._writer.open(), self._ticket, self._change)
        known = ledger.steps()
        self._action = ddl.action
        self._removes = ddl.action is Action.DROP or ddl.replaces
        try:
            if not known:
                ddl = self._target.of_tables(ddl, self._writer.open())
            if ddl.action is Action.DROP:
                self._target.refuse_drop_before_swap(ddl, ledger.shadows())
            aside = SetAside(self._writer.open(), self._ticket)
            plan = self._target.plan(ddl, ledger.shadows(), aside)
            runs = self._runs(plan, ledger)
        except FatalError as error:
            if self._is_done(known.get(0)):
                return (f"done by hand: {self._change.statement}",)
            raise self._stopped(0, self._change.statement, error) from error
        if plan.empty:
            return ()
        self._writer.register(self._ticket)
        if runs:
            self._runner.open(self._ticket)
        done = [self._step(n, run, known.get(n)) for n, run in enumerate(runs)]
        if plan.keep or plan.swaps or plan.forget:
            self._keep(plan, ledger, len(runs), conditional=ddl.conditional)
        return done or (f"noted, of a shadow table: {self._change.statement}",)

    def look_at_other(self) -> Sequence[str]:
        """Note what a change of other objects than tables tells; returns what was done.

        Raises:
            SetlError: it may be about mapped tables all the same, and cannot be replicated.
        """
        if self._defaults is not None:
            self._defaults.follow()
        try:
            refuse_other(self._change, self._target.routing)
        except FatalError as error:
            if self._was_done_by_hand():
                return (f"done by hand: {self._change.statement}",)
            dropped = dropped_databases(self._change)
            if dropped and not self._target.holds_tables_of(dropped, self._writer.open()):
                return (f"nothing to drop: {self._change.statement}",)
            error.hint = _ADVICE_ON_DROP if dropped else error.hint.replace(*_BY_HAND, 1)
            raise self._stopped(0, self._change.statement, error) from error
        return ()

    def _was_done_by_hand(self) -> bool:
        ledger = Ledger(self._writer.open(), self._ticket, self._change)
        return self._is_done(ledger.steps().get(0))

    def close(self) -> None:
        """Give the connections up."""
        self._runner.close()
        self._writer.close()

    def _runs(self, plan: Plan, ledger: Ledger) -> list[Run]:
        runs = [(step, self._change.session) for step in plan.steps]
        for shadow, table in plan.swaps:
            retained = ledger.retained(_dotted(shadow))
            if retained or not ledger.steps():
                self._refuse_other_shadows(retained, Swap(shadow, table), ledger)
            runs += self._target.swapped(retained, table)
        return runs

    def _refuse_other_shadows(
        self, retained: Sequence[tuple[str, StatementSession]], swap: Swap, ledger: Ledger
    ) -> None:
        statements = [ddl for ddl in (parsed(*each) for each in retained) if ddl is not None]
        refuse_unseen(statements, swap, self._target.by_hand)
        since = ledger.done_since_stored(_dotted(swap.shadow))
        for target, same in self._target.targets_of(swap.table):
            described = read_table(self._writer.open(), *target) if same else None
            columns = described.folded if described is not None else ()
            refuse_other_shadows(statements, swap.table, columns)
            refuse_altered(since, target, swap)

    def _keep(self, plan: Plan, ledger: Ledger, steps: int, *, conditional: bool) -> None:
        """Write down what was done to shadows."""
        statement = self._change.statement
        if plan.keep is not None and self._defaults is not None:
            statement = self._defaults.named(statement, self._change.session, plan.keep[0])
        self._begin()
        if plan.keep is not None:
            shadow = _dotted(plan.keep)
            there = plan.created and conditional and ledger.retained(shadow)
            if plan.created and not there:
                ledger.forget(shadow)
            if not there:  # CREATE TABLE IF NOT EXISTS does nothing to a shadow that is there
                ledger.write(0, STORED, statement, shadow=shadow)
        for gone in (*plan.forget, *(swap.shadow for swap in plan.swaps)):
            ledger.forget(_dotted(gone))
        if plan.swaps:
            # So that a swap that comes again is known, though nothing of its shadow is any more.
            ledger.write(steps, DONE, self._change.statement)
        self._writer.open().commit()

    def _step(self, number: int, run: Run, known: Recorded | None) -> str:
        """Do a step if it is not done yet; returns its statement."""
        step, session = run
        if step.narrowed:
            step = with_existing_keys(self._writer.open(), step, session)
        notes = "; ".join(step.notes)
        if not step.statement and step.creation is None:
            return f"nothing to do ({notes}): {self._change.statement}"
        return self._step_of_table(number, (step, session), known, notes)

    def _step_of_table(self, number: int, run: Run, known: Recorded | None, retained: str) -> str:
        step, session = run
        connection = self._writer.open()
        statement = self._target.marked(step.statement)
        if self._is_done(known, step):
            return f"done before: {statement}"
        made = {
            table: CreatedTables(connection, self._ticket).position(table) for table in step.tables
        }
        of_now = {t: p for t, p in made.items() if p and p.generation == self._change.generation}
        later = [table for table, p in of_now.items() if p.version >= self._change.version]
        if later and not (self._removes or self._is_in_no_definition(run)):
            if not self._made_room(number, run, later):
                self._refuse_rows_before(number, run, statement, later)
                return f"in the table since setl has created it: {statement}"
            of_now = {t: p for t, p in of_now.items() if t not in later}
        self._refuse_later_model(number, run, statement)
        digest = digest_of(connection, step, session)
        if known is not None and known.generation < self._change.generation:
            self._refuse_second_move(number, run, statement)
        if known is not None and known.state == BEGUN and known.digest != digest:
            self._done(number, step, statement)
            return f"found done: {statement}"
        step = self._without_missing(step, session)
        if not step.statement:
            text = f"nothing to do, since the target's table has no such foreign key: {statement}"
            self._done(number, step, text)
            return text
        if step.creation is not None:
            (step, retained), session = self._constraining(number, run), NEUTRAL
            if not step.statement:
                statement = retained or f"nothing to do: {statement}"
                self._done(number, step, statement)
                return statement
            statement = self._target.marked(step.statement)
            digest = digest_of(connection, step, session)
        try:
            if replaced := self._replaced(connection):
                replaced.refuse(step)
            passed = self._equivalence_check.statement(connection, step, session, self._defaults)
            statement = self._target.marked(passed.text)
            retained = "; ".join(filter(None, (retained, *passed.notes)))
            unread = self._change.unread
            more = self._equivalence_check.settings(
                connection,
                step,
                session,
                unread,
                source_key=self._source_key,
                source_had=self._source_had,
            )
        except FatalError as error:
            raise self._stopped(number, statement, error) from error
        self._write(number, BEGUN, statement, digest=digest, step=step)
        failpoints.reached("ddl.begun")
        again = known is not None and known.generation < self._change.generation
        again = again or len(of_now) < sum(position is not None for position in made.values())
        ddl_context = {*(_ALREADY if again else ()), *(MISSING_TABLE if step.may_lack else ())}
        self._execute(number, (step, session), statement, more, ddl_context)
        failpoints.reached("ddl.ran")
        if self._removes:
            self._forget_made(step.tables)
        self._done(number, step, statement)
        failpoints.reached("ddl.done")
        return f"{statement} ({retained})" if retained else statement

    def _is_in_no_definition(self, run: Run) -> bool:
        """Whether a table that was created later does not have what a statement does."""
        step, session = run
        ddl = parsed(step.statement, session)
        return self._action is Action.TRUNCATE or (ddl is not None and exchanges(ddl))

    def _without_missing(self, step: Step, session: StatementSession) -> Step:
        """A step without the foreign keys to drop that its table has not, "" if that is all."""
        ddl = parsed(step.statement, session) if step.creation is None else None
        if ddl is None or not drops_foreign_keys(ddl):
            return step
        text = without_missing(self._writer.open(), ddl, step.tables[0])
        return step._replace(statement=text)

    def _execute(
        self, number: int, run: Run, text: str, more: Sequence[str], ddl_context: Collection[int]
    ) -> None:
        """Run a statement, whatever the server says with an error that is among `ddl_context`."""
        step, session = run
        try:
            self._runner.run(text, session, more)
        except FatalError as error:
            raise self._stopped(number, text, error) from error
        except pymysql.MySQLError as error:
            if error_number(error) in ddl_context:
                return
            check = self._equivalence_check
            lost = check.refused_duplicates(step, session)
            if error_number(error) == _DUPLICATE and lost is not None:
                connection, ignoring = self._writer.open(), with_ignore(text)
                known = self._change.unread, self._source_key
                if ignoring != text and check.loses_alike(connection, step, session, *known):
                    self._execute(number, run, ignoring, more, ddl_context)
                    return
                raise self._stopped(number, text, lost) from error
            self._refused(number, step._replace(statement=text), error)

    def _constraining(self, number: int, run: Run) -> tuple[Step, str]:
        """A step of `creations` with the statement that is to run, "" for none.

        And what the table keeps though its shadow does not have it, for people; or "".
        """
        step, session = run
        connection = self._writer.open()

        def run_as(statement: str, session: StatementSession) -> None:
            mine = step._replace(statement=statement)
            passed = self._equivalence_check.statement(connection, mine, session, self._defaults)
            more = default_collations(connection, session)
            self._runner.run(self._target.marked(passed.text), session, more)

        try:
            self._equivalence_check.refuse_recomputed(connection, step, self._change.unread)
            what = constraining(connection, step, session, self._target.routing, run_as)
            self._equivalence_check.refuse_actions(step, what.actions, self._source_had)
            self._equivalence_check.refuse_difference(step, what.difference)
            if what.before:
                run_as(what.before, NEUTRAL)
        except FatalError as error:
            raise self._stopped(number, step.statement, error) from error
        except pymysql.MySQLError as error:
            self._refused(number, step, error)
            raise
        retained = f"the target's table keeps what the source's has not: {what.retained}"
        return step._replace(statement=what.statement), retained if what.retained else ""

    def _source_key(
        self,
        step: Step,
        key: tuple[str, ...],
        rekeys: bool,  # noqa: FBT001
    ) -> tuple[str, ...]:
        """See `EquivalenceCheck.settings`."""
        done = Ledger(self._writer.open(), self._ticket, self._change).done()
        made = step.tables[0] in made_by(ddl for ddl in starmap(parsed, done) if ddl is not None)
        if rekeys:  # what the source says now is the key of afterwards
            return key if made else ()
        return self._target.source_key(self._change, step, key, made=made)

    def _source_had(self, setting: str, value: str) -> bool:
        """See `EquivalenceCheck.settings`."""
        return self._settings is not None and self._settings.had(setting, value)

    def _refuse_second_move(self, number: int, run: Run, statement: str) -> None:
        """Refuse to move rows back that were moved before the pipeline went back."""
        try:
            refuse_second_move(parsed(run[0].statement, run[1]))
        except FatalError as error:
            raise self._stopped(number, statement, error) from error

    def _made_room(self, number: int, run: Run, later: Sequence[Name]) -> bool:
        """Remove empty tables that setl has created under the names that a statement gives.

        So rows go into the table that was theirs then, and later statements find it as it was. If
        this dies in between, the next leader creates the tables again, and they are removed again.
        """
        step, session = run
        tables = self._target.conflicting_tables(
            self._writer.open(), step, session, later, self._change
        )
        if not tables or self._later_model(run) or not self._is_understood(run):
            return False
        connection = self._begin()
        ExistingTables(connection, self._ticket).forget(tables)
        connection.commit()
        unchecked = session._replace(foreign_keys=False)
        for table in tables:
            statement = self._target.marked(f"DROP TABLE {qualified(*table)}")
            try:
                self._runner.run(statement, unchecked)
            except pymysql.MySQLError as error:
                self._refused(number, step._replace(statement=statement), error)
        self._forget_made(tables)
        return True

    def _is_understood(self, run: Run) -> bool:
        """Whether a target of the other family takes a CREATE TABLE, as far as its parser tells.

        If not, the table stays that setl has created, which is like the source's.
        """
        step, session = run
        connection = self._writer.open()
        if self._action is not Action.CREATE or session.mariadb is is_mariadb(connection):
            return True
        try:
            check = self._equivalence_check
            passed = check.statement(connection, step, session, self._defaults)
            return self._runner.parses(passed.text, session)
        except FatalError:
            return False

    def _later_model(self, run: Run) -> Name | None:
        """The table of which a statement makes a copy, if it is not yet or no more as it was."""
        step, session = run
        ddl = parsed(step.statement, session)
        for name in ddl.names if ddl is not None else ():
            if name.role is Role.LIKE:
                table = (name.schema, name.table)
                position = CreatedTables(self._writer.open(), self._ticket).position(table)
                if position and position.generation == self._change.generation:
                    return table if position.version >= self._change.version else None
        return None

    def _refuse_later_model(self, number: int, run: Run, statement: str) -> None:
        if model := self._later_model(run):
            text = f"it is like {_dotted(model)}, which setl has created as it was later"
            error = FatalError(f"this schema change cannot be replicated: {text}", hint=_AS_IT_IS)
            raise self._stopped(number, statement, error)

    def _refuse_rows_before(
        self, number: int, run: Run, statement: str, later: Sequence[Name]
    ) -> None:
        check, unread = self._equivalence_check, self._change.unread
        try:
            check.refuse_rows_before(self._writer.open(), *run, later, unread)
        except FatalError as error:
            raise self._stopped(number, statement, error) from error

    def _replaced(self, connection: Connection[Any]) -> ReplacedTables | None:
        return self._target.replaced_tables(connection, self._ticket)

    def _done(self, number: int, step: Step, statement: str) -> None:
        """Write down that a step is done, and what it did to names."""
        connection = self._writer.open()
        replaced = self._replaced(connection)
        # A table without rows is as the source's at any position of the stream.
        emptied = step.tables if self._action in _EMPTYING else ()
        emptied = unsure_of(connection, self._ticket, emptied)
        self._write(
            number,
            DONE,
            statement,
            digest=replaced.digest(step) if replaced else "",
            emptied=[table for table in emptied if not has_rows(connection, table)],
        )

    def _forget_made(self, tables: Sequence[Name]) -> None:
        connection = self._begin()
        for table in tables:
            CreatedTables(connection, self._ticket).forget(table)
        SetAside(connection, self._ticket).forget(tables)
        connection.commit()

    def _is_done(self, known: Recorded | None, step: Step | None = None) -> bool:
        if known is None or known.state != DONE:
            return False
        if step is not None and step.creation is not None:
            # Where the pipeline has gone back to before a swap, the table is as it became later.
            # What it is to lose may have been given to it again, by statements that it has had.
            return True
        # By hand, see `_stopped`; or at this position of the stream before, after which the
        # pipeline has not gone back.
        return known.generation >= self._change.generation

    def _refused(self, number: int, step: Step, error: pymysql.MySQLError) -> None:
        failure = translate(error)
        if isinstance(failure, TransientError):
            raise failure from error
        shown = without_texts(step.statement)[:300]
        code, by_hand = error_number(error) or 0, self._target.by_hand
        text = f"the target refuses a schema change: {shown}: {failure.message}{reason_of(code)}"
        refused = FatalError(text)
        shadows = self._shadows_of_change()
        refused.hint = advice_on(code, by_hand, copied=step.copied, shadows=shadows)
        raise self._stopped(number, step.statement, refused) from error

    def _shadows_of_change(self) -> list[str]:
        """The shadows that may replace a table that the change is about."""
        ddl = parsed(self._change.statement, self._change.session)
        shadows = Ledger(self._writer.open(), self._ticket, self._change).shadows()
        tables = ddl.tables if ddl is not None else ()
        return [shadow for shadow in shadows if self._target.is_shadow_of(shadow, tables)]

    def _stopped(self, number: int, statement: str, error: FatalError) -> SetlError:
        """Write a failure down, with the way on for whoever reads it."""
        self._write(number, FAILED, statement, error=error.message)
        where = f"pipeline = '{self._ticket.pipeline_key}' AND id = '{self._change.id}'"
        way = error.hint or "Make it possible, and `setl start` the channel; or make it{by_hand}"
        way = way.replace("{by_hand}", self._target.by_hand)
        error.hint = (
            f"{way}. When it is made by hand, mark it as done; that is enough. To do so, run there:"
            f" UPDATE retl.setl_ddl SET state = 'done' WHERE {where} AND step = {number}; and `setl"
            " start` the channel, which then skips it"
        )
        return error

    def _write(
        self,
        number: int,
        state: str,
        statement: str,
        *,
        digest: str = "",
        error: str | None = None,
        step: Step | None = None,
        emptied: Sequence[Name] = (),
    ) -> None:
        connection = self._begin()
        loaded_all(connection, self._ticket, emptied)
        if step is not None:  # it may take its tables away, or their names
            ExistingTables(connection, self._ticket).forget(step.tables)
            SetAside(connection, self._ticket).write(step.aside)
        ledger = Ledger(connection, self._ticket, self._change)
        ledger.write(number, state, statement, digest=digest, error=error)
        if state == DONE:
            ledger.trim()
        self._writer.open().commit()

    def _begin(self) -> Connection[Any]:
        self._writer.register(self._ticket)
        self._target.begin(self._writer, self._ticket)
        return self._writer.open()


def _dotted(name: Name) -> str:
    return f"{name[0]}.{name[1]}"
