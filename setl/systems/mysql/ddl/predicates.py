"""Tells whether rows of the target are after a schema change what the source's are.

Each predicate gives the reason why they may differ, "" where they cannot. The table of
`setl.systems.mysql.ddl.equivalence` says what a change has to meet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, TableDdl, column_words
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.model.labels import print_alike
from setl.model.schema import Kind, RowSchema
from setl.model.session import MODES, StatementSession
from setl.systems.mysql.catalog import unescaped
from setl.systems.mysql.column_labels import labels_of
from setl.systems.mysql.ddl.effects import Effects
from setl.systems.mysql.ddl.table_state import TableState
from setl.systems.mysql.session_functions import BY_SETTINGS, BY_TIME_ZONE, OF_DAYS

_TIME_TYPES: Final = frozenset({"timestamp", "datetime", "date", "time"})
_UTC: Final = ("+00:00", "UTC", "Etc/UTC")
# What makes a time of a moment, or a moment of a time.
_OF_MOMENTS: Final = BY_TIME_ZONE | {"TIMESTAMP"}


_ZONE: Final = "the time zone of the session that did is not in the stream"
_LABELS: Final = "servers copy them by their labels, of which two are alike"
_SETTINGS: Final = "settings of the session that did, such as lc_time_names, are not in the stream"
_UNKNOWN_SESSION: Final = "the session that ran it is not in the stream, and decides"
# What clauses of ALTER TABLE begin with, but for options of a table.
_CLAUSES: Final = frozenset({
    "ADD", "ALGORITHM", "ALTER", "ANALYZE", "CHANGE", "CHECK", "COALESCE", "CONVERT", "DISABLE",
    "DISCARD", "DROP", "ENABLE", "EXCHANGE", "FORCE", "IMPORT", "LOCK", "MODIFY", "OPTIMIZE",
    "ORDER", "PARTITION", "REBUILD", "REMOVE", "RENAME", "REORGANIZE", "REPAIR", "SECONDARY_LOAD",
    "SECONDARY_UNLOAD", "TRUNCATE", "UPGRADE", "WITH", "WITHOUT",
})  # fmt: skip
# Options may stand without an equals sign. They say how rows are stored, but what CHARACTER SET and
# COLLATE say, which stands in the statement.
_OPTIONS: Final = frozenset({
    "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHARACTER", "CHARSET", "CHECKSUM",
    "COLLATE", "COMMENT", "COMPRESSION", "CONNECTION", "DATA", "DEFAULT", "DELAY_KEY_WRITE",
    "ENCRYPTION", "ENGINE", "ENGINE_ATTRIBUTE", "INDEX", "INSERT_METHOD", "KEY_BLOCK_SIZE",
    "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PASSWORD", "ROW_FORMAT",
    "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "SEQUENCE", "STATS_AUTO_RECALC",
    "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "TABLE_CHECKSUM",
    "TRANSACTIONAL", "TYPE", "UNION",
})  # fmt: skip
_GROUPS: Final = {
    "integer": "tinyint smallint mediumint int bigint bool boolean int1 int2 int3 int4 int8 integer"
    " middleint year",
    "decimal": "decimal dec numeric fixed number",
    "float": "float double real float4 float8",
    "text": "char varchar tinytext text mediumtext longtext character varcharacter nchar nvarchar"
    " national varchar2 long",
    "bytes": "binary varbinary tinyblob blob mediumblob longblob raw",
}
_GROUP_OF: Final = {word: group for group, words in _GROUPS.items() for word in words.split()}
_TYPES_ALIKE: Final = frozenset({
    ("integer", "decimal"), ("integer", "text"), ("decimal", "text"), ("enum", "text"),
    ("set", "text"), ("text", "bytes"), ("bytes", "text"), ("datetime", "date"),
    ("date", "datetime"), ("datetime", "text"), ("date", "text"), ("time", "text"),
    ("text", "enum"), ("text", "set"), ("enum", "set"), ("integer", "float"), ("decimal", "float"),
    ("decimal", "integer"), ("text", "integer"), ("text", "decimal"), ("text", "date"),
    ("text", "datetime"), ("text", "json"), ("json", "text"), ("enum", "integer"),
    ("bit", "integer"),
})  # fmt: skip
_NUMBERS: Final = frozenset({"integer", "decimal", "float", "bit"})
_FROM_NUMBERS: Final = frozenset({"date", "datetime", "timestamp", "time", "year", "enum", "set"})
"""What the families do not make alike of numbers that are none of its values, nor of fractions."""
# Values whose every conversion is exact, so that it does not matter what a session lets pass.
_EXACT: Final = frozenset({
    ("integer", "decimal"), ("integer", "float"), ("integer", "text"), ("decimal", "text"),
    ("enum", "text"), ("set", "text"), ("text", "bytes"), ("date", "datetime"), ("date", "text"),
    ("datetime", "text"), ("timestamp", "text"), ("time", "text"), ("enum", "integer"),
    ("bit", "integer"),
})  # fmt: skip
_STRICT: Final = ("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES")
_CONVERTING: Final = frozenset({"MODIFY", "CHANGE", "CONVERT"})
_DIGITS: Final = re.compile(r"(?:datetime|timestamp|time)\((\d)\)")
# A quotient has other digits in MariaDB than in MySQL, and functions of JSON, of text in a
# collation, of numbers as text and many others have differed. Of these nobody knows a difference.
_FUNCTIONS_ALIKE: Final = frozenset({
    # what values are made of
    "abs", "and", "between", "case", "ceil", "ceiling", "char_length", "character_length",
    "coalesce", "concat", "day", "dayofmonth", "div", "else", "end", "false", "floor", "hour", "if",
    "ifnull", "in", "is", "left", "length", "minute", "mod", "month", "not", "null", "nullif",
    "octet_length", "or", "quarter", "right", "second", "sign", "then", "to_days", "true", "when",
    "xor", "year",
    # types, and what else a definition has
    "after", "always", "as", "bigint", "binary", "bit", "bool", "boolean", "by", "char",
    "character", "column", "comment", "date", "datetime", "dec", "decimal", "default", "first",
    "generated", "int", "integer", "invisible", "key", "mediumint", "numeric", "persistent",
    "smallint", "stored", "text", "time", "tinyint", "unique", "unsigned", "using", "varbinary",
    "varchar", "visible", "zerofill",
})  # fmt: skip
# Another length, or other labels, change nothing of a value of these, and another scale is seen.
_AS_THEY_WERE: Final = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.TEXT, Kind.ENUM, Kind.SET})


def why_unclear(effects: Effects, session: StatementSession) -> str:
    """Why the text of a statement may mean something else, or ""."""
    if session.known or not effects.unclear:
        return ""
    return f"{_UNKNOWN_SESSION} {effects.unclear}"


def why_unknown(ddl: TableDdl | None) -> str:
    """Why it is not known what an ALTER TABLE does to rows, or ""."""
    for clause in ddl.clauses() if ddl is not None else ():
        first, second = (*clause.words, "", "")[:2]
        if first not in _CLAUSES and first not in _OPTIONS and second != "=":
            return f"setl does not know what {first or clause.tokens[0].text} does to rows"
        if first == "ORDER" or second == "PARTITION":
            break  # what follows are more columns or partitions
    return ""


def why_session_unknown(effects: Effects, session: StatementSession, state: TableState) -> str:
    """What of the rows only an unknown session decides, "" for nothing."""
    times = effects.times or any(state.types.get(c) in _TIME_TYPES for c in effects.retyped)
    by_itself = effects.stamped and not effects.retyped
    computed = any(_is_by_session(words, state.types) for words in effects.computed.values())
    decides = {
        "which time existing rows get": effects.clock,
        "how the values of a column are computed": computed,
        "whether a TIMESTAMP gets the time by itself": by_itself,
        "how times are converted": bool(effects.retyped) and times,
        "how its counter counts": effects.numbers or bool(effects.numbered),
    }
    found = () if session.known else (what for what, holds in decides.items() if holds)
    return next((f"{_UNKNOWN_SESSION} {what}" for what in found), "")


def why_not_reversible(effects: Effects, session: StatementSession) -> str:
    """Why rows may differ that the target's clients wrote before the statement came there, or "".

    They have come to the source, or are going to, without the column that it has already.
    """
    by_itself = effects.stamped and session.explicit_timestamps is False
    filled = effects.clock or effects.renews or by_itself
    if not (filled or effects.numbers):
        return ""
    what = "the time" if filled else "the number"
    return (
        f"rows that clients of the target wrote since get {what} of the change here, and"
        f" {what} of their arrival at the source"
    )


def reason_copies_differ(
    effects: Effects, session: StatementSession, types: Mapping[str, str], *, utc: bool = False
) -> str:
    """Why rows may differ that were copied into a shadow, after a statement ran on it; or "".

    Servers log the time zone with a statement that used it. The shadow was empty, so that the
    statement did not. The copying did, and rows are logged without the session's settings.

    Args:
        effects: of the statement.
        session: the statement's, which need not be that of the copying.
        types: the types of the target's columns before the statement, by name in lower case.
        utc: whether somebody says that rows are copied under UTC, as the statement runs here if it
            was logged with no time zone.
    """
    utc = utc and session.time_zone in ("", *_UTC)
    by_itself = effects.stamped and not session.explicit_timestamps
    if effects.clock or effects.numbers or effects.numbered or by_itself:
        return "the online schema change filled rows when it copied them, and nothing tells how"
    computed = [c for c, words in effects.computed.items() if _of_session(words, types)]
    if computed and not utc:
        return _copied("computed", computed, _ZONE)
    called = {c: {word.upper() for word in words} for c, words in effects.computed.items()}
    if by_settings := [c for c, words in called.items() if words & BY_SETTINGS]:
        return _copied("computed", by_settings, _SETTINGS)
    retyped = [(c, types[c], new) for c, new in effects.retyped.items() if c in types]
    if converted := [c for c, old, new in retyped if is_moment(old) != is_moment(new)]:
        if not utc:
            return _copied("converted", converted, _ZONE)
        retyped = [(c, _without_zone(old), _without_zone(new)) for c, old, new in retyped]
    if converted := [c for c, old, new in retyped if not converts_alike(old, new)]:
        why = "servers convert otherwise when they alter a table"
        return _copied("converted", converted, why)
    return ""


def reason_stored_rows_differ(state: TableState, *, utc: bool = False) -> str:
    """Why rows that were copied into a shadow may hold other values than before, or "".

    What a STORED generated column computes of a moment, or by a setting, it computes again when a
    row is copied, in that session. The target's rows keep what their own sessions computed. An ENUM
    or SET is copied by its label, so that of several numbers with one label the first is left.
    """
    by_zone, by_settings = stored_by_session(state)
    if by_zone and not utc:
        return _copied("computed", by_zone, _ZONE)
    if by_settings:
        return _copied("computed", by_settings, _SETTINGS)
    if labelled := [c for c, kind in state.definitions.items() if _has_labels_alike(kind)]:
        return _copied("changed", labelled, _LABELS)
    return ""


def stored_by_session(state: TableState) -> tuple[list[str], list[str]]:
    """The STORED columns that depend on a session's time zone, and on its other settings."""
    expressions = {**state.virtual, **state.stored}
    said = {column: tuple(tokenize(unescaped(text))) for column, text in expressions.items()}
    by_zone: set[str] = set()
    by_settings: set[str] = set()
    for _ in said:  # each may be computed of others
        for column, tokens in said.items():
            names = {t.name.lower() for t in tokens if t.kind is TokenKind.NAME}
            if names & by_zone or _of_session(column_words(tokens), state.definitions):
                by_zone.add(column)
            if names & by_settings or any(t.word in BY_SETTINGS for t in tokens):
                by_settings.add(column)
    return [c for c in state.stored if c in by_zone], [c for c in state.stored if c in by_settings]


def _has_labels_alike(definition: str) -> bool:
    """Whether two numbers of an ENUM or SET have labels that a server may take for one."""
    if definition.lower().partition("(")[0] not in ("enum", "set"):
        return False
    return print_alike([label.casefold().rstrip() for label in labels_of(definition)])


def _of_session(words: Collection[str], types: Mapping[str, str]) -> bool:
    """Whether an expression of these names and functions depends on a session's time zone."""
    named = [types[word] for word in words if word in types]
    called = {word.upper() for word in words}
    if not _OF_MOMENTS.isdisjoint(called) or any(map(is_moment, named)):
        return True
    times = any(kind.lower().partition("(")[0] == "time" for kind in named)
    return times and not OF_DAYS.isdisjoint(called)


def _is_by_session(words: Collection[str], types: Mapping[str, str]) -> bool:
    """Whether an expression of these names and functions depends on any setting of a session."""
    called = {word.upper() for word in words}
    # In the character set of the session; digits are the same in all.
    texts = {"CAST", "CONVERT"} & called and {"CHAR", "CHARACTER", "NCHAR"} & called
    named = [_group(types[word]) for word in words if word in types]
    as_text = bool(texts) and not {"integer", "decimal", "float"}.issuperset(named)
    return as_text or bool(called & BY_SETTINGS) or _of_session(words, types)


def _without_zone(kind: str) -> str:
    return kind.lower().replace("timestamp", "datetime")


def _copied(what: str, columns: Sequence[str], why: str) -> str:
    return (
        f"the online schema change {what} {', '.join(columns)} when it copied the rows, and {why}"
    )


def of_copies(ddl: TableDdl, session: StatementSession) -> StatementSession:
    """The session for a statement on a shadow, where it runs on a table that has the rows already.

    One that converts is refused values that do not fit. Else a server would make something of them,
    and another thing than of values that are copied: of NULL the first label of an ENUM, or none.
    """
    converts = any(clause.words[0] in _CONVERTING for clause in ddl.clauses())
    if session.sql_mode is None or ddl.action is not Action.ALTER or not converts:
        return session
    return session._replace(sql_mode=session.sql_mode | MODES["STRICT_ALL_TABLES"])


def is_moment(kind: str) -> bool:
    """Whether values of a type are moments, which are shown in the session's time zone."""
    return _word(kind) == "timestamp"


def converts_alike(old: str, new: str) -> bool:
    """Whether a value becomes the same in ALTER TABLE as when it is copied; see above.

    Args:
        old: a type, with its digits in parentheses.
        new: that which it becomes. Types of the same family convert alike, whatever their length.
    """
    pair = _group(old), _group(new)
    if _digits(old) > _digits(new) and pair[0] == pair[1]:
        return False  # which is cut off or rounded, as the session has it
    return pair[0] == pair[1] or pair in _TYPES_ALIKE


def _group(kind: str) -> str:
    word = _word(kind)
    return _GROUP_OF.get(word, word)


def _word(kind: str) -> str:
    return re.split(r"[\s(]", kind.lower(), maxsplit=1)[0]


def _digits(kind: str) -> int:
    found = _DIGITS.match(kind.lower())
    return int(found[1]) if found else 0


def reason_families_differ(effects: Effects, columns: Collection[str]) -> str:
    """Why rows of a target of the other family may get other values than at the source, or ""."""
    known = _FUNCTIONS_ALIKE.union(columns, effects.computed)
    doubtful = {
        name: doubts
        for name, words in effects.computed.items()
        if (doubts := {word for word in words - known if not word[0].isdigit()})
    }
    doubtful |= {name: {"/"} for name in effects.quotients}
    if not doubtful:
        return ""
    words = sorted({word for doubts in doubtful.values() for word in doubts})
    return (
        f"it computes values of {', '.join(doubtful)} for rows that are there, and MariaDB and"
        f" MySQL need not agree on {', '.join(words)}"
    )


def reason_families_convert(
    effects: Effects, session: StatementSession, types: Mapping[str, str]
) -> str:
    """Why MariaDB and MySQL may convert rows to a column's new type otherwise, or "".

    Found by converting values of each type to each other on 10.11 and 9.7: of BIT(64) a MariaDB
    makes a DOUBLE with a sign, a FLOAT beyond a BIGINT becomes its greatest or its smallest value,
    and of numbers a session that is not strict makes other dates, times and sets.

    Args:
        effects: of the statement.
        session: that ran it.
        types: the types of the target's columns before the statement, by name in lower case.
    """
    strict = any(map(session.has_mode, _STRICT))
    for name, kind in effects.retyped.items():
        old, new = _group(types.get(name, kind)), _group(kind)
        alike = old == new or (old, new) in _EXACT or (strict and not _is_doubtful(old, new))
        if not alike and new != "json":
            return (
                f"it converts {name} from {old} to {new}, and MariaDB and MySQL need not agree on"
                " what becomes of each value"
            )
    return ""


def _is_doubtful(old: str, new: str) -> bool:
    of_number = old in _NUMBERS and new in _FROM_NUMBERS
    return of_number or (old, new) in {("float", "integer"), ("float", "bit"), ("bit", "float")}


def reason_reads_differ(ddl: TableDdl, before: RowSchema, now: RowSchema | None) -> str:
    """Why rows may have been read wrongly before an ALTER TABLE came, or ""."""
    keyed = {before.columns[i].name.lower(): before.columns[i] for i in before.key}
    renamed = dict(_renamed(ddl))
    there = {*renamed.values(), *_named(ddl, "ADD"), *(now.folded if now else ())}
    left = set(renamed) | (_named(ddl, "DROP") & keyed.keys())
    if reused := sorted(left & there):
        return f"{', '.join(reused)} is another column at the source by now"
    for name in _named(ddl, "MODIFY") | _named(ddl, "CHANGE"):
        if name in keyed and keyed[name].kind not in _AS_THEY_WERE:
            return f"values of the key column {name} may be other ones at the source by now"
    return ""


def names_given_again(statements: Iterable[TableDdl]) -> set[str]:
    """Columns whose names are given up by one of some ALTER TABLEs, and given again by it or later.

    In lower case.
    """
    left: set[str] = set()
    again: set[str] = set()
    for ddl in statements:
        renamed = dict(_renamed(ddl))
        left |= given_up(ddl)
        again |= left & {*renamed.values(), *_named(ddl, "ADD")}
    return again


def defined_twice(statements: Iterable[TableDdl]) -> set[str]:
    """Columns that one of some ALTER TABLEs defines, and a later one defines again.

    Rows that are copied after both have what the second one says; rows that are altered by one
    after the other may not. In lower case.
    """
    defined: set[str] = set()
    twice: set[str] = set()
    for ddl in statements:
        redefined = _named(ddl, "MODIFY") | _named(ddl, "CHANGE")
        twice |= defined & (redefined | _named(ddl, "ALTER"))
        defined |= redefined | _named(ddl, "ADD") | set(dict(_renamed(ddl)).values())
    return twice


def given_up(ddl: TableDdl) -> set[str]:
    """Columns that have not got their names any more after an ALTER TABLE, in lower case."""
    return {*dict(_renamed(ddl)), *_named(ddl, "DROP")}


def _renamed(ddl: TableDdl) -> Iterator[tuple[str, str]]:
    """The columns that get another name: the old one, and the new one."""
    for clause in ddl.clauses():
        for tokens in clause.columns:
            words = [token.word for token in tokens]
            at = 1 if clause.words[0] == "CHANGE" else 2
            if clause.words[0] == "CHANGE" or (clause.words[0] == "RENAME" and "TO" in words[1:2]):
                old, new = (name_of(tokens[i]).lower() for i in (0, at))
                if old != new:
                    yield old, new


def _named(ddl: TableDdl, verb: str) -> set[str]:
    """The columns that clauses of a kind are about."""
    return {
        name_of(tokens[0]).lower()
        for clause in ddl.clauses()
        if clause.words[0] == verb
        for tokens in clause.columns
    }
