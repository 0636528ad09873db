"""What a schema change has to meet so that rows of the target come out as those of the source.

One table: each kind of change that may give rows other values, and the reason, if there is one, why
it may do so here. What has a reason stops the pipeline, and a person makes it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import connect, is_mariadb
from setl.systems.mysql.ddl import predicates
from setl.systems.mysql.ddl.advice import not_replicated
from setl.systems.mysql.ddl.collating import (
    default_collations,
    reason_backslash_changes,
    reason_charsets_differ,
)
from setl.systems.mysql.ddl.context import ChangeContext
from setl.systems.mysql.ddl.effects import Effects, effects_of
from setl.systems.mysql.ddl.moved_rows import reason_partitions_differ
from setl.systems.mysql.ddl.plan import Name, Step
from setl.systems.mysql.ddl.settings import is_system_zone
from setl.systems.mysql.ddl.source_settings import source_had
from setl.systems.mysql.ddl.table_state import (
    TableState,
    has_unnumbered,
    kind_of,
    referring_tables,
    state_of,
    system_zone,
)
from setl.systems.mysql.foreign_keys import FOREIGN_KEY_ACTION, accepts_actions, logs_actions
from setl.systems.mysql.server import Server

COPIED_IN_UTC: Final = "copied-in-utc"
SHADOW_DEFINITION: Final = "shadow-definition"
"""What `accept` of a pipeline calls them, see `setl.systems.finding.FOUND_LATER`."""

_LATER: Final = "load the table with `setl load --replace` when the pipeline runs again"
_BY_HAND: Final = (
    "Make the change on the target{by_hand}, with the values that the rows have at the source; in"
    " the future, add such a column without them, and fill it with an UPDATE, which replicates. Or"
    f" make it with any values, and {_LATER}"
)
_OF_LITERALS: Final = (
    "Make the change on the target{by_hand}, in a session with that character set (SET NAMES); in"
    " the future, make such a change in a session with utf8mb4"
)
_OF_BARE: Final = (
    "Make the change on the target{by_hand}, and give the columns there the defaults that SHOW"
    " CREATE TABLE shows at the source. In the future, alter such a table under"
    " explicit_defaults_for_timestamp = 1"
)
_OF_FILES: Final = (
    "Nothing has to be made at the target: mark the change as done, as follows. When the source has"
    " imported the table's rows, and the pipeline runs again, load it with `setl load --replace`"
)
_OF_LOSSES: Final = (
    f"Make the change on the target{{by_hand}}, and {_LATER}: that brings the rows which the source"
    " has kept, and removes others"
)
_OF_FAILED: Final = (
    "Compare the table with the source's, and do to the target{by_hand} what was done there"
)
_OF_UNKNOWN: Final = f"Make the change on the target{{by_hand}}. If it changes rows, {_LATER}"
_OF_ACTIONS: Final = (
    "Where the reason can be removed, do so and start again. Else, at the source, make the foreign"
    " key again without these actions, and change the child rows in the application; make the"
    " change on the target{by_hand}. Where no such row ever goes, name"
    f" {FOREIGN_KEY_ACTION}@schema.table under `accept` in the channel file"
)
_OF_BOTH_WAYS: Final = (
    "Make the change on the target{by_hand}, with the values that the rows have at the source; in"
    " the future, add such a column as NULL without them, and when it is at both sites change it"
    " to what it shall be"
)
_OF_CHARSETS: Final = (
    "Make the change on the target{by_hand}, with the collation that the column has at the source;"
    " in the future, name character set and collation of such a column"
)
_OF_READS: Final = (
    "Make the change on the target{by_hand}. Then load the table again, with `setl load --replace`,"
    " since rows that were read at the source (`read: source`) may be wrong"
)
_OF_MOVES: Final = (
    "Give the target's table the source's partitions{by_hand}, and start again. Or make the change"
    " there by hand, and load both tables with `setl load --replace` when the pipeline runs again"
)
_OF_COPIES: Final = (
    "Make the change on the target{by_hand}, under the time zone of the session that copied the"
    " rows where it is known. Where it is not, or rows were filled in another way, make it all the"
    f" same, and {_LATER}. Where online schema changes always copy times under UTC, name"
    f" {COPIED_IN_UTC}@schema.table under `accept` in the channel file instead, and start again"
)
_OF_FAMILIES: Final = (
    "If both kinds of servers compute these values alike, make the change on the target{by_hand};"
    " else make it a plain column there, and load the table with `setl load --replace`"
)
_OF_DIFFERENCE: Final = (
    "Make the table at the target{by_hand} as the shadow was made, and leave its later changes to"
    " setl. Where the target's table differs from the source's on purpose, name"
    f" {SHADOW_DEFINITION}@schema.table under `accept` in the channel file instead, and start again"
)
_BY_COLUMN: Final = (
    "it is a part of a column's definition, where not every server makes a foreign key of it"
)
_UNREADABLE: Final = "some of its bytes are no characters of its session's character set"
_ROWS_OF_FILES: Final = "its rows come from a file of the source's server, or go with one"
_FAILED: Final = "at the source it failed half-way, with error {}"
_LOST: Final = "IGNORE may remove or change rows, and which is open"
_OF_OTHERS: Final = (
    "rows of other tables, which are in the same one here, get the time of this change"
)
_UNSURE: Final = "existing rows get values of {}, different at each site"
_NUMBERED: Final = "it numbers rows that are there, in an order that need not be the target's"
_BARE: Final = (
    "with explicit_defaults_for_timestamp = 0 in its session, a MariaDB may give {} a default and"
    " ON UPDATE, or may not; two servers need not agree"
)
_STARTED_SINCE: Final = (
    "but the server was started again since, or there is too much ahead of the pipeline to see"
    " whether it was"
)


class Facts:
    """What rules go by; servers are asked for a thing when a rule wants it first."""

    def __init__(self, context: ChangeContext, step: Step) -> None:
        """Ask nothing yet."""
        self.context, self.step, self.session = context, step, step.session
        self.ddl = step.ddl

    @property
    def target(self) -> Connection[Any]:
        """A connection to the target."""
        return self.context.connection

    @cached_property
    def effects(self) -> Effects:
        """What the statement does to rows."""
        return Effects() if self.ddl is None else effects_of(self.ddl)

    @cached_property
    def state(self) -> TableState:
        """The target's table before the statement."""
        return state_of(self.target, self.step.tables[0])

    @property
    def foreign(self) -> bool:
        """Whether the source is known to be of the other family."""
        return self.session.known and self.session.mariadb is not is_mariadb(self.target)

    @property
    def unreadable(self) -> bool:
        """Whether its text has bytes that its session's character set does not have."""
        return "\N{REPLACEMENT CHARACTER}" in self.step.statement

    @property
    def unsure(self) -> str:
        """The functions that fill rows with other values at each site."""
        return ", ".join(self.effects.unsure)

    @property
    def numbers(self) -> bool:
        """Whether a counter gives numbers to rows that are there and are not read again."""
        if self.unread and self.step.whole:
            return False
        column, state = self.effects.numbered, self.state
        if not column or column == state.counter or column not in state.types:
            return self.effects.numbers
        name = self.step.tables[0]
        return self.effects.numbers or has_unnumbered(self.target, name, column)

    @property
    def utc(self) -> bool:
        """Whether somebody says that online schema changes copy rows under UTC."""
        return self.context.target.accepts_of(COPIED_IN_UTC, self.step)

    @property
    def unread(self) -> bool:
        """Whether all rows are still to be read at the source."""
        return self.step.source is not None and self.context.change.unread(self.step.source)


@dataclass(frozen=True)
class Rule:
    """A kind of change, and when rows of the target need not come out as the source's.

    Attributes:
        kind: what it is about.
        why_not: gives the reason why not, "" where they come out alike.
        advice: what to do then.
    """

    kind: str
    why_not: Callable[[Facts], str]
    advice: str = _BY_HAND


def refuse_unequal(context: ChangeContext, step: Step) -> None:
    """Refuse a step after which rows of the target may not be as the source's."""
    facts = Facts(context, step)
    found = why_not_equivalent(facts, OF_NAMES)
    if not found and step.source is not None and facts.ddl is not None:
        found = why_not_equivalent(facts, OF_STATEMENTS)
        if not found and facts.ddl.action is Action.ALTER:
            found = why_not_equivalent(facts, OF_ALTER)
            if not found and facts.state.rows:
                found = why_not_equivalent(facts, OF_ROWS)
        found = found or why_not_equivalent(facts, OF_TEXTS)
    if found:
        raise not_replicated(found[0], step.statement, found[1])


def why_not_equivalent(facts: Facts, rules: Sequence[Rule]) -> tuple[str, str] | None:
    """The first reason why rows may not be as the source's, and what to do; None for none."""
    found = ((rule.why_not(facts), rule.advice) for rule in rules)
    return next(((reason, advice) for reason, advice in found if reason), None)


def refuse_recomputed(context: ChangeContext, step: Step) -> None:
    """Refuse a swap whose copying computed again what the table's rows had; raises FatalError."""
    facts = Facts(context, step)
    if step.source is not None and not facts.unread and facts.state.rows:
        reason = predicates.reason_stored_rows_differ(facts.state, utc=facts.utc)
        if reason:
            raise not_replicated(reason, step.statement, _OF_COPIES)


def refuse_difference(context: ChangeContext, step: Step, difference: str) -> None:
    """Refuse to let a table be that its shadow was created with another definition than."""
    if difference and not context.target.accepts_of(SHADOW_DEFINITION, step):
        reason = f"an online schema change ends, and its shadow was made otherwise: {difference}"
        raise not_replicated(reason, step.statement, _OF_DIFFERENCE)


def refuse_actions(context: ChangeContext, step: Step, actions: Sequence[str]) -> None:
    """Refuse actions of foreign keys that a table gets from its shadow; see `_why_not_acted`."""
    if reason := _why_not_acted(context, step, actions):
        raise not_replicated(reason, step.statement, _OF_ACTIONS)


def _why_children_stay(facts: Facts) -> str:
    """Why a table cannot be renamed before it is dropped: foreign keys would go with it."""
    found = referring_tables(facts.target, facts.step.tables[0]) if facts.step.renames_away else ()
    if not found:
        return ""
    return (
        f"foreign keys of {', '.join(found)} refer to the table, and would refer to none any more"
    )


def _why_other_table_was_read(facts: Facts) -> str:
    """Why rows may have been read from another table than that which is renamed, or ""."""
    source, step = facts.context.target.source, facts.step
    if source is None or step.source is not None or not step.reread:
        return ""
    with closing(connect(source)) as connection:
        again = next((name for name in step.reread if kind_of(connection, name)), None)
    return f"the source has another table {'.'.join(again)} by now" if again else ""


def _why_other_columns_were_read(facts: Facts) -> str:
    """Why rows may have been read by names that mean something else by now, or ""."""
    source, step = facts.context.target.source, facts.step
    before = read_table(facts.target, *step.tables[0]) if source and step.reread else None
    if source is None or before is None or facts.ddl is None:
        return ""
    with closing(connect(source)) as connection:
        now = read_table(connection, *step.reread[0])
    return predicates.reason_reads_differ(facts.ddl, before, now)


def _why_actions_differ(facts: Facts) -> str:
    if facts.step.creation is not None or facts.ddl is None:
        return ""  # see `refuse_actions`
    parents = [(n.schema, n.table) for n in facts.ddl.names if n.role is Role.REFERENCED]
    alike = bool(facts.session.mariadb) and is_mariadb(facts.target)
    why_not = "" if alike or not _is_by_column(facts.ddl) else _BY_COLUMN
    return _why_not_acted(facts.context, facts.step, facts.effects.actions, parents, why_not)


def _is_by_column(ddl: TableDdl) -> bool:
    """Whether a foreign key is a part of a column's definition."""
    words = [token.word for token in ddl.tokens]
    return words.count("REFERENCES") > words.count("FOREIGN")


def _why_not_acted(
    context: ChangeContext,
    step: Step,
    actions: Sequence[str],
    parents: Sequence[Name] = (),
    why_not: str = "",
) -> str:
    """Why rows that foreign keys change by themselves are not in the stream, nor changed here.

    What can be told of their tables is reported; of their columns, when they are there, see
    `setl.systems.mysql.acting_keys`.

    Args:
        context: the change.
        step: makes them.
        actions: what they do by themselves.
        parents: the tables that they refer to, at the target, as far as they are known.
        why_not: why setl cannot carry them out, if that is known already.
    """
    target = context.target
    if not actions or not step.source or accepts_actions(target.accept, ".".join(step.source)):
        return ""
    why_not = why_not or why_not_carried_out(context, (step.tables[0], *parents))
    reason = _why_not_logged(context, ", ".join(actions)) if why_not else ""
    if reason and target.related is not None:
        return f"{reason}, and setl cannot carry it out ({why_not})"
    return reason


def why_not_carried_out(context: ChangeContext, tables: Sequence[Name]) -> str:
    """Why setl cannot carry out what foreign keys between tables do, "" if it can."""
    target = context.target
    if target.related is None or target.source is None:
        return "the source cannot be asked"
    found = map(target.related.of_target, tables)
    return next((f"{table.name}: {table.why_not}" for table in found if table.why_not), "")


def _why_not_logged(context: ChangeContext, actions: str) -> str:
    logged, source = False, context.target.source
    if source is not None:
        with Server.opened(source) as server:
            logged = logs_actions(server)
    if not logged:
        return f"rows that a foreign key changes by {actions} are not in the source's binlog"
    if not source_had(context, "foreign keys", "logged"):
        return (
            f"rows that a foreign key changes by {actions} are in the source's binlog now;"
            f" {_STARTED_SINCE}, and they need not have been before"
        )
    return ""


def _why_zone_differs(facts: Facts) -> str:
    if not is_system_zone(facts.session):
        return ""
    there, source = None, facts.context.target.source
    if source is not None:
        with closing(connect(source)) as connection:
            there = system_zone(connection)
    here = system_zone(facts.target)
    what = "it depends on the time zone of the source's machine"
    if there != here or there is None:
        zone = "not known" if there is None else there[0]
        return f"{what}, which is {zone}; the target's is {here[0]}"
    if not source_had(facts.context, "zone", there[0]):
        return f"{what}, which is {there[0]} now; {_STARTED_SINCE}, and it may have had another"
    return ""


def _why_partitions_differ(facts: Facts) -> str:
    source, step = facts.context.target.source, facts.step
    if facts.ddl is None or step.source is None:
        return ""
    return reason_partitions_differ(source, facts.target, facts.ddl, (step.source, step.tables[0]))


def _why_families_differ(facts: Facts) -> str:
    if not facts.foreign:
        return ""
    effects, types = facts.effects, facts.state.types
    computed = predicates.reason_families_differ(effects, types)
    return computed or predicates.reason_families_convert(effects, facts.session, types)


def _why_defaults_differ(facts: Facts) -> str:
    """Why columns that a statement does not name may get defaults of their own.

    A comment before the same ALTER changes whether they do (10.11.19).
    """
    session = facts.session
    if not session.mariadb or session.explicit_timestamps is not False:
        return ""
    return _BARE.format(", ".join(bare)) if (bare := facts.state.bare) else ""


def _why_computed_again(facts: Facts) -> str:
    """Why STORED columns may get other values, where one family copies rows and the other not.

    The source's table is asked where it can be, since such a column may be a plain one here.
    """
    if not facts.foreign:
        return ""
    state, source, name = facts.state, facts.context.target.source, facts.step.source
    if source is not None and name is not None:
        with closing(connect(source)) as connection:
            state = state_of(connection, name)
    by_zone, by_settings = predicates.stored_by_session(state)
    if not (by_zone or by_settings):
        return ""
    found = ", ".join(dict.fromkeys([*by_zone, *by_settings]))
    return (
        f"it may compute {found} again for existing rows, in its own session, and MariaDB and MySQL"
        " need not do so for the same statements"
    )


def _why_copies_differ(facts: Facts) -> str:
    if not facts.step.copied or facts.unread:
        return ""
    types = facts.state.definitions
    return predicates.reason_copies_differ(facts.effects, facts.session, types, utc=facts.utc)


def _why_not_reversible(facts: Facts) -> str:
    if not facts.context.target.marked_drops:
        return ""
    return predicates.why_not_reversible(facts.effects, facts.session)


def _why_backslash_changes(facts: Facts) -> str:
    mariadb = is_mariadb(facts.target)
    return reason_backslash_changes(facts.step.statement, facts.session, mariadb=mariadb)


def _why_texts_differ(facts: Facts) -> str:
    reason = reason_charsets_differ(facts.step.statement, facts.session)
    return "" if reason and default_collations(facts.target, facts.session) else reason


# A table of the target under other names.
OF_NAMES: Final[tuple[Rule, ...]] = (
    Rule("a table that is renamed before it is dropped", _why_children_stay),
    Rule("a renamed table whose rows are read again", _why_other_table_was_read, _OF_READS),
)
# Any statement about a mapped table, whatever rows it has.
OF_STATEMENTS: Final[tuple[Rule, ...]] = (
    Rule("bytes that are no text", lambda f: _UNREADABLE if f.unreadable else ""),
    Rule("a backslash in sjis", _why_backslash_changes, _OF_LITERALS),
    Rule("DISCARD, IMPORT", lambda f: _ROWS_OF_FILES if f.effects.files else "", _OF_FILES),
    Rule("failed", lambda f: _FAILED.format(e) if (e := f.session.error) else "", _OF_FAILED),
    Rule("ambiguous text", lambda f: predicates.why_unclear(f.effects, f.session)),
    Rule("CASCADE, SET NULL", _why_actions_differ, _OF_ACTIONS),
    Rule("the time zone SYSTEM", _why_zone_differs),
    Rule("EXCHANGE, CONVERT of partitions", _why_partitions_differ, _OF_MOVES),
)
OF_ALTER: Final[tuple[Rule, ...]] = (
    Rule("columns by other names", _why_other_columns_were_read, _OF_READS),
    Rule("defaults of TIMESTAMP columns", _why_defaults_differ, _OF_BARE),
    Rule("unknown clauses", lambda f: predicates.why_unknown(f.ddl), _OF_UNKNOWN),
)
# An ALTER TABLE of a table with rows. All else gives values that are in the statement, or none.
OF_ROWS: Final[tuple[Rule, ...]] = (
    Rule("IGNORE", lambda f: _LOST if f.effects.loses else "", _OF_LOSSES),
    Rule("NOW()", lambda f: _OF_OTHERS if f.effects.clock and f.step.gathered else ""),
    Rule("other functions", lambda f: _UNSURE.format(n) if (n := f.unsure) else ""),
    Rule("the session", lambda f: predicates.why_session_unknown(f.effects, f.session, f.state)),
    Rule("expressions and conversions of the other family", _why_families_differ, _OF_FAMILIES),
    Rule("STORED columns of the other family", _why_computed_again),
    Rule("values of rows in flight", _why_not_reversible, _OF_BOTH_WAYS),
    Rule("copied rows", _why_copies_differ, _OF_COPIES),
    Rule("AUTO_INCREMENT", lambda f: _NUMBERED if f.numbers else ""),
)
OF_TEXTS: Final[tuple[Rule, ...]] = (
    Rule("NCHAR, NATIONAL, UNICODE", _why_texts_differ, _OF_CHARSETS),
)
