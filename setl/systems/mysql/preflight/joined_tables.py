"""Checks source tables that share a target table, where their rows could merge.

A stream does not say whether a key that comes from one table is there because of another. So no
load can tell that two rows have become one; what can be found is found here and by `setl verify`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from setl.channel.routes.routing import Route, selected_columns
from setl.errors import SetlError
from setl.systems.finding import Report
from setl.systems.mysql.catalog import folds_names, read_table
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.server import Server
from setl.systems.pipeline_check import SourceTable

_PATIENCE = 5.0
"""Seconds that the server may look for keys that two tables have in common."""
_FIX = (
    "Write each table into one of its own, or see to it that a key is in one of them only;"
    " `setl verify` reports rows that have become one"
)

_Joined = tuple[SourceTable, Route]


def check_joined_tables(
    source: Server | None, target: Server, tables: Sequence[SourceTable], report: Report
) -> None:
    """Report target tables that rows of several source tables come into.

    An error if two of these have a key in common now, or if the target's key has columns by
    which setl does not find rows; else a warning, since there may be such rows tomorrow.

    Args:
        source: the server of the tables; None leaves their rows unseen.
        target: the server that they go to.
        tables: the mapped tables.
        report: where to put it.

    Raises:
        SetlError: the target stopped answering.
    """
    folds = folds_names(target.connection)
    joined: defaultdict[tuple[str, str], list[_Joined]] = defaultdict(list)
    for table in tables:
        for route in table.routes:
            schema, name = route.target
            one = (schema.lower(), name.lower()) if folds else route.target
            joined[one].append((table, route))
    for found in joined.values():
        names = sorted({".".join(route.target) for _, route in found})
        if len(names) > 1:
            report.at(names[0]).error(
                f"{', '.join(names)} are one table at the target, whose names have no case"
                " (lower_case_table_names)",
                "Give each a name of its own with `to`, or leave one out with `except`",
                code="joined-names",
            )
        elif len({table.schema.name for table, _ in found}) > 1:
            _check_joined(source, target, found, report.at(names[0]))


def _check_joined(
    source: Server | None, target: Server, found: Sequence[_Joined], report: Report
) -> None:
    names = ", ".join(sorted({table.schema.name for table, _ in found}))
    keyless = [table.schema.name for table, route in found if not (table.schema.key or route.key)]
    if keyless:
        report.error(
            f"rows of {names} come together, and {', '.join(keyless)} has no key: nobody could tell"
            " whose row a change is about",
            _FIX,
            code="joined-keys",
        )
        return
    there = read_table(target.connection, *found[0][1].target)
    if there is not None:
        own = {there.names[i].lower() for i in there.key}
        more = sorted(own.difference(*(_key(table, route) for table, route in found)))
        if more:
            report.error(
                f"rows of {names} come together and are found by their own keys alone, without"
                f" {', '.join(more)}; a change of one would change those of others",
                _FIX,
                code="joined-keys",
            )
            return
    # What a condition or a processor leaves out cannot be distinguished from here.
    plain = [(t, r) for t, r in found if not (r.where or r.processor)]
    for (one, by), (other, to) in combinations(plain, 2):
        if source is not None and _common_key(source, one, by, other, to):
            report.error(
                f"{one.schema.name} and {other.schema.name} have rows with the same key, which"
                " would become one",
                _FIX,
                code="joined-keys",
            )
            return
    report.warning(
        f"rows of {names} come together; those with the same key would become one unseen",
        _FIX,
        code="joined-keys",
    )


def _key(table: SourceTable, route: Route) -> dict[str, str]:
    """Target column in lower case → source column, of what rows are found by."""
    names = table.schema.names
    key = {name.lower() for name in route.key or (names[index] for index in table.schema.key)}
    return {
        name.lower(): names[index]
        for index, name in selected_columns(route, names)
        if names[index].lower() in key
    }


def _common_key(server: Server, one: SourceTable, by: Route, other: SourceTable, to: Route) -> bool:
    """Whether two tables have a key in common, as far as the server finds out in time."""
    first, second = _key(one, by), _key(other, to)
    if not first or set(first) != set(second):
        return False
    same = " AND ".join(f"a.{quote(first[column])} = b.{quote(second[column])}" for column in first)
    tables = (
        f"{qualified(one.schema.schema, one.schema.table)} AS a"
        f" JOIN {qualified(other.schema.schema, other.schema.table)} AS b ON {same}"
    )
    if server.mariadb:
        question = f"SET STATEMENT max_statement_time = {_PATIENCE} FOR SELECT 1 FROM {tables}"
    else:
        question = f"SELECT /*+ MAX_EXECUTION_TIME({_PATIENCE * 1000:.0f}) */ 1 FROM {tables}"
    try:
        return bool(server.rows(f"{question} LIMIT 1"))
    except SetlError:
        # It took too long, or the columns cannot be compared. The warning stays.
        return False
