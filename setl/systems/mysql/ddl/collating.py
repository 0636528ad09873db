"""Has a schema change take the collations that its own server would choose.

``CHARACTER SET utf8mb4`` alone means utf8mb4_0900_ai_ci to MySQL, utf8mb4_general_ci to MariaDB up
to 11.5, and something else to younger ones or where a setting says so. To these the other character
sets of Unicode mean something else, too. Keys compare by it.

A MariaDB that has a setting for it is told by `default_collations`. That also covers NCHAR, which
does not say the name of a character set. Of a statement for another server the text is changed, and
one with NCHAR is refused, see `reason_charsets_differ`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.binlog.tables.collation import charset_of
from setl.codec.sql.names import name_of
from setl.codec.sql.statement import quoting_of
from setl.codec.sql.tokens import Token, text_of, tokenize
from setl.model.session import StatementSession
from setl.systems.mysql.connection import is_mariadb

_CHARSET: Final = "utf8mb4"
_GENERAL: Final = 45
# The compiled default of each other character set that MariaDB takes another collation for.
_OTHERS: Final = {"utf8": 33, "utf8mb3": 33, "ucs2": 35, "utf16": 54, "utf32": 60}
# The default collations that a session can have, by their ids.
_NAMES: Final = {
    _GENERAL: "utf8mb4_general_ci",
    46: "utf8mb4_bin",
    224: "utf8mb4_unicode_ci",
    246: "utf8mb4_unicode_520_ci",
    255: "utf8mb4_0900_ai_ci",
    2048: "utf8mb3_uca1400_ai_ci",
    2304: "utf8mb4_uca1400_ai_ci",
    2560: "ucs2_uca1400_ai_ci",
    2816: "utf16_uca1400_ai_ci",
    3072: "utf32_uca1400_ai_ci",
}
_UNNAMED: Final = frozenset({"NCHAR", "NVARCHAR", "NATIONAL", "UNICODE"})
_OPTIONS: Final = frozenset({"COLLATE", "CHARSET", "CHARACTER", "LIKE"})
_CONVERSIONS: Final = frozenset({"CAST", "CONVERT", "JSON_VALUE"})


def default_collations(target: Connection[Any], session: StatementSession) -> list[str]:
    """What gives a session of a MariaDB the source's collation for each character set.

    Returns:
        Statements; none where the target has no such setting, or the source's is not known.
    """
    if session.mariadb is None or not is_mariadb(target):
        return []
    taken = [collation for _, collation in session.collations]
    with target.cursor() as cursor:
        cursor.execute("SHOW VARIABLES LIKE 'character_set_collations'")
        if cursor.fetchone() is None:
            return []
        named: Sequence[tuple[Any, ...]] = ()
        if taken:
            cursor.execute(
                "SELECT CHARACTER_SET_NAME, FULL_COLLATION_NAME"
                " FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
                f" WHERE ID IN ({', '.join(map(str, taken))})"
            )
            named = cursor.fetchall()
    chosen = ",".join(f"{charset}={collation}" for charset, collation in named)
    # No more than the compiled default. Empty text would be NULL under EMPTY_STRING_IS_NULL.
    chosen = chosen or "utf8mb4=utf8mb4_general_ci"
    return [f"SET SESSION character_set_collations = '{chosen}'"]


def reason_charsets_differ(statement: str, session: StatementSession) -> str:
    """Why a server without `default_collations` may compare otherwise than the source, or ""."""
    if not session.collations:
        return ""
    words = {token.word for token in tokenize(statement, quoting_of(session))}
    found = ", ".join(sorted(words & _UNNAMED))
    return f"{found} has another collation at the target" if found else ""


def reason_backslash_changes(statement: str, session: StatementSession, *, mariadb: bool) -> str:
    """Why a literal may get other bytes when it comes to the target in UTF-8, or "".

    A server that converts a backslash to sjis takes the wide one (815F) of its two encodings. Of
    other sets with two encodings it takes that which their clients send.

    Args:
        statement: a statement.
        session: that ran it, whose character set the target's session gets if both are of one
            family; literals are converted to it.
        mariadb: whether the target is a MariaDB.
    """
    if charset_of(session.collation) != "sjis" or session.mariadb != mariadb:
        return ""
    quoting = quoting_of(session)
    tokens = tokenize(statement, quoting)
    if any("\\" in text_of(token, no_backslash=quoting.no_backslash) for token in tokens):
        return (
            "it has a backslash in a text, and its session's character set, sjis, encodes it twice"
        )
    return ""


def collated(statement: str, session: StatementSession) -> str:
    """A statement with the collation behind each character set of Unicode that has none."""
    names = _defaults_of(session)
    lower = statement.lower()
    if not any(charset in lower for charset in names):
        return statement
    tokens = tokenize(statement, quoting_of(session))
    for at in reversed(range(len(tokens))):
        name = names.get(_charset_at(tokens, at), "")
        if name and not _has_collation(tokens, at):
            end = tokens[at].end
            statement = f"{statement[:end]} COLLATE {name}{statement[end:]}"
    return statement


def with_default(statement: str, session: StatementSession, collation: str) -> str:
    """A CREATE TABLE with the collation that it takes from its schema where it names none."""
    tokens = tokenize(statement, quoting_of(session))
    depth, listed, before = 0, None, ""
    for token in tokens:
        depth += (token.word == "(") - (token.word == ")")
        bracketed, before = token.word == "LIKE" and before == "(", token.word
        if depth and not (bracketed and depth == 1):
            continue
        if token.word in _OPTIONS:
            return statement
        if listed is None and token.word == ")":
            listed = token
        if token.word == "PARTITION":
            break
    if listed is None:
        return statement
    return f"{statement[: listed.end]} COLLATE {collation}{statement[listed.end :]}"


def with_named_default(statement: str, session: StatementSession, collation: str) -> str:
    """A CREATE or ALTER TABLE with the character set in place of CHARACTER SET DEFAULT.

    To MariaDB that is the character set of the table's schema, with the collation that the
    character set has by itself. MySQL has it in CONVERT TO only, and takes collation_database.
    """
    charset = collation.partition("_")[0]
    tokens = tokenize(statement, quoting_of(session))
    for at in reversed(_named_defaults(tokens)):
        first, text = at, charset
        if _before(tokens, at) == "COLLATE":
            first = at - 1 if tokens[at - 1].word == "COLLATE" else at - 2
            text = f"CHARACTER SET {charset}"
        elif session.mariadb is False and not _has_collation(tokens, at):
            text = f"{charset} COLLATE {collation}"
        statement = f"{statement[: tokens[first].start]}{text}{statement[tokens[at].end :]}"
    return statement


def names_default(statement: str, session: StatementSession) -> bool:
    """Whether `with_named_default` changes a statement."""
    if "default" not in statement.lower():
        return False
    return bool(_named_defaults(tokenize(statement, quoting_of(session))))


def _named_defaults(tokens: Sequence[Token]) -> list[int]:
    """Where DEFAULT stands for the character set of a schema, among the options of a table."""
    found: list[int] = []
    depth = 0
    creates = bool(tokens) and tokens[0].word == "CREATE"
    for at, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        if depth or token.word != "DEFAULT":
            continue
        before = _before(tokens, at)
        behind = tokens[at + 1].word if at + 1 < len(tokens) else ""
        charset = before in ("CHARSET", "CHARACTER SET") and behind not in ("CHARACTER", "CHARSET")
        named = any(t.word in ("CHARSET", "CHARACTER") for t in tokens)
        if charset or (before == "COLLATE" and creates and not named):
            found.append(at)
    return found


def _before(tokens: Sequence[Token], at: int) -> str:
    """The option whose value a token is."""
    words = [t.word for t in tokens[max(0, at - 3) : at] if t.word != "="]
    return "CHARACTER SET" if words[-2:] == ["CHARACTER", "SET"] else (words[-1:] or [""])[0]


def _defaults_of(session: StatementSession) -> dict[str, str]:
    """The collation that a character set alone means in a session, of those that are known.

    Of the others than utf8mb4 only those that are not the compiled default, which is the same to
    all servers.
    """
    if session.mariadb is None:
        return {}
    taken = dict(session.collations)
    # MySQL 5.7 has no choice.
    wide = taken.get(_GENERAL, _GENERAL) if session.mariadb else session.utf8mb4 or _GENERAL
    found = {charset: taken[known] for charset, known in _OTHERS.items() if known in taken}
    found[_CHARSET] = wide
    return {charset: _NAMES[number] for charset, number in found.items() if number in _NAMES}


def _charset_at(tokens: Sequence[Token], at: int) -> str:
    """The name that a token is, in lower case, behind CHARSET or CHARACTER SET; else ""."""
    before = [t.word for t in tokens[max(0, at - 3) : at] if t.word != "="]
    if before[-1:] != ["CHARSET"] and before[-2:] != ["CHARACTER", "SET"]:
        return ""
    return (text_of(tokens[at]) or name_of(tokens[at])).lower()


def _has_collation(tokens: Sequence[Token], at: int) -> bool:
    """Whether the definition or options around a character set name a collation, or cannot."""
    for step, opens, closes in ((-1, ")", "("), (1, "(", ")")):
        here, depth = at + step, 0
        while 0 <= here < len(tokens):
            word = tokens[here].word
            if not depth and word == closes:
                if step < 0 and here and tokens[here - 1].word in _CONVERSIONS:
                    return True
                break
            if not depth and word == ",":
                break
            if not depth and word == "COLLATE":
                return True
            depth += (word == opens) - (word == closes)
            here += step
    return False
