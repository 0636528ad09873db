"""Leaves out of a statement what its target does not have, and gives it text for JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.names import name_of
from setl.codec.sql.sequence_defaults import SequenceDefault, sequence_defaults
from setl.codec.sql.statement import quoting_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl, parse_table_ddl
from setl.codec.sql.tokens import Token
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.declared_columns import declared_columns
from setl.systems.mysql.ddl.left_out import without_keys
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.table_state import Name, kind_of
from setl.systems.mysql.identifiers import quote

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


def json_as_text(ddl: TableDdl, statement: str) -> str:
    """A statement of a MariaDB with the text that JSON is there, for a MySQL.

    MySQL's JSON is another type. It sorts keys, drops all but the last of those that are the same,
    and writes numbers again. https://mariadb.com/kb/en/json-data-type/

    Args:
        ddl: the statement.
        statement: its text.
    """
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


def without_sequences(target: Connection[Any], ddl: TableDdl, statement: str) -> str:
    """A statement without defaults whose sequences the target lacks.

    Sequences are not carried, and rows come with the numbers that they got. A target that has a
    sequence of that name, made by hand for clients of its own, keeps the default.

    Args:
        target: a connection to the target.
        ddl: the statement.
        statement: its text.
    """
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


def drops_foreign_keys(ddl: TableDdl) -> bool:
    """Whether a statement may drop foreign keys by their names."""
    return ddl.action is Action.ALTER and any(_dropped(clause)[1] for clause in ddl.clauses())


def without_missing(connection: Connection[Any], ddl: TableDdl, table: Name) -> str:
    """The statement without the foreign keys that the table has not; "" if nothing is left.

    Tables that setl makes have none (see `setl.systems.mysql.creation.plan`), nor has a copy by
    LIKE. Where one is missing already, it is as if it had been dropped.

    Args:
        connection: to the target; pymysql's errors pass through.
        ddl: an ALTER TABLE.
        table: the target's table.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CONSTRAINTS, table)
        held = {str(name).lower(): str(kind) for name, kind in cursor.fetchall()}
        cursor.execute(_COLUMNS, table)
        columns = {str(name).lower() for (name,) in cursor.fetchall()}
    # MariaDB calls the CHECK of a column like the column, which nobody can drop by itself.
    held = {name: kind for name, kind in held.items() if kind != "CHECK" or name not in columns}
    clauses = list(ddl.clauses())
    remaining = [clause for clause in clauses if not _is_missing(clause, held)]
    if len(remaining) == len(clauses):
        return ddl.text
    texts = [ddl.text[c.tokens[0].start : c.tokens[-1].end] for c in remaining]
    return ddl.text[: ddl.tokens[ddl.body].start] + ", ".join(texts) if remaining else ""


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


def with_existing_keys(connection: Connection[Any], step: Step, session: StatementSession) -> Step:
    """A step without what it does to keys that its table has not; pymysql's errors pass through."""
    ddl = parse_table_ddl(step.statement, "", quoting_of(session))
    if ddl is None:
        return step
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, step.tables[0] * 2)
        keys = frozenset(str(name).lower() for (name,) in cursor.fetchall())
    found = without_keys(ddl, keys)
    text = "" if found.ddl is None else found.ddl.text
    return step._replace(statement=text, notes=(*step.notes, *found.notes))
