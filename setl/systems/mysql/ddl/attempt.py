"""Carries out one schema change on a target, and writes down how far it came.

See `setl.systems.mysql.ddl.replicating` for what the record in ``retl.setl_ddl`` is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from setl.codec.sql.statement import table_ddl
from setl.codec.sql.table_ddl import Action, TableDdl
from setl.errors import FatalError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.session import StatementSession
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.ddl.context import ChangeContext, DdlTarget
from setl.systems.mysql.ddl.ledger import DONE, STORED, Ledger
from setl.systems.mysql.ddl.other_objects import without_other_objects
from setl.systems.mysql.ddl.plan import Name, Plan, Step, Swap, plan_ddl, rewritten, under_way
from setl.systems.mysql.ddl.predicates import of_copies
from setl.systems.mysql.ddl.shadow_definition import creations
from setl.systems.mysql.ddl.shadow_swaps import (
    refuse_altered,
    refuse_drop_before_swap,
    refuse_other_shadows,
    refuse_unseen,
)
from setl.systems.mysql.ddl.source_settings import DatabaseDefaults
from setl.systems.mysql.ddl.statements import (
    as_it_came_out,
    did_nothing,
    dropped_databases,
    refuse_other,
)
from setl.systems.mysql.ddl.steps import Steps
from setl.systems.mysql.ddl.table_records import SetAside

_BY_HAND: Final = (" by hand", "{by_hand}")
_ADVICE_ON_DROP: Final = (
    "Drop their tables at the target{by_hand}, and `setl start` the channel, which then skips it"
)


class Attempt:
    """One attempt at one change, over connections of its own."""

    def __init__(self, target: DdlTarget, ticket: LoadTicket, change: SchemaChange) -> None:
        """Connect to nothing yet."""
        self._context = ChangeContext(target, ticket, change)
        self._target, self._change = target, change
        self._defaults = DatabaseDefaults(self._context, target.source) if target.source else None

    def run(self) -> Sequence[str]:
        """Do what is not done yet; returns what was done, for people. Raises SetlError."""
        ddl = self._change.ddl
        return self._look_at_other() if ddl is None else self._carry_out(ddl)

    def close(self) -> None:
        """Give the connections up."""
        self._context.close()

    def _carry_out(self, ddl: TableDdl) -> Sequence[str]:
        context, change = self._context, self._change
        if did_nothing(ddl, change.session):
            return (f"it did nothing at the source: {change.statement}",)
        ddl = as_it_came_out(ddl, change.session)
        ledger = context.ledger
        known = ledger.steps()
        routing, source = self._target.routing, self._target.source
        shadows = [_name(shadow) for shadow in ledger.shadows()]
        try:
            if not known:
                ddl = without_other_objects(ddl, routing, context.connection, source)
            if ddl.action is Action.DROP:
                refuse_drop_before_swap(ddl, shadows, routing)
            plan = self._plan(ddl, shadows)
            steps = self._steps(plan, ledger)
        except FatalError as error:
            if 0 in known and known[0].is_done(change.generation):
                return (f"done by hand: {change.statement}",)
            raise context.stopped(0, change.statement, error) from error
        if plan.empty:
            return ()
        context.register()
        if steps:
            context.runner.open(context.ticket)
        running = Steps(context, ddl, self._defaults, self._shadows_of(shadows))
        done = [running.run(n, step, known.get(n)) for n, step in enumerate(steps)]
        if plan.keep or plan.swaps or plan.forget:
            self._keep(plan, ledger, len(steps), conditional=ddl.conditional)
        return done or (f"noted, of a shadow table: {change.statement}",)

    def _look_at_other(self) -> Sequence[str]:
        """Note what a change of other objects than tables says."""
        context, change = self._context, self._change
        if self._defaults is not None:
            self._defaults.follow()
        try:
            refuse_other(change, self._target.routing)
        except FatalError as error:
            known = context.ledger.steps().get(0)
            if known is not None and known.is_done(change.generation):
                return (f"done by hand: {change.statement}",)
            dropped = dropped_databases(change)
            if dropped and not self._holds_tables_of(dropped):
                return (f"nothing to drop: {change.statement}",)
            error.hint = _ADVICE_ON_DROP if dropped else error.hint.replace(*_BY_HAND, 1)
            raise context.stopped(0, change.statement, error) from error
        return ()

    def _holds_tables_of(self, schemas: Collection[str]) -> bool:
        """Whether there are tables where tables of these databases of the source may go."""
        with self._context.connection.cursor() as cursor:
            cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")
            there = [(str(schema), str(table)) for schema, table in cursor.fetchall()]
        may_fill = self._target.routing.may_fill
        return any(may_fill(schema, name) for schema in schemas for name in there)

    def _plan(self, ddl: TableDdl, shadows: Collection[Name]) -> Plan:
        """What a statement becomes, see `plan_ddl`; raises FatalError."""
        if not ddl.subjects:
            return Plan()
        target = self._target
        # A MySQL has no OR REPLACE: as where a drop is marked, the old table gets another name.
        renamed = target.marked_drops or (ddl.replaces and not target.dialect().mariadb)
        aside = SetAside(self._context.connection, self._context.ticket)
        return plan_ddl(ddl, target.routing, marked_drops=renamed, shadows=shadows, aside=aside)

    def _shadows_of(self, shadows: Iterable[Name]) -> list[str]:
        """Those that may replace a table that the change is about."""
        tables = self._change.ddl.tables if self._change.ddl else ()
        routing = self._target.routing
        return [".".join(s) for s in shadows if not under_way(routing, [s]).isdisjoint(tables)]

    def _steps(self, plan: Plan, ledger: Ledger) -> list[Step]:
        steps = [step._replace(session=self._change.session) for step in plan.steps]
        for swap in plan.swaps:
            retained = ledger.retained(".".join(swap.shadow))
            statements = [(d, s) for text, s in retained if (d := table_ddl(text, s)) is not None]
            if retained or not ledger.steps():
                self._refuse_other_shadows([ddl for ddl, _ in statements], swap, ledger)
            steps += self._swapped(statements, swap.table)
        return steps

    def _swapped(
        self, statements: Sequence[tuple[TableDdl, StatementSession]], table: Name
    ) -> Iterable[Step]:
        """The statements that were kept of a shadow, for the table that it replaces."""
        routing, steps = self._target.routing, list[Step]()
        for ddl, session in statements:
            if ddl.action is not Action.CREATE:
                shadow = (ddl.subjects[0].schema, ddl.subjects[0].table)
                like, copied = of_copies(ddl, session), rewritten(ddl, routing, {shadow: table})
                steps += (step._replace(copied=True, session=like) for step in copied)
            elif not steps:  # a later one says IF NOT EXISTS
                steps += (s._replace(session=session) for s in creations(ddl, table, routing))
        return steps

    def _refuse_other_shadows(
        self, statements: Sequence[TableDdl], swap: Swap, ledger: Ledger
    ) -> None:
        refuse_unseen(statements, swap, self._target.by_hand)
        since = ledger.done_since_stored(".".join(swap.shadow))
        for target, same in self._target.targets_of(swap.table):
            described = read_table(self._context.connection, *target) if same else None
            columns = described.folded if described is not None else ()
            refuse_other_shadows(statements, swap.table, columns)
            refuse_altered(since, target, swap)

    def _keep(self, plan: Plan, ledger: Ledger, steps: int, *, conditional: bool) -> None:
        """Write down what was done to shadows."""
        statement = self._change.statement
        if plan.keep is not None and self._defaults is not None:
            statement = self._defaults.named(statement, self._change.session, plan.keep[0])
        connection = self._context.begin()
        if plan.keep is not None:
            shadow = ".".join(plan.keep)
            there = plan.created and conditional and ledger.retained(shadow)
            if plan.created and not there:
                ledger.forget(shadow)
            if not there:  # CREATE TABLE IF NOT EXISTS does nothing to a shadow that is there
                ledger.write(0, STORED, statement, shadow=shadow)
        for gone in (*plan.forget, *(swap.shadow for swap in plan.swaps)):
            ledger.forget(".".join(gone))
        if plan.swaps:
            # So that a swap that comes again is known, though nothing of its shadow is any more.
            ledger.write(steps, DONE, self._change.statement)
        connection.commit()


def _name(dotted: str) -> Name:
    """A name of the record, whose schema has no dot as a rule."""
    schema, _, name = dotted.partition(".")
    return schema, name
