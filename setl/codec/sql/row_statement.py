"""Reads which tables a statement that changes rows may write, which it reads, and what it calls.

Rather too much than too little: where it is not clear which of several tables is written, all of
them count. What is not understood is not guessed at. Grammar: INSERT, REPLACE, UPDATE, DELETE, LOAD
in https://dev.mysql.com/doc/refman/9.7/en/sql-data-manipulation-statements.html and
https://mariadb.com/kb/en/data-manipulation/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from setl.codec.sql.names import behind_condition, listed, name_of, read_name
from setl.codec.sql.native_functions import NATIVE, SPACED
from setl.codec.sql.objects import object_of
from setl.codec.sql.table_ddl import behind_settings, read_table_ddl
from setl.codec.sql.tokens import Quoting, Token, TokenKind, tokenize

Name = tuple[str, str]
"""A schema and a table or function in it, as the statement spells them."""


@dataclass(frozen=True, slots=True)
class RowStatement:
    """What a statement names.

    Attributes:
        written: the tables that it may write; () where it only calls functions, or creates or
            drops a temporary table.
        read: all other tables.
        calls: functions that may be stored ones, so that they may write anything.
        creates: whether it creates what it writes.
        temporary: the temporary tables that it creates or drops.
        drops: whether it drops these.
    """

    written: tuple[Name, ...]
    read: tuple[Name, ...]
    calls: tuple[Name, ...]
    creates: bool = False
    temporary: tuple[Name, ...] = ()
    drops: bool = False


class _Table(NamedTuple):
    """A table in a list of tables.

    Attributes:
        name: schema and table.
        alias: what the statement calls it, the table's name if nothing else.
        qualified: whether it has a schema and no alias.
    """

    name: Name
    alias: str
    qualified: bool


_MODIFIERS: Final = frozenset(
    {"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "CONCURRENT", "QUICK", "IGNORE", "HISTORY"}
)
_VERBS: Final = frozenset(
    {"INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "VALUES", "TABLE", "DO"}
)
_JOINS: Final = frozenset({"JOIN", "STRAIGHT_JOIN"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_HINTS: Final = frozenset({"USE", "FORCE", "IGNORE"})
_BEHIND_TABLES: Final = frozenset({
    "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "MINUS",
    "INTO", "LOCK", "PROCEDURE", "RETURNING", "SET", "OFFSET", "FETCH", "QUALIFY", "ROWS",
})  # fmt: skip
_NO_ALIAS: Final = _BEHIND_TABLES | _JOINS | {
    "ON", "USING", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "FULL", "USE", "IGNORE",
    "FORCE", "FOR", "PARTITION", "AS", "FROM", "TABLESAMPLE",
}  # fmt: skip
_WITH_FROM: Final = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "MID"})
# Words of sequences, which a statement writes by asking for a value, and of periods of time, whose
# FROM is none of tables.
_NOT_READ: Final = frozenset({"NEXTVAL", "SETVAL", "PORTION", "{", "}", ";"})


def parse_row_statement(
    text: str,
    default_schema: str,
    quoting: Quoting = Quoting(),  # noqa: B008 - a value
    *,
    ignores_space: bool = False,
) -> RowStatement | None:
    """Find the tables and functions in a statement that changes rows.

    Args:
        text: one statement, as it was logged.
        default_schema: schema of names without one.
        quoting: of the session that ran it.
        ignores_space: whether that had IGNORE_SPACE.

    Returns:
        None if it is not understood.
    """
    tokens = tokenize(text, quoting)
    tokens = tokens[behind_settings(tokens) :]
    if not tokens or not tokens[-1].closed:
        return None
    reader = _Reader(text, tokens, default_schema, ignores_space=ignores_space)
    if reader.is_of_temporary_tables:
        return RowStatement(
            (), (), (), temporary=reader.temporary(), drops=tokens[0].word == "DROP"
        )
    if any(t.word in _NOT_READ for t in tokens):
        return None
    if any(a.word == "NEXT" and b.word == "VALUE" for a, b in pairwise(tokens)):
        return None
    return reader.read()


def calls_in(query: str, schema: str) -> tuple[Name, ...] | None:
    """Functions in a query that may be stored ones; None if it is not understood.

    Args:
        query: as a server writes the text of a view.
        schema: of names without one.
    """
    tokens = tokenize(query)
    if not tokens or any(t.word in _NOT_READ for t in tokens):
        return None
    return _Reader(query, tokens, schema, ignores_space=True).calls()


class _Reader:
    """Reads one statement's tokens."""

    def __init__(self, text: str, tokens: list[Token], schema: str, *, ignores_space: bool) -> None:
        self._text = text
        self._tokens = tokens
        self._schema = schema
        self._ignores_space = ignores_space
        self._depths = _depths(tokens)
        # Where names of tables end: a list of columns may follow, as if they were called.
        self._ends: set[int] = set()
        self._targets_at = -1  # the FROM of a DELETE that is in front of what is deleted
        self._readers = {
            "INSERT": self._inserted,
            "REPLACE": self._inserted,
            "UPDATE": self._updated,
            "DELETE": self._deleted,
            "LOAD": self._loaded,
        }

    def read(self) -> RowStatement | None:
        """See `parse_row_statement`."""
        if any(depth < 0 for depth in self._depths):
            return None
        verb = self._verb()
        word, first = self._word(verb), 0
        written: tuple[Name, ...] | None
        if word == "CREATE":
            written, first = self._created()
        elif word in ("SELECT", "DO", "VALUES", "TABLE"):
            written = ()
        elif word in self._readers:
            written = self._readers[word](verb + 1)
        else:
            return None
        if written is None:
            return None
        named = {_folded(name) for name in written}
        lists = list(self._lists(first))
        if None in lists:
            return None
        tables = (table for tables in lists for table in tables or ())
        common = self._common()
        read = dict.fromkeys(
            table.name
            for table in tables
            if _folded(table.name) not in named
            and (table.qualified or table.name[1].lower() not in common)
        )
        found = RowStatement(
            tuple(dict.fromkeys(written)),
            tuple(read),
            tuple(dict.fromkeys(self._calls(first))),
            creates=word == "CREATE",
            temporary=self.temporary() if word == "CREATE" else (),
        )
        # Something made the server log it.
        return found if found.written or found.calls or found.creates else None

    @property
    def is_of_temporary_tables(self) -> bool:
        """Whether it creates or drops temporary tables, and does nothing else."""
        words = [token.word for token in self._tokens]
        if words[0] not in ("CREATE", "DROP") or self._word(object_of(self._tokens)) != "TEMPORARY":
            return False
        return words[0] == "DROP" or not {"SELECT", "VALUES"} & set(words)

    def temporary(self) -> tuple[Name, ...]:
        """The temporary tables that it creates or drops, as far as they are understood."""
        at = object_of(self._tokens)
        names: list[Name] = []
        if self._word(at) == "TEMPORARY" and self._word(at + 1) in ("TABLE", "TABLES"):
            at = behind_condition(self._tokens, at + 2)
            while found := self._name(at):
                names.append(found[0])
                if self._word(found[1]) != ",":
                    break
                at = found[1] + 1
        return tuple(names)

    def calls(self) -> tuple[Name, ...] | None:
        """The functions of a query; None if its tables are not understood."""
        if None in self._lists(0):
            return None
        self._common()
        return tuple(dict.fromkeys(self._calls(0)))

    def _verb(self) -> int:
        """Index of the word that says what is done: behind parentheses and WITH."""
        at = 0
        while self._word(at) == "(":
            at += 1
        if self._word(at) != "WITH":
            return at
        depth = self._depths[at]
        return next(
            (
                i
                for i in range(at + 1, len(self._tokens))
                if self._depths[i] == depth and self._word(i) in _VERBS
            ),
            len(self._tokens),
        )

    # ---- what is written

    def _inserted(self, at: int) -> tuple[Name, ...] | None:
        at = self._behind_modifiers(at)
        if self._word(at) == "INTO":
            at += 1
        found = self._name(at)
        return None if found is None else (found[0],)

    def _loaded(self, at: int) -> tuple[Name, ...] | None:
        for i in range(at, len(self._tokens) - 2):
            if self._word(i) == "INTO" and self._word(i + 1) == "TABLE":
                found = self._name(i + 2)
                return None if found is None else (found[0],)
        return None

    def _created(self) -> tuple[tuple[Name, ...] | None, int]:
        """What CREATE TABLE … SELECT fills, and where its query begins."""
        at = object_of(self._tokens)
        temporary = self._word(at) == "TEMPORARY"
        query = (i for i in range(at, len(self._tokens)) if self._word(i) in ("SELECT", "VALUES"))
        first = next(query, 0)
        if not first:
            return None, 0
        # WITH … AS ( stands in front of what was found.
        begins = (i for i in range(at, first) if self._word(i) == "WITH")
        first = next(begins, first)
        if temporary:
            return (), first
        ddl = read_table_ddl(self._text, self._tokens, self._schema)
        return (None if ddl is None else ddl.tables), first

    def _updated(self, at: int) -> tuple[Name, ...] | None:
        at = self._behind_modifiers(at)
        end = self._next(at, ("SET",))
        tables = self._tables(at, end)
        if tables is None or not tables or end >= len(self._tokens):
            return None
        stop = self._next(end, ("WHERE", "ORDER", "LIMIT", "RETURNING"))
        everything = tuple(table.name for table in tables)
        if len(tables) == 1:
            return everything
        written: list[Name] = []
        for assignment in listed(self._tokens[end + 1 : stop]):
            parts = _parts(assignment)
            if parts is None or len(parts) < 2:
                return everything
            meant = self._meant(parts[:-1], tables)
            if not meant:
                return everything
            written += meant
        return tuple(written) or everything

    def _deleted(self, at: int) -> tuple[Name, ...] | None:
        at = self._behind_modifiers(at)
        behind = ("WHERE", "ORDER", "LIMIT", "RETURNING")
        if self._word(at) == "FROM":
            end = self._next(at, behind)
            using = self._next(at, ("USING",))
            if using >= end:
                tables = self._tables(at + 1, end)
                return tuple(table.name for table in tables) if tables else None
            targets, first = self._tokens[at + 1 : using], using + 1
            self._targets_at = at
        else:
            first = self._next(at, ("FROM",)) + 1
            targets = self._tokens[at : first - 1]
            end = self._next(first, behind)
        tables = self._tables(first, end)
        if not tables or first > len(self._tokens):
            return None
        written: list[Name] = []
        for target in listed(targets):
            parts = _parts(target)
            meant = self._meant(parts, tables) if parts else []
            if not meant or parts is None:
                return None
            written += meant
        return tuple(written) or None

    def _meant(self, parts: Sequence[str], tables: Sequence[_Table]) -> list[Name]:
        """The tables of a list that a name may mean."""
        folded = [part.lower() for part in parts]
        if len(folded) > 1:
            return [t.name for t in tables if list(_folded(t.name)) == folded[-2:]]
        return [t.name for t in tables if t.alias.lower() == folded[0]]

    # ---- what is read

    def _lists(self, first: int) -> Iterator[list[_Table] | None]:
        """The lists of tables of all queries in it; None of one that is not understood."""
        around: list[str] = []
        for at, token in enumerate(self._tokens):
            word = token.word
            if word == "(":
                around.append(self._word(at - 1))
            elif word == ")" and around:
                around.pop()
            start = self._list_behind(at, around) if at >= first else 0
            if start:
                yield self._tables(start, self._end_of_tables(start))

    def _list_behind(self, at: int, around: Sequence[str]) -> int:
        """Where the list of tables begins that a word is in front of, 0 if it is in front of none.

        Args:
            at: index of the word.
            around: the words in front of the parentheses that it is in.
        """
        word, before = self._word(at), self._word(at - 1)
        if word == "FROM":
            if at == self._targets_at:
                return 0
            return 0 if around and around[-1] in _WITH_FROM else at + 1
        if word == "TABLE":
            return 0 if before in ("INTO", "CREATE") else at + 1
        if word == "UPDATE":
            return 0 if before in ("KEY", "FOR", "ON") else self._behind_modifiers(at + 1)
        if word == "USING":
            return 0 if around or self._word(at + 1) == "(" else at + 1
        return 0

    def _end_of_tables(self, at: int) -> int:
        depth = self._depths[at] if at < len(self._tokens) else 0
        for i in range(at, len(self._tokens)):
            if self._depths[i] < depth:
                return i
            if self._depths[i] == depth:
                word = self._word(i)
                duplicate = word == "ON" and self._word(i + 1) == "DUPLICATE"
                if word in _BEHIND_TABLES or duplicate:
                    return i
        return len(self._tokens)

    def _common(self) -> frozenset[str]:
        """Names of common table expressions, in lower case: WITH name [(columns)] AS (."""
        if not any(token.word == "WITH" for token in self._tokens):
            return frozenset()
        found: set[str] = set()
        for at in range(len(self._tokens) - 1):
            if self._word(at) == "AS" and self._word(at + 1) == "(":
                name = at - 1
                if self._word(name) == ")":
                    name = self._opening(name) - 1
                before = self._word(name - 1) if name > 0 else ""
                if name >= 0 and before in ("WITH", "RECURSIVE", ","):
                    found.add(name_of(self._tokens[name]).lower())
                    self._ends.add(name)
        return frozenset(found)

    def _opening(self, closing: int) -> int:
        """Index of the parenthesis that one closes."""
        depth = self._depths[closing]
        at = closing - 1
        while at > 0 and not (self._word(at) == "(" and self._depths[at] == depth):
            at -= 1
        return at

    def _tables(self, at: int, end: int) -> list[_Table] | None:
        """The tables of a list, those of queries in it left out; None if it is not understood."""
        found: list[_Table] = []
        depth = self._depths[at] if at < end else 0
        expected = True
        while at < end:
            word = self._word(at)
            if expected:
                if word in ("LATERAL", "ONLY"):
                    at += 1
                    continue
                expected = False
                taken = self._factor(at)
                if taken is None:
                    return None
                at = taken[1]
                found += taken[0]
            elif word == "(":
                at = self._closing(at) + 1
            elif word in _HINTS and self._word(at + 1) in ("INDEX", "KEY"):
                at = self._next(at, ("(",))  # FOR JOIN may stand there
            else:
                expected = self._depths[at] == depth and (word == "," or word in _JOINS)
                at += 1
        return None if expected else found

    def _factor(self, at: int) -> tuple[list[_Table], int] | None:
        """What stands between two joins: the tables in it, and the index behind it."""
        if self._word(at) == "(":
            close = self._closing(at)
            inner = at + 1
            while self._word(inner) == "(":
                inner += 1
            query = self._word(inner) in _QUERIES
            nested = [] if query else self._tables(at + 1, close)
            return None if nested is None else (nested, close + 1)
        if self._word(at) == "JSON_TABLE" and self._word(at + 1) == "(":
            return [], self._closing(at + 1) + 1
        named = self._name(at)
        if named is None:
            return None
        name, behind, qualified = named
        if self._word(at) == "DUAL" and not qualified:
            return [], behind
        alias, behind = self._alias(name[1], behind)
        return [_Table(name, alias, qualified and alias == name[1])], behind

    def _alias(self, name: str, at: int) -> tuple[str, int]:
        if self._word(at) == "PARTITION" and self._word(at + 1) == "(":
            at = self._closing(at + 1) + 1
        explicit = self._word(at) == "AS"
        at += explicit
        if at < len(self._tokens):
            token = self._tokens[at]
            bare = token.kind is TokenKind.WORD and token.word not in _NO_ALIAS
            if name_of(token) and (bare or token.kind is not TokenKind.WORD or explicit):
                return name_of(token), at + 1
        return name, at

    # ---- what is called

    def _calls(self, first: int) -> Iterator[Name]:
        """Functions that are not the server's own, as far as that is known."""
        for at in range(max(first, 1), len(self._tokens)):
            if self._word(at) != "(" or at - 1 in self._ends:
                continue
            token = self._tokens[at - 1]
            before = self._word(at - 2) if at > 1 else ""
            if not token.name or token.word.isdigit():
                continue
            if before == ".":
                yield (self._tokens[at - 3].name if at > 2 else "", token.name)
            elif before != "AS" and (token.kind is TokenKind.NAME or not self._is_native(at - 1)):
                yield self._schema, token.name

    def _is_native(self, at: int) -> bool:
        token = self._tokens[at]
        apart = self._tokens[at + 1].start > token.end
        if apart and token.word in SPACED and not self._ignores_space:
            return False
        return token.word in NATIVE

    # ---- tokens

    def _name(self, at: int) -> tuple[Name, int, bool] | None:
        """A table's name, the index behind it, and whether it has a schema."""
        found = read_name(self._tokens, at)
        if found is None or not found[0].name or self._word(found[1]) == ".":
            return None
        name, behind = found
        first = self._tokens[at]
        # Double quotes are text here, unless they are around names.
        if first.kind is TokenKind.TEXT:
            return None
        self._ends.add(behind - 1)
        return (name.schema or self._schema, name.name), behind, bool(name.schema)

    def _behind_modifiers(self, at: int) -> int:
        while self._word(at) in _MODIFIERS:
            at += 1
        return at

    def _next(self, at: int, words: Sequence[str]) -> int:
        """Index of the first of some words outside of parentheses; behind the end if none."""
        depth = self._depths[at] if at < len(self._tokens) else 0
        return next(
            (
                i
                for i in range(at, len(self._tokens))
                if self._depths[i] == depth and self._word(i) in words
            ),
            len(self._tokens),
        )

    def _closing(self, opening: int) -> int:
        depth = self._depths[opening]
        return next(
            (
                i
                for i in range(opening + 1, len(self._tokens))
                if self._word(i) == ")" and self._depths[i] == depth
            ),
            len(self._tokens),
        )

    def _word(self, at: int) -> str:
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""


def _depths(tokens: Sequence[Token]) -> list[int]:
    """How many parentheses are around each token; one counts as outside of itself."""
    found: list[int] = []
    depth = 0
    for token in tokens:
        depth -= token.word == ")"
        found.append(depth)
        depth += token.word == "("
    return found


def _parts(tokens: Sequence[Token]) -> list[str] | None:
    """The parts of a name at the front: of a column, or of a table that may end in .*."""
    parts: list[str] = []
    for at in range(0, len(tokens), 2):
        token = tokens[at]
        if token.word == "*" and parts:
            break
        if not token.name:
            return None
        parts.append(token.name)
        if at + 1 >= len(tokens) or tokens[at + 1].word != ".":
            break
    return parts or None


def _folded(name: Name) -> Name:
    return name[0].lower(), name[1].lower()
