"""Refuses swaps of online schema changes after which the target would not be as the source.

Rows get into a shadow by copying: a column of the shadow has what the table's column of that name
has. So the shadow's statements give the target's table the same rows only if no name in them is
first given up and then given again. And they tell all that there is to tell only if the shadow was
made like the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from setl.codec.sql.created_table import definitions_of
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import NOT_COLUMNS, Action, Role, TableDdl, parse_table_ddl
from setl.errors import FatalError
from setl.systems.mysql.ddl.advice import LOAD_AFTER, not_replicated
from setl.systems.mysql.ddl.plan import Routing, Swap
from setl.systems.mysql.ddl.predicates import defined_twice, names_given_again
from setl.systems.mysql.ddl.table_state import Name

_ALTERING: Final = frozenset({Action.ALTER, Action.INDEX})


def refuse_unseen(retained: Sequence[TableDdl], swap: Swap, by_hand: str) -> None:
    """Refuse a swap for a shadow of which it is not known how it was made."""
    if not any(ddl.action is Action.CREATE for ddl in retained):
        raise FatalError(
            f"{'.'.join(swap.shadow)} replaces {'.'.join(swap.table)}, and how it was"
            " made was not seen: the online schema change began before `ddl: pass` did",
            hint=f"Make the change on the target{by_hand}, to the table under its own name: if it"
            " was renamed there as at the source, in a statement before, rename it back first",
        )


def refuse_altered(since: Iterable[str], target: Name, swap: Swap) -> None:
    """Refuse a swap for a shadow that was not altered when the table was."""
    for statement in since:
        ddl = parse_table_ddl(statement, "")
        if ddl is not None and ddl.action in _ALTERING and target in ddl.tables:
            raise _refused(
                swap.table, "and the table was altered after its shadow was created", statement
            )


def refuse_other_shadows(
    retained: Sequence[TableDdl], table: Name, columns: Collection[str]
) -> None:
    """Refuse a swap for a shadow whose rows or columns are not what its statements tell.

    Args:
        retained: the statements on the shadow, in order.
        table: the table that it replaces, at the source.
        columns: the columns of the table at the target, in lower case; none if these
            need not be the source's.
    """
    for ddl in retained:
        if ddl.action is not Action.CREATE:
            continue
        like = next(((n.schema, n.table) for n in ddl.names if n.role is Role.LIKE), table)
        more = [c for c in _created(ddl) if c not in columns] if like == table else []
        if columns and (more or like != table):
            what = f"with the columns {', '.join(more)}" if more else f"like {'.'.join(like)}"
            raise _refused(
                table, f"its shadow was made {what}, and not changed after that", ddl.text
            )
    if again := names_given_again(retained):
        raise _refused(
            table,
            f"its shadow has another column {', '.join(sorted(again))} now, and nothing tells which"
            " rows got what the old one had",
            retained[-1].text,
        )
    if twice := defined_twice(retained):
        raise _refused(
            table,
            f"its shadow's column {', '.join(sorted(twice))} was defined twice, and nothing tells"
            " whether rows were copied in between",
            retained[-1].text,
        )


def refuse_drop_before_swap(ddl: TableDdl, shadows: Iterable[Name], routing: Routing) -> None:
    """Refuse to drop a table while an online schema change of it is under way.

    pt-online-schema-change does so with ``--alter-foreign-keys-method=drop_swap``: the shadow takes
    the name later. At the target there is no shadow, so the rows would be lost.
    """
    dropped = {(name.schema, name.table) for name in ddl.subjects}
    for schema, table in shadows:
        shadow = routing.shadow(schema, table)
        if shadow is not None and (schema, shadow.table) in dropped:
            raise not_replicated(
                f"{schema}.{shadow.table} is dropped while an online schema change of it is under"
                f" way, by its shadow {table}, which has no counterpart at the target",
                ddl.text,
                "Where the shadow replaces it next, as with `drop_swap` of"
                " pt-online-schema-change, leave the table at the target as it is: the RENAME that"
                " follows changes it. Else drop it there by hand",
            )


def _created(ddl: TableDdl) -> Iterable[str]:
    if any(name.role is Role.LIKE for name in ddl.names):
        return
    for definition in definitions_of(ddl.text):
        first = definition.tokens[0]
        if first.word not in NOT_COLUMNS:
            yield name_of(first).lower()


def _refused(table: Name, why: str, text: str) -> FatalError:
    why = f"an online schema change of {'.'.join(table)} ends, {why}"
    return not_replicated(why, text, LOAD_AFTER)
