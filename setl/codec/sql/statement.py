"""Recognises the kind of a SQL statement in the stream.

Not a parser: a binlog holds statements that a server accepted, so it is enough to recognise
transaction control, statements that change rows, the tables that DDL names, and what is harmless.
Whatever is none of these is not guessed at (`StatementKind.UNKNOWN`). Statements:
https://dev.mysql.com/doc/refman/9.7/en/sql-statements.html and
https://mariadb.com/kb/en/sql-statements/.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from setl.codec.sql.names import behind_condition, name_of, read_name
from setl.codec.sql.objects import ACCOUNTS, BESIDE, SCHEMAS, TABLES, is_server_wide, object_of
from setl.codec.sql.table_ddl import (
    Role,
    TableDdl,
    behind_settings,
    parse_table_ddl,
    read_table_ddl,
)
from setl.codec.sql.tokens import Quoting, Token, tokenize, tokens_of
from setl.model.entry import Entry
from setl.model.session import StatementSession


class StatementKind(Enum):
    """What a statement does to the stream."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO_SAVEPOINT = "rollback to savepoint"
    SAVEPOINT = "savepoint"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    # INSERT, UPDATE, a function that writes, temporary tables: statement-based replication
    ROWS = "rows"
    DDL = "ddl"  # changes tables or what belongs to them
    HARMLESS = "harmless"  # accounts, maintenance: no rows and no columns change
    UNKNOWN = "unknown"  # may do anything


class Statement(NamedTuple):
    """A statement's kind and, for DDL, the tables it names.

    Attributes:
        kind: see `StatementKind`.
        tables: (schema, table) of each table that it creates, changes, renames (both names),
            drops, or moves rows from or to; the table is "" where a whole schema is meant. Empty
            for other objects. All that may be a name, where the names of tables are not found.
        name: of a savepoint, else "".
    """

    kind: StatementKind
    tables: tuple[tuple[str, str], ...] = ()
    name: str = ""


# The sets below hold the first words of all statements that a binlog of either server can have.
_ROWS: Final = frozenset({
    "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "DO", "VALUES",
    "TABLE", "(", "EXECUTE", "HANDLER", "EXPLAIN", "DESCRIBE", "DESC", "BINLOG",
})  # fmt: skip
_HARMLESS: Final = frozenset({
    "GRANT", "REVOKE", "FLUSH", "RESET", "INSTALL", "UNINSTALL", "CACHE", "PURGE", "RELEASE",
})  # fmt: skip
_MAINTENANCE: Final = frozenset({"ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM"})
_OF_MAINTENANCE: Final = frozenset({"TABLE", "TABLES", "VIEW", "NO_WRITE_TO_BINLOG", "LOCAL"})
_OF_SET: Final = frozenset({"PASSWORD", "ROLE", "DEFAULT", "RESOURCE"})
_OF_END: Final = frozenset({"WORK", "AND", "NO", "CHAIN", "RELEASE"})
_ENDS: Final[dict[str, StatementKind]] = {
    "BEGIN": StatementKind.BEGIN,
    "COMMIT": StatementKind.COMMIT,
    "ROLLBACK": StatementKind.ROLLBACK,
}
_XA: Final[dict[str, StatementKind]] = {
    "START": StatementKind.XA_START,
    "BEGIN": StatementKind.XA_START,
    "END": StatementKind.XA_END,
    "COMMIT": StatementKind.XA_COMMIT,
    "ROLLBACK": StatementKind.XA_ROLLBACK,
}
_DDL_VERBS: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"})
_DATABASE_OPTIONS: Final = frozenset({
    "", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT", "UPGRADE",
})  # fmt: skip
_FRONT: Final = 8  # tokens that say what a statement is, but for DDL


def quoting_of(session: StatementSession) -> Quoting:
    """How the text of a session's statement is to be read."""
    return Quoting(
        session.has_mode("ANSI_QUOTES"),
        session.has_mode("NO_BACKSLASH_ESCAPES"),
        session.mariadb is False,
    )


def parse_statement(
    text: str,
    default_schema: str,
    quoting: Quoting = Quoting(),  # noqa: B008 - a value
) -> Statement:
    """Tell what a statement is.

    Args:
        text: one statement, as it was logged.
        default_schema: schema of names without one.
        quoting: how its session quotes.
    """
    # A statement may have megabytes of values, and is known long before them.
    front = list(islice(tokens_of(text, quoting), _FRONT))
    verb = front[0].word if front else ""
    if verb in _DDL_VERBS:
        return _ddl(text, tokenize(text, quoting), default_schema)
    if verb == "SET":
        tokens = tokenize(text, quoting)
        first = behind_settings(tokens)
        if 0 < first < len(tokens):
            return parse_statement(text[tokens[first].start :], default_schema, quoting)
    return _short(front)


def table_ddl(text: str, session: StatementSession) -> TableDdl | None:
    """A statement about tables as its session understood it, None if it is about something else.

    Each stage that a schema change passes asks for it, so the last ones are remembered.
    """
    return _parsed(text, session.schema, quoting_of(session))


_parsed = lru_cache(maxsize=16)(parse_table_ddl)


def table_ddl_of(entry: Entry) -> TableDdl | None:
    """The `table_ddl` of a DDL entry."""
    return table_ddl(entry.statement, entry.session or StatementSession(entry.schema))


def tables_of(entry: Entry) -> tuple[tuple[str, str], ...]:
    """The `Statement.tables` of a DDL entry."""
    quoting = quoting_of(entry.session) if entry.session else Quoting()
    return parse_statement(entry.statement, entry.default_schema, quoting).tables


def tables_without_schema(entry: Entry) -> tuple[str, ...]:
    """The tables of a DDL entry of which neither it nor the stream tells the schema.

    A foreign key's other table is not among them: it is in the schema of the table itself.
    """
    ddl = None if entry.default_schema else table_ddl_of(entry)
    names = () if ddl is None else ddl.names
    return tuple([n.table for n in names if not n.schema and n.role is not Role.REFERENCED])


def schema_beside(entry: Entry) -> str | None:
    """The schema of what DDL is about that names no table: a view, a procedure, a database.

    Returns:
        None if it belongs to no schema.
    """
    quoting = quoting_of(entry.session) if entry.session else Quoting()
    tokens = tokenize(entry.statement, quoting)
    if not tokens or is_server_wide(tokens):
        return None
    tables = tables_of(entry)
    if tables:
        return tables[0][0]
    named = read_name(tokens, behind_condition(tokens, object_of(tokens) + 1))
    return (named[0].schema if named else "") or entry.default_schema


def may_be_temporary(text: str, quoting: Quoting) -> bool:
    """Whether DDL that used a temporary table may be about one, and does not say so.

    Servers write DROP again, with TEMPORARY where it is meant, and CREATE says it itself.
    """
    verb, second = (*(t.word for t in islice(tokens_of(text, quoting), 2)), "", "")[:2]
    index = second in ("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
    return verb not in ("CREATE", "DROP") or index


def _short(front: list[Token]) -> Statement:
    """What is not DDL, by its first tokens."""
    words = [token.word for token in front]
    verb, second = (*words, "", "")[:2]
    if verb in _ENDS or verb == "SAVEPOINT":
        return _control(front, words)
    kind = StatementKind.UNKNOWN
    if not front or verb in _HARMLESS:
        kind = StatementKind.HARMLESS
    elif verb == "START" and second == "TRANSACTION":
        kind = StatementKind.BEGIN
    elif verb == "XA":
        kind = _XA.get(second, StatementKind.UNKNOWN)
    elif verb == "SET":
        kind = StatementKind.HARMLESS if second in _OF_SET else StatementKind.UNKNOWN
    elif verb in _MAINTENANCE:
        # MariaDB's ANALYZE runs what it explains: ANALYZE INSERT INTO …
        harmless = second in _OF_MAINTENANCE
        kind = StatementKind.HARMLESS if harmless else StatementKind.ROWS
    elif verb in _ROWS:
        kind = StatementKind.ROWS
    return Statement(kind)


def _control(front: list[Token], words: list[str]) -> Statement:
    """BEGIN, COMMIT, ROLLBACK, and what is about savepoints."""
    if words[0] == "SAVEPOINT":
        return Statement(StatementKind.SAVEPOINT, name=_folded(name_of(front[-1])))
    if words[0] == "ROLLBACK" and "TO" in words[1:3]:
        return Statement(StatementKind.ROLLBACK_TO_SAVEPOINT, name=_folded(name_of(front[-1])))
    # MariaDB has BEGIN NOT ATOMIC …, which is something else.
    known = set(words[1:]) <= _OF_END
    return Statement(_ENDS[words[0]] if known else StatementKind.UNKNOWN)


def _folded(name: str) -> str:
    """A savepoint's name, without case where that is no matter of collations."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _ddl(text: str, tokens: list[Token], default_schema: str) -> Statement:
    verb = tokens[0].word
    at = object_of(tokens)
    kind = tokens[at].word if at < len(tokens) else ""
    if verb == "TRUNCATE" or kind in TABLES:
        ddl = read_table_ddl(text, tokens, default_schema)
        if ddl is None:
            return Statement(StatementKind.DDL, _possible_names(tokens, default_schema))
        return _of_tables(ddl)
    if kind == "TEMPORARY":
        # One with rows is logged as a statement only, and what its functions write is in it. All
        # tell which tables later statements of their session mean.
        table = at + 1 < len(tokens) and tokens[at + 1].word in TABLES
        return Statement(StatementKind.ROWS if table else StatementKind.HARMLESS)
    if kind in ACCOUNTS:
        return Statement(StatementKind.HARMLESS)
    if kind in SCHEMAS:
        return Statement(StatementKind.DDL, ((_schema(tokens, at + 1, default_schema), ""),))
    return Statement(StatementKind.DDL if kind in BESIDE else StatementKind.UNKNOWN)


def _of_tables(ddl: TableDdl) -> Statement:
    # Where rows are logged as rows, CREATE TABLE … SELECT is logged without its query.
    kind = StatementKind.ROWS if ddl.with_rows else StatementKind.DDL
    return Statement(kind, ddl.tables)


def _possible_names(tokens: list[Token], default: str) -> tuple[tuple[str, str], ...]:
    """Whatever could be the name of a table, as it is written, and as a server may fold it."""
    found: dict[tuple[str, str], None] = {}
    for at in range(len(tokens)):
        named = read_name(tokens, at)
        if named is not None:
            name = named[0].schema or default, named[0].name
            alone = default, name_of(tokens[at])
            found |= dict.fromkeys((name, alone, (name[0].lower(), name[1].lower())))
    return tuple(name for name in found if all(name))


def _schema(tokens: list[Token], at: int, default: str) -> str:
    at = behind_condition(tokens, at)
    # ALTER DATABASE without a name means the default one.
    bare = at >= len(tokens) or tokens[at].word in _DATABASE_OPTIONS
    quoted = at < len(tokens) and not tokens[at].word and name_of(tokens[at])
    return name_of(tokens[at]) if quoted or not bare else default
