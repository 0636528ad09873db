"""A digest of what a step changes at the target, by which it is known to be done."""

from __future__ import annotations

import hashlib
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.codec.sql.created_table import without_next_number
from setl.errors import ConfigurationError
from setl.model.session import StatementSession
from setl.systems.mysql.connection import error_number, translate
from setl.systems.mysql.created_text import read_created_text
from setl.systems.mysql.ddl.moved_rows import rows_of_exchange
from setl.systems.mysql.ddl.plan import Name, Step
from setl.systems.mysql.ddl.row_probe import MISSING_TABLE
from setl.systems.mysql.ddl.statements import parsed


def digest_of(connection: Connection[Any], step: Step, session: StatementSession) -> str:
    """A digest of how a step's tables are made, and of rows where nothing else changes.

    pymysql's errors pass through.
    """
    texts = [_look(connection, name) for name in step.tables]
    ddl = parsed(step.statement, session)
    if ddl is not None:
        texts.append(rows_of_exchange(connection, ddl))
    return hashlib.sha256("\n".join(filter(None, texts)).encode()).hexdigest()


def _look(connection: Connection[Any], name: Name) -> str:
    try:
        return without_next_number(read_created_text(connection, *name))
    except pymysql.MySQLError as error:
        failure = translate(error)
        if error_number(error) in MISSING_TABLE or isinstance(failure, ConfigurationError):
            return f"{'.'.join(name)} is missing"
        raise
