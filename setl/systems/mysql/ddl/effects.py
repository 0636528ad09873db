"""Finds the effects of a schema change that depend on its rows or its session.

A server fills a column that is added: from the clock, from a counter, from chance. Replication sets
the clock and the counter as they were at the source; so does `setl.systems.mysql.ddl.settings`.
What is left is told here, and refused where there are rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from setl.codec.sql.created_table import actions_among
from setl.codec.sql.names import listed, name_of
from setl.codec.sql.sequence_defaults import sequence_defaults
from setl.codec.sql.table_ddl import Action, TableDdl, column_words
from setl.codec.sql.tokens import Token, TokenKind
from setl.systems.mysql.session_functions import CLOCK

_CLOCK: Final = CLOCK | {"UNIX_TIMESTAMP"}
# Functions, types and operators in front of a parenthesis that give the same anywhere.
_SAME: Final = frozenset({
    "ABS", "ADDDATE", "ADDTIME", "AND", "AS", "ASCII", "BETWEEN", "BIN", "BINARY", "BIN_TO_UUID",
    "CASE", "CAST", "CEIL", "CEILING", "CHAR", "CHAR_LENGTH", "COALESCE", "CONCAT", "CONCAT_WS",
    "CONV", "CONVERT", "CRC32", "DATE", "DATEDIFF", "DATETIME", "DATE_ADD", "DATE_FORMAT",
    "DATE_SUB", "DAY", "DECIMAL", "DIV", "ELSE", "ELT", "EXTRACT", "FIELD", "FLOOR", "FORMAT",
    "FROM_UNIXTIME", "GREATEST", "HEX", "HOUR", "IF", "IFNULL", "IN", "INET6_ATON", "INET_ATON",
    "INTERVAL", "JSON_ARRAY", "JSON_EXTRACT", "JSON_OBJECT", "JSON_QUOTE", "JSON_SET",
    "JSON_UNQUOTE", "LAST_DAY", "LCASE", "LEAST", "LEFT", "LENGTH", "LIKE", "LOWER", "LPAD",
    "LTRIM", "MAKEDATE", "MAKETIME", "MD5", "MID", "MINUTE", "MOD", "MONTH", "NOT", "NULLIF",
    "OCT", "OR", "ORD", "POINT", "POW", "POWER", "REPEAT", "REPLACE", "REVERSE", "RIGHT", "ROUND",
    "RPAD", "RTRIM", "SECOND", "SHA", "SHA1", "SHA2", "SIGN", "SIGNED", "SQRT",
    "STRING_TO_VECTOR", "STR_TO_DATE", "ST_GEOMFROMTEXT", "SUBDATE", "SUBSTR", "SUBSTRING",
    "SUBTIME", "THEN", "TIME", "TIMESTAMP", "TIMESTAMPADD", "TIMESTAMPDIFF", "TIME_FORMAT",
    "TO_VECTOR", "TRIM", "TRUNCATE", "UCASE", "UNHEX", "UNSIGNED", "UPPER", "USING",
    "UUID_TO_BIN", "VEC_FROMTEXT", "WHEN", "XOR", "YEAR",
})  # fmt: skip
# Called without parentheses.
_BARE_CALLS: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE", "NEXT", "PREVIOUS", "@"})
_TIMES: Final = frozenset({"TIMESTAMP", "DATETIME", "DATE", "TIME"})
_TEXTS: Final = frozenset({
    "CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT",
})  # fmt: skip
_BYTES: Final = frozenset({
    "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB",
})  # fmt: skip
_MOMENT: Final = re.compile(r"\d{2}\W\d|\d{6}")
"""In a literal that may be a date with a time, as servers take them."""
_REPLACING: Final = frozenset({"UNIQUE", "PRIMARY", "MODIFY", "CHANGE", "CONVERT"})


@dataclass(frozen=True, slots=True)
class Effects:
    """What is to be known before a statement runs.

    Attributes:
        clock: whether rows are filled from the clock.
        renews: whether a column is added that gets the time whenever its row is changed.
        unsure: functions whose values rows are filled with, and that nothing tells of.
        numbers: whether rows are numbered by a column that is added.
        numbered: an existing column that counts from now on, "" for none.
        loses: whether rows go that have the same key.
        retyped: columns that are defined again, in lower case → their type, with what stands in
            parentheses behind it.
        computed: columns whose values are computed from an expression, in lower case → the names
            and words of its definition, in lower case, with / where it divides.
        quotients: columns that are computed when they are read, by a division, in lower case.
        types: the words of all types of columns that it adds or defines again.
        stamped: whether a TIMESTAMP is added or defined again that servers fill with the time
            where ``explicit_defaults_for_timestamp`` is off.
        files: whether rows come from a file, or are given up to one.
        unclear: what of its text means one thing or another, as the session has it.
        actions: what foreign keys that it makes do by themselves, such as ``ON DELETE CASCADE``.
    """

    clock: bool = False
    renews: bool = False
    unsure: tuple[str, ...] = ()
    numbers: bool = False
    numbered: str = ""
    loses: bool = False
    retyped: Mapping[str, str] = field(default_factory=dict[str, str])
    computed: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    quotients: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    stamped: bool = False
    files: bool = False
    unclear: str = ""
    actions: tuple[str, ...] = ()

    @property
    def times(self) -> bool:
        """Whether it is about columns of dates or times."""
        return bool(self.types & _TIMES)


def effects_of(ddl: TableDdl) -> Effects:
    """What a statement about tables does beside what its text tells."""
    unclear, body = _unclear(ddl), [token.word for token in ddl.tokens[ddl.body :]]
    actions = tuple(dict.fromkeys(actions_among(body)))
    if ddl.action is not Action.ALTER:
        return Effects(unclear=unclear, actions=actions)
    words = set(body)
    added, changed = list(_added(ddl)), list(_changed(ddl))
    calls = [call for column in added for call in _calls(column)]
    calls += ["NEXTVAL" for column in added for _ in sequence_defaults(column)]
    ignores = "IGNORE" in (token.word for token in ddl.tokens[:4])
    return Effects(
        clock=any(call in _CLOCK for call in calls),
        renews=any(map(_renews, added)),
        unsure=tuple(dict.fromkeys(c for c in calls if c not in _CLOCK | _SAME)),
        numbers=any(_counts(column) for column in added),
        numbered=next((name for name, column in changed if _counts(column)), ""),
        loses=ignores and bool(words & _REPLACING),
        retyped={name: _type(c) for name, c in changed},
        computed=dict(_computed([*added, *(column for _, column in changed)])),
        quotients=frozenset(_quotients([*added, *(column for _, column in changed)])),
        types=frozenset(c[1].word for c in (*added, *(c for _, c in changed)) if len(c) > 1),
        stamped=any(map(_is_stamped, [*added, *(column for _, column in changed)])),
        files="TABLESPACE" in words and bool(words & {"IMPORT", "DISCARD"}),
        unclear=unclear,
        actions=actions,
    )


def _added(ddl: TableDdl) -> Iterator[Sequence[Token]]:
    """The columns that are added, each from its name on."""
    return (column for c in ddl.clauses() if c.words[0] == "ADD" for column in c.columns)


def _changed(ddl: TableDdl) -> Iterator[tuple[str, Sequence[Token]]]:
    """The columns that are defined again: the old name, and the definition from its name on."""
    for clause in ddl.clauses():
        if clause.words[0] in ("MODIFY", "CHANGE"):
            for tokens in clause.columns:
                yield name_of(tokens[0]).lower(), tokens[clause.words[0] == "CHANGE" :]


def _type(column: Sequence[Token]) -> str:
    words = [token.text for token in column[1:]]
    return "".join(words[: words.index(")") + 1 if words[1:2] == ["("] else 1])


def _computed(columns: Sequence[Sequence[Token]]) -> Iterator[tuple[str, frozenset[str]]]:
    """Columns with a default or a stored value that is an expression in parentheses."""
    for column in columns:
        words = [token.word for token in column]
        stored = "AS" in words and bool({"STORED", "PERSISTENT"} & set(words))
        if stored or (("DEFAULT", "(") in pairwise(words) and not _is_constant(column, words)):
            division = {"/"} & set(words)
            yield name_of(column[0]).lower(), frozenset(column_words(tuple(column[1:])) | division)


def _quotients(columns: Sequence[Sequence[Token]]) -> Iterator[str]:
    for column in columns:
        words = {token.word for token in column}
        if {"AS", "/"} <= words and not {"STORED", "PERSISTENT", "DEFAULT"} & words:
            yield name_of(column[0]).lower()


def _is_constant(column: Sequence[Token], words: Sequence[str]) -> bool:
    """Whether a default in parentheses is a text in ASCII for text, or bytes for bytes."""
    at = list(pairwise(words)).index(("DEFAULT", "(")) + 2
    inside = column[at : words.index(")", at)] if ")" in words[at:] else ()
    if not inside or inside[-1].kind is not TokenKind.TEXT:
        return False
    text = inside[-1].text
    if len(inside) == 1 and words[1] in _TEXTS:
        return text[0] == "'" and text.isascii() and "\\" not in text
    return len(inside) == 2 and words[1] in _BYTES and inside[0].word == "X"


def _is_stamped(column: Sequence[Token]) -> bool:
    """Whether it is a TIMESTAMP of which nobody said that it takes NULL, or has that as default."""
    words = [token.word for token in column]
    if words[1:2] != ["TIMESTAMP"]:
        return False
    end = words.index("CHECK") if "CHECK" in words else len(words)
    return not any(b == "NULL" and a != "NOT" for a, b in pairwise(words[:end]))


def _renews(column: Sequence[Token]) -> bool:
    return ("ON", "UPDATE") in pairwise(token.word for token in column)


def _counts(column: Sequence[Token]) -> bool:
    words = [token.word for token in column]
    return "AUTO_INCREMENT" in words or words[1:2] == ["SERIAL"] or _ends(words, "SERIAL")


def _ends(words: Sequence[str], word: str) -> bool:
    return words[-3:] == [word, "DEFAULT", "VALUE"]


def _calls(column: Sequence[Token]) -> Iterator[str]:
    """The functions that are called for a column's default."""
    words = [token.word for token in column]
    at = words.index("DEFAULT") + 1 if "DEFAULT" in words else len(words)
    depth = 0
    for here in range(at, len(words)):
        word = words[here]
        called = here + 1 < len(words) and words[here + 1] == "("
        is_word = column[here].kind is TokenKind.WORD
        if word in _CLOCK | _BARE_CALLS or (is_word and called and not word[0].isdigit()):
            yield word
        elif column[here].kind is TokenKind.NAME and called:
            yield column[here].name  # a function of somebody's own
        depth += (word == "(") - (word == ")")
        following = words[here + 1] if here + 1 < len(words) else ""
        if not depth and following != "(":
            return  # one literal, one call, or one expression in parentheses


def _unclear(ddl: TableDdl) -> str:
    """What one session understands otherwise than another; for statements without a session."""
    behind = ddl.tokens[ddl.body :]
    words = [token.word for token in behind]
    for at, token in enumerate(behind):
        before = words[at - 1] if at else ""
        comment = "COMMENT" in (before, *(words[at - 2 : at - 1] if before == "=" else ()))
        if token.kind is TokenKind.TEXT and not comment:
            if token.text[0] == '"':
                return f"whether {token.text[:40]} is a name or a text"
            if "\\" in token.text:
                return f"whether the backslash in {token.text[:40]} stands for itself"
    if "REAL" in words:
        return "whether REAL is a FLOAT"
    if any(_takes_charset(words, at) for at, word in enumerate(words) if word == "CHAR"):
        return "the character set of CAST and CONVERT to CHAR"
    if "UNIX_TIMESTAMP" in words or any(map(_has_moment, _parts(ddl))):
        return "the time zone of its moments"
    return ""


def _takes_charset(words: Sequence[str], at: int) -> bool:
    """Whether CHAR is what CAST or CONVERT makes, in the character set of the session."""
    # A column's type stands behind its name. Of CONVERT(x, CHAR) it stands behind a comma.
    if at == 0 or words[at - 1] not in ("AS", ","):
        return False
    end = at + 1
    if words[end : end + 1] == ["("]:
        end += 3  # the length, and both parentheses
    return words[end : end + 1] == [")"]


def _parts(ddl: TableDdl) -> Iterator[Sequence[Token]]:
    """A statement in parts, of which none is about two columns."""
    if ddl.action is Action.ALTER:
        for clause in ddl.clauses():
            yield from clause.columns or (clause.tokens,)
        return
    behind = ddl.tokens[ddl.body :]
    depth = 0
    for at, token in enumerate(behind):
        depth += (token.word == "(") - (token.word == ")")
        if at and not depth:
            yield from listed(behind[1:at])
            yield behind[at:]
            return
    yield behind


def _has_moment(part: Sequence[Token]) -> bool:
    """Whether the default of a TIMESTAMP column may be a moment that is written out."""
    words = [token.word for token in part]
    if "DEFAULT" not in words:
        return False
    at = words.index("DEFAULT")
    default = part[at + 1 :]
    if words[at - 1] == "SET":  # of a column whose type is not said
        return bool(default) and _MOMENT.search(default[0].text) is not None
    if "TIMESTAMP" not in words[:at]:
        return False
    if default and default[0].word == "(":
        return any(token.kind is TokenKind.TEXT or token.word[:1].isdigit() for token in default)
    return bool(default) and (
        default[0].kind is TokenKind.TEXT
        or default[0].word in _TIMES
        or default[0].word.strip("0.")[:1].isdigit()
    )
