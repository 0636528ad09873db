"""Finds which constraints a table loses, gets or keeps when a shadow replaces it.

The target has no shadow: its table stays, and is altered as the shadow was. But the shadow was not
created with the constraints of the table:

- ``CREATE TABLE … LIKE`` copies no foreign keys. MySQL's also names all CHECKs again, in order, as
  ``<table>_chk_<n>`` (prepare_check_constraints_for_create_like_table in sql/sql_table.cc).
- pt-online-schema-change creates the shadow with other names of constraints, since MySQL has each
  name only once in a schema.

Where a name was made of the table's name, such as ``_t_new_ibfk_1``, servers rename the constraint
with the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from setl.codec.sql.created_table import Definition, definitions_of, foreign_key_of
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Role, TableDdl
from setl.systems.mysql.ddl.plan import Name
from setl.systems.mysql.identifiers import qualified, quote

FOREIGN_KEY: Final = "FOREIGN KEY"
CHECK: Final = "CHECK"
_MADE: Final = re.compile(r"_(?:ibfk|chk)_\d+")


class Constraint(NamedTuple):
    """A foreign key or a CHECK that has a name of its own.

    Attributes:
        kind: `FOREIGN_KEY` or `CHECK`.
        name: its name.
        text: what stands behind the name in a definition; the same for the same constraint.
        columns: the first part of the text of a foreign key, with the child's columns.
    """

    kind: str
    name: str
    text: str
    columns: str = ""


def constraints_of(created: str, table: Name) -> list[Constraint]:
    """The constraints in a text of SHOW CREATE TABLE of a table, in order."""
    found: list[Constraint] = []
    for definition in definitions_of(created):
        words = [token.word for token in definition.tokens[:3]]
        if definition.is_foreign_key:
            found.append(_foreign_key(definition, lambda name: (name[0] or table[0], name[1])))
        elif words[0] == "CONSTRAINT" and words[2:] == [CHECK]:
            text = definition.text[definition.tokens[2].start - definition.start :]
            found.append(Constraint(CHECK, name_of(definition.tokens[1]), text))
    return found


def created_keys(
    ddl: TableDdl, parent_of: Callable[[Name], Name | None]
) -> list[Constraint] | None:
    """The foreign keys that a CREATE TABLE with a list of columns makes, in order.

    Args:
        ddl: the statement.
        parent_of: gives what a table is at the target that a foreign key refers to; None for
            nothing. Its schema is "" where none is written.

    Returns:
        None if the text does not tell all their names. The text of one that refers to nothing at
        the target is "".
    """
    found: list[Constraint] = []
    numbered = 0
    for definition in filter(lambda each: each.is_foreign_key, definitions_of(ddl.text)):
        named = definition
        if definition.tokens[0].word != "CONSTRAINT":
            numbered += 1
            name = quote(f"{ddl.subjects[0].table}_ibfk_{numbered}")
            (named,) = definitions_of(f"(CONSTRAINT {name} {definition.text})")
        if named.tokens[4].word != "(":
            return None  # the name of an index, after which servers name the constraint or not
        found.append(_foreign_key(named, parent_of))
    # There are others: CONSTRAINT FOREIGN KEY (…), and REFERENCES in the definition of a column.
    total = len(found) == sum(name.role is Role.REFERENCED for name in ddl.names)
    return found if total else None


def _foreign_key(definition: Definition, parent_of: Callable[[Name], Name | None]) -> Constraint:
    key = foreign_key_of(definition)
    assert key is not None, "has a name"
    parent = parent_of((key.schema, key.parent))
    words = [token.word for token in definition.tokens]
    actions = words[len(words) - words[::-1].index(")") :]
    columns, of_parent = (", ".join(map(quote, each)) for each in (key.columns, key.parent_columns))
    begin = f"FOREIGN KEY ({columns})"
    text = parent and f"{begin} REFERENCES {qualified(*parent)} ({of_parent})"
    return Constraint(FOREIGN_KEY, key.name, " ".join((text, *actions)) if text else "", begin)


def made_like(present: Iterable[Constraint], table: str, *, numbers: bool) -> list[Constraint]:
    """The constraints that a shadow has after CREATE TABLE … LIKE, as they are called at the end.

    Args:
        present: of the table, in order.
        table: its name.
        numbers: whether the server names CHECKs again.
    """
    checks = [each for each in present if each.kind == CHECK]
    if not numbers:
        return checks
    return [each._replace(name=f"{table}_chk_{n}") for n, each in enumerate(checks, 1)]


def renamed_with(constraint: Constraint, old: str, new: str) -> Constraint:
    """A constraint as it is called after a RENAME of its table."""
    made = constraint.name[len(old) :] if constraint.name.startswith(old) else ""
    return constraint._replace(name=new + made) if _MADE.fullmatch(made) else constraint


def retained_keys(created: str, ddl: TableDdl, changed: Iterable[Constraint]) -> Iterator[str]:
    """Clauses that keep the keys which a CREATE TABLE names, and a table has, under foreign keys.

    A server that has made a key for a foreign key drops it when there is another one. A RENAME,
    also to the name that it has, makes it a key of somebody's own.

    Args:
        created: the table's text of SHOW CREATE TABLE.
        ddl: the CREATE TABLE.
        changed: what the table loses and gets.
    """
    columns = {f"({each.columns.partition(' (')[2]}" for each in changed if each.columns}
    named = {name for name, _ in _keys(ddl.text)}
    for name, listed in _keys(created):
        if name in named and listed in columns:
            yield f"RENAME INDEX {quote(name)} TO {quote(name)}"


def _keys(created: str) -> Iterator[tuple[str, str]]:
    """Names of keys that are not unique, and their columns as they are written, in parentheses."""
    for definition in definitions_of(created):
        if definition.tokens[0].word in ("KEY", "INDEX") and len(definition.tokens) > 1:
            end = definition.tokens[1].end - definition.start
            yield (
                name_of(definition.tokens[1]),
                definition.text[end:].strip().replace("`,`", "`, `"),
            )


def changes(present: Sequence[Constraint], wanted: Sequence[Constraint]) -> Iterator[str]:
    """The clauses of the ALTER TABLE that gives a table other constraints; none if it has these."""
    for each in present:
        if each not in wanted:
            what = FOREIGN_KEY if each.kind == FOREIGN_KEY else "CONSTRAINT"
            yield f"DROP {what} {quote(each.name)}"
    for each in wanted:
        if each not in present:
            yield f"ADD CONSTRAINT {quote(each.name)} {each.text}"
