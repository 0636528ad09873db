"""Reads what a DDL statement does to which tables, and where each name stands in its text.

Not a parser of SQL: statements in a binlog were accepted by a server, so it is enough to know
where names of tables stand. Grammar: ALTER, CREATE, DROP, RENAME, TRUNCATE in
https://dev.mysql.com/doc/refman/8.4/en/sql-data-definition-statements.html and
https://mariadb.com/kb/en/data-definition/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from setl.codec.sql.names import behind_condition, listed, read_name
from setl.codec.sql.objects import object_of
from setl.codec.sql.qualified_columns import without_qualifiers
from setl.codec.sql.tokens import Quoting, Token, TokenKind, literal_text, tokenize


class Action(Enum):
    """What is done to tables."""

    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    RENAME = "rename"
    TRUNCATE = "truncate"
    INDEX = "index"  # CREATE INDEX, DROP INDEX


class Role(Enum):
    """What a name of a table is in a statement."""

    SUBJECT = "subject"  # what is created, altered, dropped, truncated, or renamed
    NEW_NAME = "new name"  # what the subject before it is called from then on
    LIKE = "like"  # what a new table is like
    REFERENCED = "referenced"  # by a foreign key
    OTHER = "other"  # takes part with its rows: EXCHANGE PARTITION, UNION


class TableName(NamedTuple):
    """A table's name in a statement.

    Attributes:
        role: what it is there.
        schema: its schema, the session's where none is written.
        table: its name.
        start: index of the first character of the whole name.
        end: index behind its last one.
    """

    role: Role
    schema: str
    table: str
    start: int
    end: int


class Clause(NamedTuple):
    """One of the things that an ALTER TABLE does.

    Attributes:
        words: its first words in upper case, names left out as "".
        tokens: all its tokens.
    """

    words: tuple[str, ...]
    tokens: tuple[Token, ...]

    @property
    def columns(self) -> tuple[Sequence[Token], ...]:
        """The columns that it adds, changes or drops, each from its name on; () for other things.

        CHANGE names the old column first, and RENAME too.
        """
        if self.words[0] not in _COLUMN_VERBS:
            return ()
        if self.words[1:2] and self.words[1] in NOT_COLUMNS:
            return ()
        first = 2 if self.words[1:2] == ("COLUMN",) else 1
        tokens = self.tokens[behind_condition(self.tokens, first) :]
        if not tokens or tokens[0].word != "(":
            return (tokens,) if tokens else ()
        return tuple(c for c in listed(tokens[1:-1]) if c[0].word not in NOT_COLUMNS)


@dataclass(frozen=True, slots=True)
class TableDdl:
    """A statement that creates, changes or removes tables.

    Attributes:
        action: what it does.
        text: the statement, without what only its server said to itself.
        names: the tables it names, in order.
        tokens: all its tokens.
        body: index of the first token behind the subject, where there is one subject.
        conditional: whether it says IF EXISTS or IF NOT EXISTS of a table.
        with_rows: whether it creates a table with rows (CREATE TABLE … SELECT).
        replaces: whether it drops a table of that name first (MariaDB's OR REPLACE).
        rows_follow: whether rows of a new table follow in the same transaction, as MySQL says.
    """

    action: Action
    text: str
    names: tuple[TableName, ...]
    tokens: tuple[Token, ...]
    body: int = 0
    conditional: bool = False
    with_rows: bool = False
    replaces: bool = False
    rows_follow: bool = False

    @property
    def subjects(self) -> tuple[TableName, ...]:
        """What it creates, alters, drops, truncates or renames."""
        return tuple(name for name in self.names if name.role is Role.SUBJECT)

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """(schema, table) of each table that is not as it was afterwards."""
        return tuple((n.schema, n.table) for n in self.names if n.role in _CHANGED)

    def clauses(self) -> Iterator[Clause]:
        """The clauses of an ALTER TABLE: what stands between commas outside parentheses."""
        for held in listed(self.tokens[self.body :]):
            yield Clause(tuple(t.word for t in held[:_FRONT]), tuple(held))


_CHANGED: Final = frozenset({Role.SUBJECT, Role.NEW_NAME, Role.OTHER})
_FRONT: Final = 6  # words of a clause that say what it does
NOT_COLUMNS: Final = frozenset({
    "INDEX", "KEY", "CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR",
    "CHECK", "PARTITION", "PERIOD", "SYSTEM", "TO", "AS",
})  # fmt: skip
"""Words behind the verb of a clause of ALTER TABLE that is not about a column."""
_COLUMN_VERBS: Final = frozenset({"ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME"})
_ACTIONS: Final = {
    "CREATE": Action.CREATE,
    "ALTER": Action.ALTER,
    "DROP": Action.DROP,
    "RENAME": Action.RENAME,
    "TRUNCATE": Action.TRUNCATE,
}
_NOT_A_TABLE: Final = frozenset({"COLUMN", "INDEX", "KEY"})
_NAMES_ONLY: Final = frozenset({Action.DROP, Action.RENAME, Action.TRUNCATE})
_BEHIND_NAMES: Final = frozenset({"CASCADE", "RESTRICT", "WAIT", "NOWAIT", ";"})


def parse_table_ddl(
    text: str,
    default_schema: str,
    quoting: Quoting = Quoting(),  # noqa: B008 - a value
) -> TableDdl | None:
    """Find the tables in a DDL statement.

    Args:
        text: one statement, as it was logged.
        default_schema: schema of names without one.
        quoting: of the session that ran it.

    Returns:
        None if the statement is not about permanent tables, or their names are not where they are
        looked for. Of that `setl.codec.sql.statement.parse_statement` gives all that may be one.
    """
    text = literal_text(text, quoting)
    tokens = tokenize(text, quoting)
    first = behind_settings(tokens)
    if first:
        text = text[tokens[first].start :] if first < len(tokens) else ""
        tokens = tokenize(text, quoting)
    opening = _opening(tokens)
    if opening:
        text = text[: tokens[opening].start].rstrip() + text[tokens[opening + 1].end :]
        tokens = tokenize(text, quoting)
    ddl = read_table_ddl(text, tokens, default_schema)
    if ddl is not None and ddl.action not in _NAMES_ONLY and "." in text:
        spans = [(name.start, name.end) for name in ddl.names]
        called = {name.table for name in ddl.names if name.role in (Role.SUBJECT, Role.NEW_NAME)}
        plain = without_qualifiers(text, tokens, spans, called)
        if plain != text:
            ddl = read_table_ddl(plain, tokenize(plain, quoting), default_schema)
    return replace(ddl, rows_follow=True) if ddl is not None and opening else ddl


def _opening(tokens: Sequence[Token]) -> int:
    """Index of START TRANSACTION among the options of a new table, 0 if it is not there.

    MySQL says so of CREATE TABLE … SELECT, whose rows follow in the same transaction. It stands
    behind the columns, and in front of all other options.
    """
    depth = 0
    for at in range(len(tokens) - 1) if tokens and tokens[0].word == "CREATE" else ():
        word = tokens[at].word
        depth += (word == "(") - (word == ")")
        if not depth and word == "START" and tokens[at + 1].word == "TRANSACTION":
            return at
    return 0


def read_table_ddl(text: str, tokens: list[Token], default_schema: str) -> TableDdl | None:
    """As `parse_table_ddl`, of a statement that was taken apart already."""
    return _Reader(text, tokens, default_schema).read()


def behind_settings(tokens: list[Token]) -> int:
    """Index of the first token that MariaDB's SET STATEMENT … FOR is about, 0 if it has none.

    What is set shows in the session that the statement is logged with.
    """
    if [t.word for t in tokens[:2]] != ["SET", "STATEMENT"]:
        return 0
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        if token.word == "FOR" and not depth:
            return at + 1
    return len(tokens)


class _Reader:
    """Reads a statement's tokens from left to right."""

    def __init__(self, text: str, tokens: list[Token], default_schema: str) -> None:
        self._text = text
        self._tokens = tokens
        self._default = default_schema
        self._at = 0
        self._names: list[TableName] = []
        self._conditional = False
        self._replaces = False
        self._clear = True  # whether names stood where they were looked for

    def read(self) -> TableDdl | None:
        action = _ACTIONS.get(self._peek())
        if action is None:
            return None
        self._at = object_of(self._tokens)
        self._replaces = "REPLACE" in (token.word for token in self._tokens[: self._at])
        kind = self._peek()
        if kind in ("TABLE", "TABLES"):
            self._at += 1
        elif kind == "INDEX" and action in (Action.CREATE, Action.DROP):
            action = Action.INDEX
            while self._more() and self._next() != "ON":
                pass
        elif action is not Action.TRUNCATE:
            return None
        self._condition()
        body = self._subjects(action)
        with_rows = self._rest(action, body) if self._names else False
        if not self._clear:
            return None
        return TableDdl(
            action,
            self._text,
            tuple(sorted(self._names, key=lambda n: n.start)),
            tuple(self._tokens),
            body,
            self._conditional,
            with_rows,
            self._replaces,
        )

    def _subjects(self, action: Action) -> int:
        """Read the names that come first; returns the index of the token behind them."""
        self._name(Role.SUBJECT)
        self._waits()
        if action is Action.RENAME:
            while self._peek() in ("TO", ","):
                role = Role.NEW_NAME if self._next() == "TO" else Role.SUBJECT
                self._name(role)
                self._waits()
        elif action is Action.DROP:
            while self._peek() == ",":
                self._at += 1
                self._name(Role.SUBJECT)
        if action in _NAMES_ONLY and any(t.word not in _BEHIND_NAMES for t in self._left()):
            self._clear = False  # there may be more names
        return self._at

    def _left(self) -> Iterator[Token]:
        """The tokens that are left, without times to wait."""
        for at in range(self._at, len(self._tokens)):
            if self._tokens[at - 1].word != "WAIT":
                yield self._tokens[at]

    def _rest(self, action: Action, body: int) -> bool:
        """Find the names behind the subject; says whether rows come with a new table."""
        if action not in (Action.CREATE, Action.ALTER):
            return False
        if action is Action.CREATE:
            first = self._peek()
            at = self._at + (first == "(")
            if at < len(self._tokens) and self._tokens[at].word == "LIKE":
                self._at = at + 1
                self._name(Role.LIKE)
                return False
        schema, depth = self._names[0].schema, 0
        with_rows = False
        while self._more():
            before = self._tokens[self._at - 1].text if self._at > body else ","
            word = self._next()
            depth += (word == "(") - (word == ")")
            if word == "REFERENCES":
                # A foreign key means a table of its own schema, not of the session's.
                self._name(Role.REFERENCED, schema)
            elif action is Action.CREATE:
                with_rows = with_rows or self._is_query(word, depth)
                if word == "UNION" and not depth:
                    self._union()
            elif not depth:
                self._clause(word, before)
        return with_rows

    def _is_query(self, word: str, depth: int) -> bool:
        """Whether a query begins in CREATE TABLE; no expression of a definition may hold one."""
        if word == "VALUES":
            return not depth and self._peek() in ("(", "ROW")
        return word == "SELECT" or (word == "TABLE" and not depth)

    def _clause(self, word: str, before: str) -> None:
        if word == "RENAME" and before == "," and self._peek() not in _NOT_A_TABLE:
            if self._peek() in ("TO", "AS", "="):
                self._at += 1
            self._name(Role.NEW_NAME)
        elif word == "TABLE" and before != ",":
            self._name(Role.OTHER)  # EXCHANGE PARTITION p WITH TABLE t, CONVERT … TO TABLE t
        elif word == "UNION":
            self._union()

    def _union(self) -> None:
        if self._peek() == "=":
            self._at += 1
        while self._peek() in ("(", ","):
            self._at += 1
            if self._peek() != ")":
                self._name(Role.OTHER)

    def _condition(self) -> None:
        behind = behind_condition(self._tokens, self._at)
        self._conditional = behind > self._at
        self._at = behind

    def _waits(self) -> None:
        """Skip MariaDB's WAIT n and NOWAIT."""
        if self._peek() == "NOWAIT":
            self._at += 1
        elif self._peek() == "WAIT":
            self._at += 2

    def _name(self, role: Role, default: str | None = None) -> None:
        found = read_name(self._tokens, self._at)
        if found is None:
            self._clear = False
            return
        name, self._at = found
        schema = name.schema or (self._default if default is None else default)
        self._names.append(TableName(role, schema, name.name, name.start, name.end))

    def _more(self) -> bool:
        return self._at < len(self._tokens)

    def _peek(self) -> str:
        return self._tokens[self._at].word if self._more() else ""

    def _next(self) -> str:
        token = self._tokens[self._at] if self._more() else None
        self._at += 1
        return token.word if token else ""


def column_words(tokens: tuple[Token, ...]) -> set[str]:
    """Everything among tokens that could be a column's name, in lower case."""
    return {t.name.lower() for t in tokens if t.kind in (TokenKind.NAME, TokenKind.WORD)}
