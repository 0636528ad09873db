"""Has a table of the target be as its shadow was created, before it is altered as the shadow was.

The target has no shadow: its table stays, and is altered as the shadow was. But the shadow was not
created with the constraints of the table:

- ``CREATE TABLE … LIKE`` copies no foreign keys. MySQL's also names all CHECKs again, in order, as
  ``<table>_chk_<n>`` (prepare_check_constraints_for_create_like_table in sql/sql_table.cc).
- pt-online-schema-change creates the shadow with other names of constraints, since MySQL has each
  name only once in a schema.

Where a name was made of the table's name, such as ``_t_new_ibfk_1``, servers rename the constraint
with the table. A shadow that was created from a list of columns is created at the target as well,
without rows and for a moment, so that the server says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple
from zlib import crc32

from pymysql.connections import Connection

from setl.channel.names.shadow_tables import DROPPED_PREFIX
from setl.codec.sql.created_table import (
    Definition,
    actions_among,
    definitions_of,
    foreign_key_of,
    without_next_number,
)
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Role, TableDdl
from setl.codec.sql.tokens import tokenize
from setl.errors import FatalError
from setl.model.session import StatementSession
from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.created_text import read_created_text
from setl.systems.mysql.ddl.advice import not_replicated
from setl.systems.mysql.ddl.plan import Routing, Step
from setl.systems.mysql.ddl.table_state import Name
from setl.systems.mysql.identifiers import qualified, quote

FOREIGN_KEY: Final = "FOREIGN KEY"
CHECK: Final = "CHECK"
_MADE: Final = re.compile(r"_(?:ibfk|chk)_\d+")
_KEY_WORDS: Final = ("KEY ", "FULLTEXT KEY ", "SPATIAL KEY ")
"""What begins keys that are not unique, as somebody makes for queries of the target."""
NEUTRAL: Final = StatementSession(sql_mode=0, foreign_keys=False, unique_checks=True)
"""The session of the statement that setl makes. The source has checked the rows."""
Run = Callable[[str, StatementSession], None]
"""Runs a statement at the target as a session of the source would; pymysql's errors pass."""


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
    """The constraints that CREATE TABLE … LIKE gives a shadow, as they are called at the end."""
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


def creations(ddl: TableDdl, table: Name, routing: Routing) -> Iterator[Step]:
    """The steps that do so, one for each target of a table.

    Args:
        ddl: the CREATE TABLE of its shadow. They have its text, until `constraining` says what
            there is to do at the target.
        table: the table, at the source.
        routing: the pipeline's tables.
    """
    for route in routing.route(*table):
        yield Step(ddl.text, (route.target,), source=table, whole=route.plain, creation=ddl)


class Constraining(NamedTuple):
    """What gives a table the constraints its shadow was created with.

    Attributes:
        before: an ALTER TABLE that frees names of foreign keys, "" for none. MySQL gives none away
            in the statement in which it takes it.
        statement: the ALTER TABLE, "" if the table has no others.
        actions: what foreign keys do by themselves that the table did not have.
        difference: what else the shadow and the table differ in, "" for nothing.
        retained: keys that the shadow has not, and the table keeps: no row depends on them.
    """

    before: str = ""
    statement: str = ""
    actions: tuple[str, ...] = ()
    difference: str = ""
    retained: str = ""


def constraining(
    connection: Connection[Any],
    step: Step,
    routing: Routing,
    run: Run,
) -> Constraining:
    """What there is to do for a step of `creations`."""
    ddl, target, session = step.creation, step.tables[0], step.session
    if ddl is None or step.source is None:
        return Constraining()
    created = read_created_text(connection, *target)
    present = constraints_of(created, target)
    mariadb = is_mariadb(connection)
    alike = session.mariadb is mariadb
    like = any(name.role is Role.LIKE for name in ddl.names)
    difference = retained = ""
    if like:
        wanted = made_like(present, target[1], numbers=alike and not mariadb)
    elif not step.whole:
        return Constraining()  # its columns are other ones, and so are its keys and constraints
    else:
        wanted = _foreign_keys(ddl, step, routing, present)
        # Between the families, names and texts of CHECKs differ anyway.
        of_shadow = created
        if alike:
            of_shadow = _created_here(ddl, target, session, connection, run)
            difference, retained = (
                _difference(created, of_shadow),
                _retained(created, of_shadow, ddl),
            )
        checks = [c for c in constraints_of(of_shadow, target) if c.kind == CHECK]
        wanted += [renamed_with(check, ddl.subjects[0].table, target[1]) for check in checks]
    clauses = list(changes(present, wanted))
    if not clauses:
        return Constraining(difference=difference, retained=retained)
    lost, got = ([c for c in a if c not in b] for a, b in ((present, wanted), (wanted, present)))
    if not like:
        clauses += retained_keys(created, ddl, (*lost, *got))
    names = {each.name for each in got if each.kind == FOREIGN_KEY}
    freed = [f"DROP FOREIGN KEY {quote(each.name)}" for each in lost if each.name in names]
    had = {each.text for each in present}
    alter = f"ALTER TABLE {qualified(*target)} "
    return Constraining(
        alter + ", ".join(freed) if freed else "",
        alter + ", ".join(clause for clause in clauses if clause not in freed),
        tuple(a for c in got if c.text not in had for a in actions_among(c.text.split())),
        difference,
        retained,
    )


def _foreign_keys(
    ddl: TableDdl, step: Step, routing: Routing, present: list[Constraint]
) -> list[Constraint]:
    shadow, target = ddl.subjects[0], step.tables[0]

    def parent_of(name: Name) -> Name | None:
        parent = (name[0] or shadow.schema, name[1])
        if parent == (shadow.schema, shadow.table):
            return target
        if parent == step.source:
            raise _refused(ddl, "it refers to the table that it replaces")
        mine = [r.index for r in routing.route(*(step.source or target)) if r.target == target]
        routes = routing.route(*parent)
        same = [r for r in routes if r.index in mine] or routes
        return same[0].target if len(same) == 1 else None

    keys = created_keys(ddl, parent_of)
    if keys is None:
        raise _refused(ddl, "it has foreign keys whose names it does not tell")
    wanted: list[Constraint] = []
    for key in keys:
        if key.text:
            wanted.append(renamed_with(key, shadow.table, target[1]))
        else:  # what this refers to is not mapped, and stays as somebody made it
            wanted += [each for each in present if each.columns == key.columns]
    return wanted


def _created_here(
    ddl: TableDdl,
    target: Name,
    session: StatementSession,
    connection: Connection[Any],
    run: Run,
) -> str:
    """How the target says that the shadow is made, which is created there for a moment."""
    shadow = target[0], f"{DROPPED_PREFIX}{crc32(f'shadow of {target[1]}'.encode()):08x}"
    drop = f"DROP TABLE IF EXISTS {qualified(*shadow)}"
    run(drop, NEUTRAL)
    run(_without_foreign_keys(ddl, shadow), session)
    created = read_created_text(connection, *shadow)
    run(drop, NEUTRAL)
    return created.replace(shadow[1], target[1])


def _difference(created: str, of_shadow: str) -> str:
    """What of two tables differs beside their constraints, as texts of SHOW CREATE TABLE; or ""."""
    mine, its = (list(_parts(text)) for text in (created, of_shadow))
    lacks = ", ".join(part for part in its if part not in mine)
    more = ", ".join(p for p in mine if p not in its and not p.startswith(_KEY_WORDS))
    if not lacks and not more:
        columns = ([part for part in parts if part.startswith("`")] for parts in (mine, its))
        return "" if next(columns) == next(columns) else "its columns are in another order"
    return " and ".join(
        f"{verb} {parts[:200]}" for verb, parts in (("it has", lacks), ("it has no", more)) if parts
    )


def _retained(created: str, of_shadow: str, ddl: TableDdl) -> str:
    """The keys of a table that its shadow has not, but those that a foreign key may bring."""
    its = list(_parts(of_shadow))
    said = [d.text.replace("`", "") for d in definitions_of(ddl.text) if d.is_foreign_key]
    more = [p for p in _parts(created) if p.startswith(_KEY_WORDS) and p not in its]
    columns = [part[part.rfind("(") :].replace("`", "") for part in more]
    return ", ".join(
        part for part, key in zip(more, columns, strict=True) if not any(key in fk for fk in said)
    )[:200]


def _parts(created: str) -> Iterator[str]:
    end = 0
    for definition in definitions_of(created):
        end = definition.end
        if definition.tokens[0].word != "CONSTRAINT":
            yield definition.text
    yield _options(created[end:])


def _options(text: str) -> str:
    """The options of a table, without its engine and its counter, which setl leaves as they are."""
    text = without_next_number(text).strip().removeprefix(")").strip()
    tokens = tokenize(text)
    if [token.word for token in tokens[:2]] == ["ENGINE", "="]:
        text = text[tokens[2].end :].strip()
    return " ".join(text.split())


def _without_foreign_keys(ddl: TableDdl, name: Name) -> str:
    """A CREATE TABLE under another name, without foreign keys."""
    text, end = ddl.text, 0
    retained: list[str] = []
    definitions = list(definitions_of(text))
    for before, definition in pairwise(definitions):
        if definition.is_foreign_key:
            retained.append(text[end : before.end])
            end = definition.end
    subject = ddl.subjects[0]
    whole = "".join((*retained, text[end:]))
    return whole[: subject.start] + qualified(*name) + whole[subject.end :]


def _refused(ddl: TableDdl, why: str) -> FatalError:
    return not_replicated(
        f"an online schema change ends, and of its shadow's constraints not all are known: {why}",
        ddl.text,
        "Make the target's table{by_hand} as the source's, with its foreign keys and CHECKs",
    )
