"""What a SQL statement in the stream is, told from its first words.

Not a parser: a binlog holds statements that a server accepted, so it is enough to recognise
transaction control, statements that change rows, and the tables that DDL names. Grammar:
https://dev.mysql.com/doc/refman/8.4/en/sql-data-definition-statements.html and, for
MariaDB's ``OR REPLACE``, ``IF EXISTS`` and ``ONLINE``,
https://mariadb.com/kb/en/data-definition/.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple


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
    ROWS = "rows"  # INSERT, UPDATE and the like: statement-based replication
    DDL = "ddl"  # changes tables or what belongs to them
    OTHER = "other"  # accounts, temporary tables, maintenance: no rows and no columns change


class Statement(NamedTuple):
    """A statement's kind and, for DDL, the tables it names.

    Attributes:
        kind: see `StatementKind`.
        tables: (schema, table) of each table that it creates, changes, renames (both names) or
            drops; the table is "" where a whole schema is meant. Empty for other objects.
        name: of a savepoint, else "".
    """

    kind: StatementKind
    tables: tuple[tuple[str, str], ...] = ()
    name: str = ""


_TO_SAVEPOINT: Final = StatementKind.ROLLBACK_TO_SAVEPOINT
_FIXED: Final[dict[str, StatementKind]] = {
    "BEGIN": StatementKind.BEGIN,
    "COMMIT": StatementKind.COMMIT,
    "ROLLBACK": StatementKind.ROLLBACK,
    **dict.fromkeys(
        ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH"), StatementKind.ROWS
    ),
}
_XA: Final[dict[str, StatementKind]] = {
    "START": StatementKind.XA_START,
    "BEGIN": StatementKind.XA_START,
    "END": StatementKind.XA_END,
    "COMMIT": StatementKind.XA_COMMIT,
    "ROLLBACK": StatementKind.XA_ROLLBACK,
}
_DDL_VERBS: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"})
_ACCOUNTS: Final = frozenset({"USER", "ROLE", "SERVER", "RESOURCE"})
# Words between the verb and the kind of object.
_ADJECTIVES: Final = frozenset(
    {"OR", "REPLACE", "ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT", "SPATIAL", "UNDO"}
)

_DATABASE_OPTIONS: Final = frozenset(
    {"", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT", "UPGRADE"}
)

# Quoted text comes first, so that nothing inside it is taken for a comment. Comments that the
# server executes (/*! */) lose only their marks.
_QUOTED: Final = r"`(?:[^`]|``)*` | \"(?:[^\"]|\"\")*\" | '(?:[^'\\]|''|\\.)*'"
_SKIPPED: Final = re.compile(
    rf"(?P<quoted>{_QUOTED}) | /\*(?!M?!).*?\*/ | /\*M?!\d* | \*/"
    r" | --[\s].*?(?:\n|\Z) | \#.*?(?:\n|\Z)",
    re.DOTALL | re.VERBOSE,
)
_TOKEN: Final = re.compile(
    rf"{_QUOTED} | [\w$\u0080-\uffff]+ | \S",
    re.DOTALL | re.VERBOSE,
)
_TEXT_READ: Final = 4096  # characters looked at; names stand at the front


def parse_statement(text: str, default_schema: str) -> Statement:
    """Tell what a statement is.

    Args:
        text: one statement, as it was logged.
        default_schema: schema of names without one.
    """
    words = _tokens(text[:_TEXT_READ])
    if _upper(words[:2]) == ["SET", "STATEMENT"] and "FOR" in _upper(words):
        words = words[_upper(words).index("FOR") + 1 :]  # MariaDB: SET STATEMENT … FOR statement
    verb = words[0].upper() if words else ""
    second = words[1].upper() if len(words) > 1 else ""
    if verb == "SAVEPOINT" or (verb == "ROLLBACK" and second == "TO"):
        kind = StatementKind.SAVEPOINT if verb == "SAVEPOINT" else _TO_SAVEPOINT
        return Statement(kind, name=_unquoted(words[-1]).lower())
    if verb == "START" and second == "TRANSACTION":
        return Statement(StatementKind.BEGIN)
    if verb == "XA":
        return Statement(_XA.get(second, StatementKind.OTHER))
    if verb in _DDL_VERBS:
        return _ddl(verb, words, default_schema)
    return Statement(_FIXED.get(verb, StatementKind.OTHER))


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(_SKIPPED.sub(lambda found: found.group("quoted") or " ", text))


def _upper(words: list[str]) -> list[str]:
    return [word.upper() for word in words]


def _unquoted(word: str) -> str:
    quote = word[0]
    return word[1:-1].replace(quote * 2, quote) if quote in '`"' else word


def _ddl(verb: str, words: list[str], default_schema: str) -> Statement:
    at = 1
    while at < len(words) and words[at].upper() in _ADJECTIVES:
        at += 1
    kind = words[at].upper() if at < len(words) else ""
    if kind == "TEMPORARY" or kind in _ACCOUNTS:
        return Statement(StatementKind.OTHER)
    if verb == "TRUNCATE" and kind != "TABLE":
        at -= 1  # TRUNCATE name
        kind = "TABLE"
    names = _Names(words, at + 1, default_schema)
    if kind in ("TABLE", "TABLES"):
        tables = names.tables(verb)
    elif kind == "INDEX":
        tables = names.after("ON")
    elif kind in ("DATABASE", "SCHEMA"):
        tables = [(names.schema(), "")]
    else:
        tables = []
    return Statement(StatementKind.DDL, tuple(tables))


class _Names:
    """Reads the names in a list of words, from left to right."""

    def __init__(self, words: list[str], at: int, default_schema: str) -> None:
        self._words = words
        self._at = at
        self._default = default_schema

    def tables(self, verb: str) -> list[tuple[str, str]]:
        self.skip_condition()
        found = [self.name()]
        if verb == "ALTER":
            found += self._renamed()
        elif verb in ("DROP", "RENAME"):
            while self._peek() in (",", "TO"):
                self._at += 1
                found.append(self.name())
        return [pair for pair in found if pair[1]]

    def after(self, word: str) -> list[tuple[str, str]]:
        while self._at < len(self._words):
            self._at += 1
            if self._peek(-1) == word:
                return [self.name()]
        return []

    def schema(self) -> str:
        self.skip_condition()
        # ALTER DATABASE without a name means the default one.
        return self._default if self._peek() in _DATABASE_OPTIONS else self._identifier()

    def skip_condition(self) -> None:
        if self._peek() == "IF":
            while self._at < len(self._words) and self._peek() != "EXISTS":
                self._at += 1
            self._at += 1

    def name(self) -> tuple[str, str]:
        first = self._identifier()
        if self._peek() == ".":
            self._at += 1
            return first, self._identifier()
        return self._default, first

    def _renamed(self) -> list[tuple[str, str]]:
        while self._at < len(self._words):
            self._at += 1
            if self._peek(-1) == "RENAME" and self._peek() not in ("COLUMN", "INDEX", "KEY"):
                if self._peek() in ("TO", "AS", "="):
                    self._at += 1
                return [self.name()]
        return []

    def _peek(self, offset: int = 0) -> str:
        at = self._at + offset
        return self._words[at].upper() if at < len(self._words) else ""

    def _identifier(self) -> str:
        if self._at >= len(self._words):
            return ""
        word = self._words[self._at]
        self._at += 1
        return _unquoted(word)
