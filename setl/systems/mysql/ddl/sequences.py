"""Leaves out of a schema change the defaults that take numbers of a sequence.

Sequences are not carried, and rows come with the numbers that they got. A target that has a
sequence of that name, made by hand for clients of its own, keeps the default.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from setl.codec.sql.sequence_defaults import SequenceDefault, sequence_defaults
from setl.codec.sql.table_ddl import TableDdl
from setl.systems.mysql.ddl.other_objects import kind_of


def without_sequences(target: Connection[Any], ddl: TableDdl, statement: str) -> str:
    """A statement without defaults whose sequences the target lacks.

    Args:
        target: a connection to the target.
        ddl: the statement.
        statement: its text.
    """
    for default in reversed(list(sequence_defaults(ddl.tokens))):
        # Without a schema it would be one of the session's, which has another one at the target.
        if not all(schema and _is_sequence(target, (schema, name)) for schema, name in default[2]):
            statement = _without(ddl, statement, default)
    return statement


def _is_sequence(target: Connection[Any], name: tuple[str, str]) -> bool:
    return kind_of(target, name) == "SEQUENCE"


def _without(ddl: TableDdl, statement: str, default: SequenceDefault) -> str:
    first, last = default.start, default.end - 1
    instead = ""
    if ddl.tokens[first - 1].word == "SET":  # ALTER … ALTER c SET DEFAULT
        first, instead = first - 1, "DROP DEFAULT"
    start, end = ddl.tokens[first].start, ddl.tokens[last].end
    before = statement[:start] if instead else statement[:start].rstrip()
    return f"{before}{instead}{statement[end:]}"
