"""Tells which conversions between types come out alike, whether a row is altered or copied.

``ALTER TABLE`` converts from column to column. What copies rows into a shadow converts values, in
a session of its own: a DATETIME(6) becomes a BIGINT by rounding here and by cutting off there, a
FLOAT a VARCHAR with six digits here and with seventeen there. Found by trying all pairs on MySQL
9.7 and MariaDB 10.11. Values that do not fit are another matter: in strict mode an ALTER TABLE
refuses them.
"""

from __future__ import annotations

import re
from typing import Final

from setl.codec.sql.table_ddl import Action, TableDdl
from setl.model.session import MODES, StatementSession

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
_ALIKE: Final = frozenset({
    ("integer", "decimal"), ("integer", "text"), ("decimal", "text"), ("enum", "text"),
    ("set", "text"), ("text", "bytes"), ("bytes", "text"), ("datetime", "date"),
    ("date", "datetime"), ("datetime", "text"), ("date", "text"), ("time", "text"),
    ("text", "enum"), ("text", "set"), ("enum", "set"), ("integer", "float"), ("decimal", "float"),
    ("decimal", "integer"), ("text", "integer"), ("text", "decimal"), ("text", "date"),
    ("text", "datetime"), ("text", "json"), ("json", "text"), ("enum", "integer"),
    ("bit", "integer"),
})  # fmt: skip
_CONVERTING: Final = frozenset({"MODIFY", "CHANGE", "CONVERT"})
_DIGITS: Final = re.compile(r"(?:datetime|timestamp|time)\((\d)\)")


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
    return pair[0] == pair[1] or pair in _ALIKE


def _group(kind: str) -> str:
    word = _word(kind)
    return _GROUP_OF.get(word, word)


def _word(kind: str) -> str:
    return re.split(r"[\s(]", kind.lower(), maxsplit=1)[0]


def _digits(kind: str) -> int:
    found = _DIGITS.match(kind.lower())
    return int(found[1]) if found else 0
