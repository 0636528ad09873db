"""Says a schema change to a server that lacks a collation of it, or is of the other family.

And to any where it names an engine without transactions. Only what both mean alike is said in
other words; and collations, as `create: true` chooses them (see `Dialect.nearest`). All else stays
as it is: where the target refuses it, the pipeline stops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from setl.codec.sql.names import listed, name_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl
from setl.codec.sql.tokens import Token, text_of, with_others
from setl.systems.mysql.creation.columns import LARGE
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.creation.expression import is_portable
from setl.systems.mysql.ddl.declared_columns import (
    DeclaredColumn,
    created_items,
    created_options,
    declared_columns,
    is_column,
)
from setl.systems.mysql.ddl.left_out import with_commas
from setl.systems.mysql.ddl.table_state import TargetTable
from setl.systems.mysql.identifiers import quote
from setl.systems.mysql.session_functions import BY_TIME_ZONE, CLOCK, NOW, OF_DAYS

_TEXT: Final = frozenset({
    "CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT",
    "LONG", "ENUM", "SET",
})  # fmt: skip
_WITH_CHARSET: Final = frozenset({"BINARY", "BYTE", "ASCII", "UNICODE", "VARBINARY"})
_NO_MORE: Final = frozenset({"MD5", "SHA", "SHA1"})  # functions of a MySQL before 9.6
_MOMENTS: Final = frozenset({"TIMESTAMP", "TIME"})  # a TIME becomes a date by that of today
_BY_SESSION: Final = CLOCK | BY_TIME_ZONE
_PREFIX: Final = "(191)"  # characters, which fit into 767 bytes, or bytes
_WAYS: Final = frozenset({"ALGORITHM", "LOCK"})
_PRIMARY: Final = frozenset({"PRIMARY"})
_UNIQUE: Final = frozenset({"PRIMARY", "UNIQUE"})
_TIMES: Final = frozenset({"TIMESTAMP", "DATETIME"})
# What the value of a default ends at, outside of parentheses.
_BEHIND_DEFAULT: Final = frozenset({
    "ON", "COMMENT", "CHECK", "INVISIBLE", "VISIBLE", "AUTO_INCREMENT", "GENERATED", "AS", "NOT",
    "NULL", "COLLATE", "CHARACTER", "CHARSET", "UNIQUE", "PRIMARY", "KEY", "REFERENCES",
    "CONSTRAINT", "FIRST", "AFTER", "SRID", "REF_SYSTEM_ID", "COLUMN_FORMAT", "STORAGE",
    "COMPRESSED", "WITHOUT", "WITH", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE",
})  # fmt: skip
# Attributes of a column and options of a table that only one family knows, and that decide nothing
# about rows; each with whether a value follows.
_MYSQLS_ATTRIBUTES: Final = {
    "VISIBLE": 0, "COLUMN_FORMAT": 1, "STORAGE": 1, "ENGINE_ATTRIBUTE": 1,
    "SECONDARY_ENGINE_ATTRIBUTE": 1,
}  # fmt: skip
_MARIADBS_ATTRIBUTES: Final = {"COMPRESSED": 0}
_MYSQLS_OPTIONS: Final = frozenset({
    "ENCRYPTION", "COMPRESSION", "AUTOEXTEND_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
})  # fmt: skip
# Engines without transactions that hold their own rows.
_LOCAL: Final = frozenset({
    "MYISAM", "ARIA", "MARIA", "MEMORY", "HEAP", "CSV", "ARCHIVE", "BLACKHOLE",
})  # fmt: skip
_NOT_INNODBS: Final = frozenset({"ROW_FORMAT", "KEY_BLOCK_SIZE", "PAGE_CHECKSUM", "TRANSACTIONAL"})
_MARIADBS_OPTIONS: Final = frozenset({
    "PAGE_CHECKSUM", "TRANSACTIONAL", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED",
    "ENCRYPTION_KEY_ID", "IETF_QUOTES", "SEQUENCE",
})  # fmt: skip


class Translation(NamedTuple):
    """A statement for the target.

    Attributes:
        text: the statement.
        notes: what it makes that is not as at the source, as sentences.
    """

    text: str
    notes: tuple[str, ...] = ()


def translated(
    ddl: TableDdl, there: Dialect, table: TargetTable, *, mariadb: bool | None
) -> Translation:
    """A statement as the target has to read it.

    Args:
        ddl: CREATE, ALTER or an index statement; anything else stays as it is.
        there: the target.
        table: the target's table.
        mariadb: whether a MariaDB ran it, None if that is not known.
    """
    if ddl.action not in (Action.CREATE, Action.ALTER, Action.INDEX):
        return Translation(ddl.text)
    foreign = mariadb is not None and mariadb != there.mariadb
    return _Translating(ddl, there, table, foreign=foreign).run()


class _Translating:
    def __init__(self, ddl: TableDdl, there: Dialect, table: TargetTable, *, foreign: bool) -> None:
        self._ddl, self._there, self._foreign = ddl, there, foreign
        self._keyed = {*table.keyed, *_keyed_by(ddl, _UNIQUE)}
        self._primary = {*table.primary, *_keyed_by(ddl, _PRIMARY)}
        self._default = table.collation
        self._edits: list[tuple[int, int, str]] = []
        self._notes: list[str] = []

    def run(self) -> Translation:
        ddl = self._ddl
        if ddl.action is Action.CREATE:
            options = created_options(ddl)
            named = any(_named(options))
            self._default = _collation_in(options) if named else self._default
            self._collation(options, "the table")
            self._engine(options)
            if self._foreign:
                self._options(options)
                self._keys([*created_items(ddl)])
        elif ddl.action is Action.ALTER:
            for clause in ddl.clauses():
                self._clause(clause)
        elif self._foreign:
            self._key(ddl.tokens)
            for before, token in pairwise(t for t in ddl.tokens if t.word != "="):
                if before.word in _WAYS:
                    self._replace(token, "DEFAULT")
        for column in declared_columns(ddl):
            self._column(column)
        text = ddl.text
        for start, end, other in sorted(self._edits, reverse=True):
            text = f"{text[:start]}{other}{text[end:]}"
        return Translation(text, tuple(dict.fromkeys(self._notes)))

    def _keys(self, items: Sequence[Sequence[Token]]) -> None:
        """The keys of a new table: a MySQL has none over whole texts."""
        types = {c.name.lower(): c.tokens[1].word.lower() for c in declared_columns(self._ddl)}
        gone = [False] * len(items)
        for number, item in enumerate(items):
            if is_column(item):
                continue
            whole = [] if self._there.mariadb else [*_whole_texts(item, types)]
            if "UNIQUE" in (token.word for token in item[:3]):
                gone[number] = bool(whole)
            else:
                self._edits += [(part.end, part.end, _PREFIX) for part in whole]
            if not gone[number]:
                self._key(item)
            else:
                said = " ".join(token.text for token in item)
                self._notes.append(f"left out: {said}, since {whole[0].name} has no length there")
        whole_items = [(item[0].start, item[-1].end) for item in items]
        self._edits += [(start, end, "") for start, end in with_commas(whole_items, gone)]

    def _clause(self, clause: Clause) -> None:
        words = clause.words
        if words[0] == "ENGINE":
            self._engine(clause.tokens)
        elif words[0] in ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE"):
            self._collation(clause.tokens, "the table")
        elif words[0] == "CONVERT":
            # It is for all columns at once.
            self._collation(clause.tokens, "each column of text", keyed=bool(self._keyed))
        elif self._foreign and words[0] in _WAYS:
            # What one can do in place, the other need not.
            self._replace(clause.tokens[-1], "DEFAULT")
        elif self._foreign and words[0] == "ADD" and not clause.columns:
            self._key(clause.tokens)

    def _column(self, column: DeclaredColumn) -> None:
        if len(column.tokens) < 2:
            return
        outside = [column.tokens[at] for at in column.outside()]
        keyed = column.name.lower() in self._keyed
        if not self._collation(outside, column.name, keyed=keyed) and keyed and self._foreign:
            self._key_collation(column)
        if self._foreign and self._ddl.action is Action.CREATE and self._made_plain(column):
            return
        if self._foreign and self._there.mariadb:
            self._for_mariadb(column)
        elif self._foreign:
            self._for_mysql(column)

    def _collation(self, tokens: Sequence[Token], what: str, *, keyed: bool = False) -> bool:
        """Have the target's collation instead of one; returns whether any was named."""
        charset, collation = _named(tokens)
        if collation is not None:
            wanted = self._known(_full(_text(collation), _text(charset)))
        elif charset is not None and not any(map(self._there.has_charset, _names(_text(charset)))):
            wanted = f"{_text(charset)}_general_ci"
        else:
            return charset is not None
        nearest = self._there.nearest(wanted, keyed=keyed, foreign=self._foreign)
        if nearest == wanted and (collation is None or _text(collation) in (wanted, "DEFAULT")):
            return True
        if nearest != wanted:
            self._notes.append(self._there.note_on(what, wanted, nearest, keyed=keyed))
        other = self._there.collations[nearest]
        if charset is not None and other not in _names(_text(charset)):
            self._replace(charset, other if collation else f"{other} COLLATE {nearest}")
        if collation is not None:
            self._replace(collation, nearest)
        return True

    def _known(self, collation: str) -> str:
        """The name that the target has for a collation, of utf8 or utf8mb3; else as it is."""
        prefix, _, rest = collation.partition("_")
        names = [f"{name}_{rest}" for name in _names(prefix)]
        return next((name for name in names if name in self._there.collations), collation)

    def _key_collation(self, column: DeclaredColumn) -> None:
        """A collation for a key, where the column takes its table's, which is a stranger's."""
        words = {column.tokens[at].word for at in column.outside()}
        if column.tokens[1].word not in _TEXT or words & _WITH_CHARSET or not self._default:
            return
        plain = self._there.nearest(self._default, keyed=False, foreign=True)
        nearest = self._there.nearest(self._default, keyed=True, foreign=True)
        if nearest != plain:
            at = _behind_type(column.tokens)
            charset = self._there.collations[nearest]
            text = f" CHARACTER SET {charset} COLLATE {nearest}"
            self._edits.append((at, at, text))
            self._notes.append(
                f"{column.name} has the collation {nearest}, so that no two rows of the source are"
                " one to it"
            )

    def _made_plain(self, column: DeclaredColumn) -> bool:
        """Make a plain column of a generated one, as `create: true` does; there are no rows yet."""
        outside = list(column.outside())
        words = [token.word for token in column.tokens]
        at = next((n for n in outside if words[n] == "AS" and words[n + 1 : n + 2] == ["("]), 0)
        if not at:
            return False
        end = next(n for n in range(at + 1, len(words) + 1) if n == len(words) or n in outside)
        names = {c.name.lower(): c.tokens[1].word for c in declared_columns(self._ddl)}
        text, used = _in_backticks(self._ddl.text, column.tokens[at + 2 : end - 1], names)
        stored = words[end : end + 1] in (["STORED"], ["PERSISTENT"])
        # Of a virtual one each reader gets what its own session makes of it, such as of a moment
        # in its time zone: nobody's values are to be kept.
        said = {t.word for t in column.tokens[at:end]}
        # Of a TIME a MariaDB makes a date without a year, and a MySQL today's.
        of_day = bool(said & OF_DAYS) and any(names[name] == "TIME" for name in used)
        of_day = of_day and (stored or not self._there.mariadb)
        differs = "/" in said or (not self._there.mariadb and bool(said & _NO_MORE))
        timed = said & _BY_SESSION or any(names[name] in _MOMENTS for name in used)
        if not stored and not of_day and (timed or not differs):
            return False
        # MariaDB pads a CHAR, or does not, as the session has it, and so stores nothing of it.
        padded = self._there.mariadb and any(names[name] in ("CHAR", "CHARACTER") for name in used)
        if is_portable(text, exact=True) and not padded and not of_day:
            return False
        first = at - 2 if words[at - 2 : at] == ["GENERATED", "ALWAYS"] else at
        last = end if stored or words[end : end + 1] == ["VIRTUAL"] else end - 1
        self._edits.append((column.tokens[first].start, column.tokens[last].end, ""))
        self._notes.append(
            f"{column.name} is a plain column and gets the values of the source: its expression is"
            " the source's own"
        )
        return True

    def _for_mariadb(self, column: DeclaredColumn) -> None:
        outside = list(column.outside())
        words = [token.word for token in column.tokens]
        generated = any(words[at] == "AS" for at in outside)
        if words[1] == "GEOMCOLLECTION":
            self._replace(column.tokens[1], "GEOMETRYCOLLECTION")
        self._without(column, _MYSQLS_ATTRIBUTES)
        filled = generated or any(words[at] in ("DEFAULT", "AUTO_INCREMENT") for at in outside)
        required = column.name.lower() in self._primary or any(
            (words[at - 1], words[at]) == ("NOT", "NULL") for at in outside
        )
        for at in outside:
            token, word = column.tokens[at], words[at]
            if word == "NULL" and generated and words[at - 1] != "DEFAULT":
                first = column.tokens[at - 1] if words[at - 1] == "NOT" else token
                self._edits.append((first.start, token.end, ""))
            elif word == "SRID" and at + 1 < len(words):
                self._edits.append((token.end, column.tokens[at + 1].start, "="))
                self._replace(token, "REF_SYSTEM_ID")
            elif word == "INVISIBLE" and required and not filled:
                self._replace(token, "")
                self._notes.append(
                    f"{column.name} is visible, since it takes no NULL and has no default"
                )

    def _for_mysql(self, column: DeclaredColumn) -> None:
        outside = list(column.outside())
        words = [token.word for token in column.tokens]
        self._without(column, _MARIADBS_ATTRIBUTES)
        primary = column.name.lower() in self._primary
        for at in outside:
            token, word = column.tokens[at], words[at]
            if primary and word == "NULL" and words[at - 1] == "DEFAULT":
                self._edits.append((column.tokens[at - 1].start, token.end, ""))
            elif primary and word == "NULL" and words[at - 1] != "NOT":
                self._replace(token, "NOT NULL")
            elif word == "PERSISTENT":
                self._replace(token, "STORED")
            elif word == "REF_SYSTEM_ID" and words[at + 1 : at + 2] == ["="]:
                self._edits.append((token.start, column.tokens[at + 1].end, "SRID "))
            elif word == "DEFAULT":
                self._default_value(column, at + 1)
            elif word == "ON" and words[at + 1 : at + 2] == ["UPDATE"]:
                self._moment(column, at + 2)

    def _default_value(self, column: DeclaredColumn, first: int) -> None:
        """A default in parentheses, where a MySQL wants them."""
        words = [token.word for token in column.tokens]
        if first >= len(words) or words[first] in ("NULL", "("):
            return
        if words[first] in NOW:
            self._moment(column, first)
            return
        value = list(_value(column.tokens, first))
        if words[1].lower() in LARGE or any(t.word == "(" for t in value):
            self._edits.append((value[0].start, value[0].start, "("))
            self._edits.append((value[-1].end, value[-1].end, ")"))

    def _moment(self, column: DeclaredColumn, at: int) -> None:
        """The clock with the fraction that the column has, which a MySQL insists on."""
        words = [token.text for token in column.tokens]
        if at >= len(words) or words[1].upper() not in _TIMES or words[at].upper() not in NOW:
            return
        digits = words[3] if words[2:3] == ["("] else ""
        end = at
        if words[at + 1 : at + 2] == ["("]:
            end = next((n for n in range(at, len(words)) if words[n] == ")"), at)
        text = f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP"
        self._edits.append((column.tokens[at].start, column.tokens[end].end, text))

    def _without(self, column: DeclaredColumn, unknown: dict[str, int]) -> None:
        for at in column.outside():
            values = unknown.get(column.tokens[at].word)
            if values is None or at < 2:
                continue
            last = at + values
            if values and last < len(column.tokens) and column.tokens[last].word == "=":
                last += 1
            if last < len(column.tokens):
                self._edits.append((column.tokens[at].start, column.tokens[last].end, ""))

    def _key(self, item: Sequence[Token]) -> None:
        """A key that the optimizer shall not use."""
        depth = 0
        for before, token in pairwise(item):
            depth += (before.word == "(") - (before.word == ")")
            if depth or before.word == "NOT":
                continue
            if token.word == "INVISIBLE" and self._there.mariadb:
                self._replace(token, "IGNORED")
            elif token.word == "VISIBLE" and self._there.mariadb:
                self._replace(token, "")
            elif token.word == "IGNORED" and not self._there.mariadb:
                self._replace(token, "INVISIBLE")

    def _engine(self, tokens: Sequence[Token]) -> None:
        """Have an engine with transactions, as `create: true` does: rows go into no other table."""
        values = {token.word: tokens[value] for _, token, value in _options_among(tokens)}
        engine = _text(values.get("ENGINE")).upper()
        own = engine in self._there.engines and not self._foreign
        if not engine or engine == "INNODB" or own or not (self._foreign or engine in _LOCAL):
            return
        self._notes.append(f"it is InnoDB; the source's {engine} would have no transactions")
        for token in self._engines_of_partitions():
            self._replace(token, "InnoDB")
        for at, token, value in _options_among(tokens):
            if token.word == "ENGINE":
                self._replace(tokens[value], "InnoDB")
            elif not self._foreign and token.word in _NOT_INNODBS:
                self._edits.append((tokens[at].start, tokens[value].end, ""))

    def _engines_of_partitions(self) -> Iterator[Token]:
        """What stands for the engine of a partition; all have the table's."""
        words = [token.word for token in self._ddl.tokens]
        first = words.index("PARTITION") if "PARTITION" in words else len(words)
        for at in range(first, len(words)):
            if words[at : at + 2] == ["ENGINE", "="]:
                yield self._ddl.tokens[at + 2]

    def _options(self, tokens: Sequence[Token]) -> None:
        """Have no options of a new table that are unknown."""
        unknown = _MYSQLS_OPTIONS if self._there.mariadb else _MARIADBS_OPTIONS
        for _, token, value in _options_among(tokens):
            if token.word in unknown:
                self._edits.append((token.start, tokens[value].end, ""))

    def _replace(self, token: Token, text: str) -> None:
        self._edits.append((token.start, token.end, text))


def _options_among(tokens: Sequence[Token]) -> Iterator[tuple[int, Token, int]]:
    """Words that have a value behind them: where each is, itself, and where its value is."""
    for at, token in enumerate(tokens):
        value = at + 1 + (at + 1 < len(tokens) and tokens[at + 1].word == "=")
        if value < len(tokens) and not (at and tokens[at - 1].word == "="):
            yield at, token, value


def _in_backticks(
    text: str, tokens: Sequence[Token], names: Collection[str]
) -> tuple[str, set[str]]:
    """An expression with each column's name in backticks, as servers show it; and those names."""
    used = {t.name.lower() for t in tokens if t.name.lower() in names}
    others = [(t, quote(t.name)) for t in tokens if t.name.lower() in used]
    start, end = tokens[0].start, tokens[-1].end
    moved = [(t._replace(start=t.start - start, end=t.end - start), new) for t, new in others]
    return with_others(text[start:end], moved), used


def _named(tokens: Sequence[Token]) -> tuple[Token | None, Token | None]:
    """The names of character set and collation among tokens outside of parentheses."""
    charset: Token | None = None
    collation: Token | None = None
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        before = [t.word for t in tokens[max(0, at - 3) : at] if t.word != "="]
        if depth or token.word in ("=", "DEFAULT"):
            continue
        if before[-1:] == ["COLLATE"]:
            collation = token
        elif before[-1:] == ["CHARSET"] or before[-2:] == ["CHARACTER", "SET"]:
            charset = token
    return charset, collation


def _collation_in(tokens: Sequence[Token]) -> str:
    charset, collation = _named(tokens)
    return "" if collation is None else _full(_text(collation), _text(charset))


def _text(token: Token | None) -> str:
    return "" if token is None else (text_of(token) or name_of(token)).lower()


def _full(collation: str, charset: str) -> str:
    """The name of a collation with its character set, which MariaDB may leave out."""
    if collation.startswith("uca1400_"):
        return f"{_unaliased(charset) or 'utf8mb4'}_{collation}"
    return collation


def _names(charset: str) -> tuple[str, ...]:
    """The names that servers have for a character set."""
    aliases = ("utf8", "utf8mb3")
    return (charset, *aliases) if charset in aliases else (charset,)


def _unaliased(charset: str) -> str:
    return "utf8mb3" if charset == "utf8" else charset


def _behind_type(tokens: Sequence[Token]) -> int:
    """Where the type of a column ends in the text."""
    at = 2
    while at < len(tokens) and tokens[at].word in ("VARYING", "VARCHAR", "CHAR"):
        at += 1
    if at < len(tokens) and tokens[at].word == "(":
        at = next((n for n in range(at, len(tokens)) if tokens[n].word == ")"), at) + 1
    return tokens[at - 1].end


def _value(tokens: Sequence[Token], first: int) -> Iterator[Token]:
    depth = 0
    for at in range(first, len(tokens)):
        if at > first and not depth and tokens[at].word in _BEHIND_DEFAULT:
            return
        depth += (tokens[at].word == "(") - (tokens[at].word == ")")
        yield tokens[at]


def _whole_texts(item: Sequence[Token], types: Mapping[str, str]) -> Iterator[Token]:
    """The columns of a key that are large, and of which no beginning is named."""
    words = [token.word for token in item]
    if "(" not in words or {"FULLTEXT", "SPATIAL", "VECTOR", "CHECK", "FOREIGN"} & set(words[:3]):
        return
    opens = words.index("(")
    for at in range(opens + 1, len(item)):
        first = words[at - 1] == "(" and at - 1 == opens
        large = types.get(name_of(item[at]).lower()) in LARGE
        if (first or words[at - 1] == ",") and large and words[at + 1 : at + 2] != ["("]:
            yield item[at]


def _keyed_by(ddl: TableDdl, kinds: frozenset[str]) -> Iterator[str]:
    """Columns that unique keys of a statement compare, in lower case."""
    for column in declared_columns(ddl):
        words = {column.tokens[at].word for at in column.outside()}
        if words & kinds or ("KEY" in words and "UNIQUE" not in words):
            yield column.name.lower()
    items = created_items(ddl) if ddl.action is Action.CREATE else _added(ddl)
    for item in items:
        if not {t.word for t in item[:3]} & kinds or is_column(item):
            continue
        opens = next((at for at, t in enumerate(item) if t.word == "("), len(item))
        for part in listed(item[opens + 1 :]):
            yield name_of(part[0]).lower()


def _added(ddl: TableDdl) -> Iterator[Sequence[Token]]:
    if ddl.action is Action.ALTER:
        for clause in ddl.clauses():
            if clause.words[0] == "ADD" and len(clause.tokens) > 2:
                yield clause.tokens[1:]
