"""Sessions of the source's clients: random settings, and how literals are written under them."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

CODECS: Final = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "ascii": "ascii",
    "latin1": "cp1252",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "gbk": "gbk",
    "big5": "big5",
    "ujis": "euc_jp",
    "cp1251": "cp1251",
    "utf16": "utf-16-be",
    "ucs2": "utf-16-be",
    "utf32": "utf-32-be",
}
"""The codec with which Python writes text of a character set of the servers."""

_CLIENTS: Final = ("utf8mb4", "latin1", "sjis", "cp932", "gbk", "big5", "ujis", "cp1251")
_STRICT: Final = (
    "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO",
    "ANSI_QUOTES,STRICT_TRANS_TABLES",
    "NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES",
    "STRICT_TRANS_TABLES,ALLOW_INVALID_DATES",
    "STRICT_TRANS_TABLES,PAD_CHAR_TO_FULL_LENGTH",
    "STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO",
    "PIPES_AS_CONCAT,ANSI_QUOTES,STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE,IGNORE_SPACE",
    "ANSI,TRADITIONAL",
)
_LENIENT: Final = ("", "NO_ZERO_DATE", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ALLOW_INVALID_DATES")
_NO_ODD_DATES: Final = "NO_ZERO_DATE,NO_ZERO_IN_DATE"
_ZONES: Final = ("+00:00", "+08:00", "-05:00", "+05:30", "-11:00", "+14:00", "SYSTEM")


class Sql(str):
    """A value that is written into a statement as it stands."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a client, or a command of an operator.

    Attributes:
        sql: its text; a command begins with ``setl``.
        charset: the character set in which the client sends it; a session that has another one
            sends SET NAMES first.
        joined: whether it means nothing without the step before it.
    """

    sql: str
    charset: str = "utf8mb4"
    joined: bool = False

    @property
    def bytes(self) -> bytes:
        """The text as it is sent."""
        return self.sql.encode(CODECS[self.charset], "surrogateescape")

    @property
    def is_command(self) -> bool:
        """Whether an operator runs it, and no client."""
        return self.sql.startswith("setl ")


@dataclass(frozen=True, slots=True)
class Session:
    """What has been set in a session.

    Attributes:
        charset: of the statements that the client sends.
        mode: ``sql_mode``.
        image: ``binlog_row_image``.
        settings: everything else, by name.
        odd_dates: whether its statements may store a date with zeros in it, or of no day.
    """

    charset: str = "utf8mb4"
    mode: str = _STRICT[0]
    image: str = "FULL"
    settings: dict[str, str] = field(default_factory=dict[str, str])
    odd_dates: bool = True

    @property
    def strict(self) -> bool:
        """Whether the server refuses values that do not fit, so that they need not be avoided."""
        return "STRICT" in self.mode or "TRADITIONAL" in self.mode

    @property
    def statements(self) -> list[Step]:
        """What makes a new session one like this."""
        given = {"sql_mode": f"'{self.mode}'", **self.settings}
        given["binlog_row_image"] = f"'{self.image}'"
        return [Step(f"SET SESSION {name} = {value}") for name, value in given.items()]

    def step(self, sql: str, *, joined: bool = False) -> Step:
        """A statement that this session sends; in UTF-8 if its client could not name a column."""
        try:
            sql.encode(CODECS[self.charset])
        except UnicodeEncodeError:
            return Step(sql, joined=joined)
        return Step(sql, self.charset, joined)

    def text(self, value: str) -> str:
        """A literal of a text, with an introducer if the client's character set lacks it."""
        try:
            value.encode(CODECS[self.charset])
        except UnicodeEncodeError:
            return f"_utf8mb4 X'{value.encode('utf-8').hex()}'"
        if "NO_BACKSLASH_ESCAPES" not in self.mode:
            value = value.replace("\\", "\\\\").replace("\0", "\\0")
        elif "\0" in value:
            return f"_utf8mb4 X'{value.encode('utf-8').hex()}'"
        return "'" + value.replace("'", "''") + "'"

    def literal(self, value: Any) -> str:
        """A value as a statement of this session has it."""
        if value is None:
            return "NULL"
        if isinstance(value, Sql):
            return str(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'" if value else "''"
        return self.text(value) if isinstance(value, str) else str(value)

    def name(self, name: str) -> str:
        """An identifier in quotes."""
        if "ANSI" in self.mode and len(name) % 2:
            return '"' + name + '"'
        return f"`{name}`"


def random_session(
    chance: random.Random, *, mariadb: bool, wild: bool, without: Collection[str] = ()
) -> Session:
    """Make one up.

    Args:
        chance: decides.
        mariadb: the source's family, since each has settings of its own.
        wild: also what lets values in that the source would refuse by default.
        without: features that histories do not have, see `FEATURES`.
    """
    settings = {"time_zone": f"'{chance.choice(_ZONES)}'"}
    for name in ("foreign_key_checks", "unique_checks", "explicit_defaults_for_timestamp"):
        settings[name] = str(int(chance.random() < 0.8))
    if mariadb:
        settings["check_constraint_checks"] = str(int(not wild or chance.random() < 0.8))
    if chance.random() < 0.2:
        settings["collation_connection"] = chance.choice(("utf8mb4_bin", "latin1_bin"))
    if chance.random() < 0.2:
        settings["innodb_strict_mode"] = "OFF"
    modes = _LENIENT if wild and chance.random() < 0.4 else _STRICT
    if "session" in without:
        # What a generated column over a CHAR gives depends on the second.
        modes = [mode for mode in modes if "ANSI" not in mode and "PAD_CHAR" not in mode]
    mode = chance.choice(modes)
    odd_dates = "odd-dates" not in without
    if not odd_dates:
        mode = f"{mode.replace('ALLOW_INVALID_DATES', _NO_ODD_DATES)},{_NO_ODD_DATES}"
    charset = chance.choice(_CLIENTS) if chance.random() < 0.5 else "utf8mb4"
    return Session(charset, mode, "FULL", settings, odd_dates)
