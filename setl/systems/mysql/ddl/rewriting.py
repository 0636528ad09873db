"""Writes a statement as its target takes it: without what that does not have, in its words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.names import name_of
from setl.codec.sql.sequence_defaults import SequenceDefault, sequence_defaults
from setl.codec.sql.table_ddl import Action, Clause, TableDdl
from setl.codec.sql.tokens import Token
from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.ddl.collating import collated, with_default
from setl.systems.mysql.ddl.context import ChangeContext
from setl.systems.mysql.ddl.declared_columns import declared_columns
from setl.systems.mysql.ddl.left_out import without_keys
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.source_settings import DatabaseDefaults
from setl.systems.mysql.ddl.table_state import (
    TargetTable,
    default_collation,
    kind_of,
    target_table,
)
from setl.systems.mysql.ddl.translating import Translation, translated
from setl.systems.mysql.identifiers import quote

_MAY_BE_LACKING: Final = re.compile(
    r"\b(?:COLLATE|CHARSET|CHARACTER\s+SET|ENGINE)\b", re.IGNORECASE
)
_JSON_TEXT: Final = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_AS: Final = frozenset({"GENERATED", "AS"})
_CONSTRAINTS: Final = (
    "SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_COLUMNS: Final = (
    "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
# How servers call a foreign key that its statement gives no name.
_GENERATED: Final = re.compile(r".*_ibfk_\d+", re.DOTALL)
_DROPS: Final = (("DROP", "FOREIGN", "KEY"), ("DROP", "CONSTRAINT"))
_KEYS: Final = (
    "SELECT INDEX_NAME FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    " UNION SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)


def json_as_text(ddl: TableDdl) -> str:
    """A statement of a MariaDB with the text that JSON is there, for a MySQL.

    MySQL's JSON is another type. It sorts keys, drops all but the last of those that are the same,
    and writes numbers again. https://mariadb.com/kb/en/json-data-type/
    """
    statement = ddl.text
    changed = [
        (column[1], _type(column, new=new))
        for column, new in declared_columns(ddl)
        if len(column) > 1 and column[1].word == "JSON"
    ]
    for token, text in reversed(changed):
        statement = f"{statement[: token.start]}{text}{statement[token.end :]}"
    return statement


def _type(column: Sequence[Token], *, new: bool) -> str:
    # One that is defined again keeps its CHECK, and a generated one is always valid.
    if not new or (len(column) > 2 and column[2].word in _AS):
        return _JSON_TEXT
    return f"{_JSON_TEXT} CHECK (json_valid({quote(name_of(column[0]))}))"


def without_sequences(target: Connection[Any], ddl: TableDdl) -> str:
    """A statement without defaults whose sequences the target lacks.

    Sequences are not carried, and rows come with the numbers that they got. A target that has a
    sequence of that name, made by hand for clients of its own, keeps the default.
    """
    statement = ddl.text
    for default in reversed(list(sequence_defaults(ddl.tokens))):
        # Without a schema it would be one of the session's, which has another one at the target.
        if not all(schema and _is_sequence(target, (schema, name)) for schema, name in default[2]):
            statement = _without_default(ddl, statement, default)
    return statement


def _is_sequence(target: Connection[Any], name: tuple[str, str]) -> bool:
    return kind_of(target, name) == "SEQUENCE"


def _without_default(ddl: TableDdl, statement: str, default: SequenceDefault) -> str:
    first, last = default.start, default.end - 1
    instead = ""
    if ddl.tokens[first - 1].word == "SET":  # ALTER … ALTER c SET DEFAULT
        first, instead = first - 1, "DROP DEFAULT"
    start, end = ddl.tokens[first].start, ddl.tokens[last].end
    before = statement[:start] if instead else statement[:start].rstrip()
    return f"{before}{instead}{statement[end:]}"


def without_missing_keys(connection: Connection[Any], step: Step) -> Step:
    """A step without the foreign keys to drop that its table has not; "" if nothing is left.

    Tables that setl makes have none (see `setl.systems.mysql.creation.plan`), nor has a copy by
    LIKE. Where one is missing already, it is as if it had been dropped.
    """
    ddl, table = step.ddl, step.tables[0]
    if ddl is None or step.creation is not None or ddl.action is not Action.ALTER:
        return step
    clauses = list(ddl.clauses())
    if not any(_dropped(clause)[1] for clause in clauses):
        return step
    with connection.cursor() as cursor:
        cursor.execute(_CONSTRAINTS, table)
        held = {str(name).lower(): str(kind) for name, kind in cursor.fetchall()}
        cursor.execute(_COLUMNS, table)
        columns = {str(name).lower() for (name,) in cursor.fetchall()}
    # MariaDB calls the CHECK of a column like the column, which nobody can drop by itself.
    held = {name: kind for name, kind in held.items() if kind != "CHECK" or name not in columns}
    gone = [_is_missing(clause, held) for clause in clauses]
    left = [c for c, away in zip(clauses, gone, strict=True) if not away]
    texts = [ddl.text[c.tokens[0].start : c.tokens[-1].end] for c in left]
    text = ddl.text[: ddl.tokens[ddl.body].start] + ", ".join(texts) if left else ""
    return step._replace(statement=text) if any(gone) else step


def _is_missing(clause: Clause, held: Mapping[str, str]) -> bool:
    """Whether a clause drops what a table has not, and no other name may be meant.

    A table's foreign keys without a name may have other numbers at the target than at the source,
    and its CHECKs other names.
    """
    foreign, name = _dropped(clause)
    if not name or name in held:
        return False
    keys = [other for other, kind in held.items() if kind == "FOREIGN KEY"]
    if _GENERATED.fullmatch(name) and any(map(_GENERATED.fullmatch, keys)):
        return False
    return foreign or "CHECK" not in held.values()


def _dropped(clause: Clause) -> tuple[bool, str]:
    """Whether a clause says FOREIGN KEY, and the name in lower case of what it drops; "" if none.

    One with IF EXISTS needs nobody's help.
    """
    for words in _DROPS:
        if clause.words[: len(words)] == words and len(clause.tokens) == len(words) + 1:
            return words == _DROPS[0], name_of(clause.tokens[-1]).lower()
    return False, ""


def with_existing_keys(connection: Connection[Any], step: Step) -> Step:
    """A step without what it does to keys that its table has not; pymysql's errors pass through."""
    ddl = step.ddl
    if ddl is None:
        return step
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, step.tables[0] * 2)
        keys = frozenset(str(name).lower() for (name,) in cursor.fetchall())
    found = without_keys(ddl, keys)
    text = "" if found.ddl is None else found.ddl.text
    return step._replace(statement=text, notes=(*step.notes, *found.notes))


def for_target(
    context: ChangeContext, step: Step, defaults: DatabaseDefaults | None
) -> Translation:
    """The step's statement with the collations that it leaves to its server written out.

    And with what types and words of the source are at the target, and without sequences that it
    lacks.
    """
    target, session = context.connection, step.session
    step = step._replace(statement=_collated(target, step, defaults))
    ddl, mariadb = step.ddl, is_mariadb(target)
    if step.source is None or ddl is None:
        return Translation(step.statement)
    if session.mariadb or not session.known:
        ddl = _read(step, without_sequences(target, ddl))
    if session.mariadb and not mariadb:
        ddl = _read(step, json_as_text(ddl))
    foreign = session.mariadb is not None and session.mariadb != mariadb
    if not foreign and not _MAY_BE_LACKING.search(ddl.text):
        return Translation(ddl.text)
    table = target_table(target, ddl, step.tables[0]) if foreign else TargetTable()
    return translated(ddl, context.target.dialect(), table, mariadb=session.mariadb)


def _read(step: Step, text: str) -> TableDdl:
    ddl = step._replace(statement=text).ddl
    assert ddl is not None, "it was DDL of tables before something was left out of it"
    return ddl


def _collated(target: Connection[Any], step: Step, defaults: DatabaseDefaults | None) -> str:
    text, session = step.statement, step.session
    if defaults is None or step.source is None:
        return collated(text, session)
    text = collated(defaults.named(text, session, step.source[0]), session)
    ddl = step._replace(statement=text).ddl
    if ddl is None or ddl.action is not Action.CREATE:
        return text
    if with_default(text, session, "binary") == text:
        return text
    wanted = defaults.at_statement(step.source[0])
    if wanted and wanted != default_collation(target, step.tables[0][0]):
        return with_default(text, session, wanted)
    return text
