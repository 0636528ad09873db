"""Which kind of object a DDL statement is about: a table, an index, a view, an account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.sql.tokens import Token

TABLES: Final = frozenset({"TABLE", "TABLES", "INDEX"})
SCHEMAS: Final = frozenset({"DATABASE", "SCHEMA"})
ACCOUNTS: Final = frozenset({"USER", "ROLE", "SERVER", "RESOURCE", "INSTANCE", "POLICY"})
BESIDE: Final = frozenset({
    "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "SEQUENCE", "TABLESPACE",
    "LOGFILE", "REFERENCE", "LIBRARY",
})  # fmt: skip
"""Objects without rows, and sequences, whose values come as rows of their own."""
_OBJECTS: Final = TABLES | SCHEMAS | ACCOUNTS | BESIDE | {"TEMPORARY"}
# Words between the verb and the kind of object.
_ADJECTIVES: Final = frozenset({
    "OR", "REPLACE", "ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR",
    "UNDO", "AGGREGATE", "ALGORITHM", "=", "MERGE", "TEMPTABLE", "UNDEFINED", "SQL", "SECURITY",
    "INVOKER", "IF", "NOT", "EXISTS", "JSON", "RELATIONAL", "DUALITY", "MATERIALIZED", "MASKING",
})  # fmt: skip


_SERVER_WIDE: Final = frozenset({"TABLESPACE", "LOGFILE", "REFERENCE"})


def is_server_wide(tokens: Sequence[Token]) -> bool:
    """Whether DDL is about an object that belongs to no schema."""
    at = object_of(tokens)
    return at >= len(tokens) or tokens[at].word in _SERVER_WIDE


def object_of(tokens: Sequence[Token]) -> int:
    """Index of the word that says which kind of object DDL is about; their number if none does.

    TRUNCATE is always about a table, so it is the token behind the verb.
    """
    if tokens[0].word == "TRUNCATE":
        return 1
    at, definer = 1, False
    while at < len(tokens):
        word = tokens[at].word
        definer = definer or word == "DEFINER"
        if word in _OBJECTS and tokens[at - 1].word not in ("=", "@"):
            return at
        if word not in _ADJECTIVES and not definer:
            break
        at += 1
    return len(tokens)
