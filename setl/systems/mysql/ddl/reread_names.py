"""Tells whether rows were read by names that mean something else since a schema change.

Of a table with `read: source`, rows are read as the source has them when their changes are loaded.
If the pipeline is behind, the table may have been altered by then. Tables, columns and keys are
found by name. Where a name is another one's by then, what was read was another row, or another
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import TableDdl
from setl.model.schema import Kind, RowSchema

# Another length, or other labels, change nothing of a value of these, and another scale is seen.
_AS_THEY_WERE: Final = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.TEXT, Kind.ENUM, Kind.SET})


def reason_reads_differ(ddl: TableDdl, before: RowSchema, now: RowSchema | None) -> str:
    """Why rows may have been read wrongly before an ALTER TABLE came, or "".

    Args:
        ddl: the ALTER TABLE.
        before: the table at the target, where it has not run yet.
        now: the table at the source, None if it has no such table any more.
    """
    keyed = {before.columns[i].name.lower(): before.columns[i] for i in before.key}
    renamed = dict(_renamed(ddl))
    there = {*renamed.values(), *_named(ddl, "ADD"), *(now.folded if now else ())}
    left = set(renamed) | (_named(ddl, "DROP") & keyed.keys())
    if reused := sorted(left & there):
        return f"{', '.join(reused)} is another column at the source by now"
    for name in _named(ddl, "MODIFY") | _named(ddl, "CHANGE"):
        if name in keyed and keyed[name].kind not in _AS_THEY_WERE:
            return f"values of the key column {name} may be other ones at the source by now"
    return ""


def names_given_again(statements: Iterable[TableDdl]) -> set[str]:
    """Columns whose names are given up by one of some ALTER TABLEs, and given again by it or later.

    In lower case.
    """
    left: set[str] = set()
    again: set[str] = set()
    for ddl in statements:
        renamed = dict(_renamed(ddl))
        left |= given_up(ddl)
        again |= left & {*renamed.values(), *_named(ddl, "ADD")}
    return again


def defined_twice(statements: Iterable[TableDdl]) -> set[str]:
    """Columns that one of some ALTER TABLEs defines, and a later one defines again.

    Rows that are copied after both have what the second one says; rows that are altered by one
    after the other may not. In lower case.
    """
    defined: set[str] = set()
    twice: set[str] = set()
    for ddl in statements:
        redefined = _named(ddl, "MODIFY") | _named(ddl, "CHANGE")
        twice |= defined & (redefined | _named(ddl, "ALTER"))
        defined |= redefined | _named(ddl, "ADD") | set(dict(_renamed(ddl)).values())
    return twice


def given_up(ddl: TableDdl) -> set[str]:
    """Columns that have not got their names any more after an ALTER TABLE, in lower case."""
    return {*dict(_renamed(ddl)), *_named(ddl, "DROP")}


def _renamed(ddl: TableDdl) -> Iterator[tuple[str, str]]:
    """The columns that get another name: the old one, and the new one."""
    for clause in ddl.clauses():
        for tokens in clause.columns:
            words = [token.word for token in tokens]
            at = 1 if clause.words[0] == "CHANGE" else 2
            if clause.words[0] == "CHANGE" or (clause.words[0] == "RENAME" and "TO" in words[1:2]):
                old, new = (name_of(tokens[i]).lower() for i in (0, at))
                if old != new:
                    yield old, new


def _named(ddl: TableDdl, verb: str) -> set[str]:
    """The columns that clauses of a kind are about."""
    return {
        name_of(tokens[0]).lower()
        for clause in ddl.clauses()
        if clause.words[0] == verb
        for tokens in clause.columns
    }
