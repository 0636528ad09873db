"""Tells whether tables of a target look as they did."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.codec.sql.created_table import without_next_number
from setl.errors import ConfigurationError
from setl.systems.mysql.connection import error_number, translate
from setl.systems.mysql.created_text import read_created_text
from setl.systems.mysql.ddl.held_rows import MISSING_TABLE


def looks_of(connection: Connection[Any], tables: Sequence[tuple[str, str]]) -> str:
    """A digest of how tables are made; pymysql's errors pass through."""
    texts = [_look(connection, name) for name in tables]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _look(connection: Connection[Any], name: tuple[str, str]) -> str:
    try:
        return without_next_number(read_created_text(connection, *name))
    except pymysql.MySQLError as error:
        failure = translate(error)
        if error_number(error) in MISSING_TABLE or isinstance(failure, ConfigurationError):
            return f"{'.'.join(name)} is missing"
        raise
