"""Takes out of a schema change what is only about columns that do not reach the target.

A key over such a column is left out as a whole, as `create: true` leaves it out. What would need
the column's values at the target stays, and `setl.systems.mysql.ddl.mapping_limits` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from setl.channel.routes.routing import Route
from setl.codec.sql.names import behind_condition, listed, name_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl
from setl.codec.sql.tokens import Token, TokenKind
from setl.systems.mysql.ddl.declared_columns import is_column

Span = tuple[int, int]

_CONSTRAINTS: Final = frozenset({
    "INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "VECTOR", "CHECK", "FOREIGN",
})  # fmt: skip
# A key or a CHECK too many that is left out costs nothing: rows of the source fulfil it anyway.
_OPERATORS: Final = frozenset({
    "AND", "OR", "XOR", "NOT", "IS", "NULL", "IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE", "DIV",
    "MOD", "TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END", "ENFORCED", "BINARY", "COLLATE",
    "INTERVAL", "DAY", "MONTH", "YEAR", "HOUR", "MINUTE", "SECOND", "AS", "SIGNED", "UNSIGNED",
    "CHAR", "DATE", "DATETIME", "TIME", "DECIMAL", "ESCAPE", "CURRENT_TIMESTAMP", "CURRENT_DATE",
})  # fmt: skip
_WAYS: Final = frozenset({"ALGORITHM", "LOCK", "FORCE", "WAIT", "NOWAIT"})
_VERBS: Final = frozenset({"ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME"})


class Narrowed(NamedTuple):
    """What is left of a statement.

    Attributes:
        ddl: without what was taken out; None if nothing is left to do.
        notes: what was taken out, as sentences.
    """

    ddl: TableDdl | None
    notes: tuple[str, ...] = ()


def narrowed(ddl: TableDdl, route: Route) -> Narrowed:
    """A statement without what is only about columns that the route leaves out."""
    if route.include is None and not route.exclude:
        return Narrowed(ddl)
    stays = _stays(route)
    if ddl.action is Action.INDEX:
        left = [c for c in _key_columns(ddl.tokens[ddl.body :]) if not stays(c)]
        return Narrowed(None, (_of_key(ddl.tokens[1:], left[0]),)) if left else Narrowed(ddl)
    return _Narrowing(ddl, stays).run() if ddl.action is Action.ALTER else Narrowed(ddl)


def without_keys(ddl: TableDdl, keys: Collection[str]) -> Narrowed:
    """A statement without what it does to keys and constraints that the target has not got."""
    if ddl.action is Action.INDEX:
        name = name_of(ddl.tokens[behind_condition(ddl.tokens, 2)])
        drops = ddl.tokens[0].word == "DROP" and name and name.lower() not in keys
        return Narrowed(None, (f"the target has no key {name}",)) if drops else Narrowed(ddl)
    if ddl.action is not Action.ALTER:
        return Narrowed(ddl)
    clauses = list(ddl.clauses())
    named = [named_key(clause) for clause in clauses]
    gone = [bool(name) and name.lower() not in keys for name in named]
    notes = [f"the target has no key {n}" for n, away in zip(named, gone, strict=True) if away]
    return _rest(ddl, clauses, gone, [], notes)


class _Narrowing:
    def __init__(self, ddl: TableDdl, stays: Callable[[str], bool]) -> None:
        self._ddl, self._stays = ddl, stays
        self._spans: list[Span] = []
        self._notes: list[str] = []

    def run(self) -> Narrowed:
        clauses = list(self._ddl.clauses())
        gone = [self._goes(clause) for clause in clauses]
        return _rest(self._ddl, clauses, gone, self._spans, self._notes)

    def _goes(self, clause: Clause) -> bool:
        """Whether nothing of a clause is left; takes parts of it out."""
        tokens = clause.tokens
        if clause.words[0] in _VERBS and (items := _items(clause)):
            gone = [self._item_goes(clause.words[0], item) for item in items]
            if not all(gone):
                self._spans += with_commas([(i[0].start, i[-1].end) for i in items], gone)
                for item, away in zip(items, gone, strict=True):
                    if not away and item[-2:][0].word == "AFTER":
                        self._column_position(item)
            return all(gone)
        if clause.words[0] == "ADD":
            return self._key_goes(tokens[1:])
        if clause.words[:2] == ("ORDER", "BY"):
            return any(not self._stays(name_of(p[0])) for p in listed(tokens[2:]))
        return False

    def _item_goes(self, verb: str, item: Sequence[Token]) -> bool:
        return self._column_goes(verb, item) if is_column(item) else self._key_goes(item)

    def _column_position(self, column: Sequence[Token]) -> None:
        """Take out that a column stands behind one which is not there."""
        if not self._stays(name_of(column[-1])):
            self._spans.append((column[-2].start, column[-1].end))

    def _key_goes(self, item: Sequence[Token]) -> bool:
        """Whether a key or constraint is about a column that does not reach the target."""
        words = [token.word for token in item]
        at = 0
        if words[0] == "CONSTRAINT":
            at = 1 if words[1] in _CONSTRAINTS else 2
        kind = words[at] if at < len(words) else ""
        if kind == "CHECK":
            left = [name for name in _operands(item[at + 1 :]) if not self._stays(name)]
        elif kind in _CONSTRAINTS:
            left = [name for name in _key_columns(item) if not self._stays(name)]
        else:
            return False
        if left:
            self._notes.append(_of_key(item, left[0]))
        return bool(left)

    def _column_goes(self, verb: str, column: Sequence[Token]) -> bool:
        names = [name_of(column[0])]
        if verb == "CHANGE" and len(column) > 1:
            names.append(name_of(column[1]))
        elif verb == "RENAME" and len(column) > 2:
            names.append(name_of(column[2]))
        if any(self._stays(name) for name in names):
            return False
        said = " and ".join(dict.fromkeys(names))
        self._notes.append(f"skipped, since {said} does not reach the target")
        return True


def _stays(route: Route) -> Callable[[str], bool]:
    include = None if route.include is None else {c.lower() for c in route.include}
    used = {c.lower() for c in (*route.renames, *route.renames.values(), *route.expressions)}
    exclude = {c.lower() for c in route.exclude}

    def stays(column: str) -> bool:
        """Whether a column reaches the target, or its name means something there."""
        name = column.lower()
        return name in used or (name not in exclude and (include is None or name in include))

    return stays


def _key_columns(tokens: Sequence[Token]) -> Iterator[str]:
    """The columns in the first parentheses; of an expression all that may be one."""
    opens = next((at for at, t in enumerate(tokens) if t.word == "("), len(tokens))
    depth, end = 0, len(tokens)
    for at in range(opens, len(tokens)):
        depth += (tokens[at].word == "(") - (tokens[at].word == ")")
        if not depth:
            end = at
            break
    for part in listed(tokens[opens + 1 : end]):
        if name_of(part[0]):
            yield name_of(part[0])


def _operands(tokens: Sequence[Token]) -> Iterator[str]:
    """What may be a column in an expression, and no word of the language."""
    for at, token in enumerate(tokens):
        called = token.kind is TokenKind.WORD and [t.word for t in tokens[at + 1 : at + 2]] == ["("]
        word = token.word
        if token.name and not called and word not in _OPERATORS and not token.text[0].isdigit():
            yield token.name


def _of_key(tokens: Sequence[Token], column: str) -> str:
    opens = next((at for at, t in enumerate(tokens) if t.word == "("), len(tokens))
    said = " ".join(t.text for t in tokens[:opens])
    return f"left out: {said}, since {column} does not reach the target"


def _items(clause: Clause) -> Sequence[Sequence[Token]]:
    """What a clause does to columns: each column, and in parentheses the keys between them."""
    tokens = clause.tokens
    for first in clause.columns:
        at = next(at for at, token in enumerate(tokens) if token is first[0])
        listing = tokens[at - 1].word == "("
        return tuple(listed(tokens[at:-1])) if listing else clause.columns
    return ()


def named_key(clause: Clause) -> str:
    """The key or constraint that has to be there for a clause; "" for none."""
    words, tokens = clause.words, clause.tokens
    kind = (*words, "", "")[1]
    at = 2 + (kind == "FOREIGN")
    drops = words[0] == "DROP" and kind in ("INDEX", "KEY", "CONSTRAINT", "CHECK", "FOREIGN")
    changes = words[0] in ("RENAME", "ALTER") and kind in ("INDEX", "KEY", "CHECK", "CONSTRAINT")
    at = behind_condition(tokens, at)
    return name_of(tokens[at]) if (drops or changes) and at < len(tokens) else ""


def _rest(
    ddl: TableDdl,
    clauses: Sequence[Clause],
    gone: Sequence[bool],
    spans: Sequence[Span],
    notes: Sequence[str],
) -> Narrowed:
    said = tuple(dict.fromkeys(notes))
    left = [clause for clause, away in zip(clauses, gone, strict=True) if not away]
    if any(gone) and all(clause.words[0] in _WAYS for clause in left):
        return Narrowed(None, said)
    whole = [(c.tokens[0].start, c.tokens[-1].end) for c in clauses]
    cut = [*spans, *with_commas(whole, gone)]
    return Narrowed(_without(ddl, cut), said) if cut else Narrowed(ddl)


def with_commas(spans: Sequence[Span], gone: Sequence[bool]) -> Iterator[Span]:
    """What is to be cut of a list, each with the comma on its one or its other side."""
    for at, (start, end) in enumerate(spans):
        if not gone[at]:
            continue
        if any(not away for away in gone[at + 1 :]):
            yield start, spans[at + 1][0]
        else:
            ends = [e for (_, e), away in zip(spans[:at], gone[:at], strict=True) if not away]
            yield (ends[-1] if ends else start), end


def _without(ddl: TableDdl, spans: Sequence[Span]) -> TableDdl:
    """A statement without parts of its text, all of them behind the name of its table."""
    cut = sorted(spans)

    def shifted(at: int) -> int:
        gone, end = 0, 0
        for start, stop in cut:
            if start < at:
                gone += max(0, min(stop, at) - max(start, end))
                end = max(end, stop)
        return at - gone

    def inside(start: int) -> bool:
        return any(first <= start < stop for first, stop in cut)

    text, end = "", 0
    for start, stop in cut:
        text += ddl.text[end : max(start, end)]
        end = max(end, stop)
    text += ddl.text[end:]
    return replace(
        ddl,
        text=text,
        tokens=tuple(
            t._replace(start=shifted(t.start), end=shifted(t.end))
            for t in ddl.tokens
            if not inside(t.start)
        ),
        names=tuple(
            n._replace(start=shifted(n.start), end=shifted(n.end))
            for n in ddl.names
            if not inside(n.start)
        ),
    )
