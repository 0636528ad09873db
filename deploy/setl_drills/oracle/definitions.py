"""Random definitions: columns of every type, defaults, generated columns, keys, CHECKs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from setl_drills.oracle.sessions import Session
from setl_drills.oracle.shapes import Column, Shape
from setl_drills.oracle.values import labels_of, random_value

CHARSETS: Final = {
    "common": (
        ("utf8mb4", ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci")),
        ("utf8mb3", ("utf8mb3_general_ci", "utf8mb3_bin")),
        ("latin1", ("latin1_swedish_ci", "latin1_bin", "latin1_german2_ci", "latin1_general_cs")),
        ("ascii", ("ascii_general_ci", "ascii_bin")),
        ("sjis", ("sjis_japanese_ci", "sjis_bin")),
        ("cp932", ("cp932_japanese_ci", "cp932_bin")),
        ("gbk", ("gbk_chinese_ci", "gbk_bin")),
        ("big5", ("big5_chinese_ci",)),
        ("ujis", ("ujis_japanese_ci",)),
        ("cp1251", ("cp1251_general_ci", "cp1251_bin")),
        ("utf16", ("utf16_general_ci", "utf16_bin")),
        ("utf32", ("utf32_general_ci",)),
        ("ucs2", ("ucs2_bin",)),
    ),
    "mariadb": (
        ("utf8mb4", ("utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_unicode_520_ci")),
        ("utf8mb4", ("utf8mb4_turkish_ci", "utf8mb4_uca1400_ai_ci", "utf8mb4_german2_ci")),
    ),
    "mysql": (
        ("utf8mb4", ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin")),
        ("utf8mb4", ("utf8mb4_tr_0900_ai_ci", "utf8mb4_ja_0900_as_cs")),
    ),
}
"""Character sets and collations by who knows them."""
TWO_ENCODINGS: Final = ("sjis", "cp932", "ujis")
"""Character sets in which a character may be encoded in two ways."""

_NUMBERS: Final = (
    "TINYINT", "TINYINT UNSIGNED", "SMALLINT", "MEDIUMINT", "MEDIUMINT UNSIGNED", "INT", "INT",
    "INT", "INT UNSIGNED", "INT(5) ZEROFILL", "BIGINT", "BIGINT UNSIGNED", "DECIMAL(10,2)",
    "DECIMAL(30,10)", "DECIMAL(5,0) UNSIGNED", "FLOAT", "DOUBLE", "DOUBLE UNSIGNED", "BIT(1)",
    "BIT(10)", "BIT(64)", "BOOL",
)  # fmt: skip
_ROUNDED: Final = ("FLOAT(10,5)", "DOUBLE(10,5)", "FLOAT(5,2)")
_TIMES: Final = (
    "DATE", "TIME", "TIME(3)", "TIME(6)", "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP",
    "TIMESTAMP(2)", "TIMESTAMP(6)", "YEAR",
)  # fmt: skip
_TEXT: Final = (
    "CHAR(4)", "CHAR(8)", "VARCHAR(8)", "VARCHAR(8)", "VARCHAR(300)", "TINYTEXT", "TEXT",
    "MEDIUMTEXT", "LONGTEXT",
)  # fmt: skip
_BYTES: Final = ("BINARY(4)", "VARBINARY(8)", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
_SPATIAL: Final = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "GEOMETRYCOLLECTION")
_LABELS: Final = (
    ("a", "b", "c"), ("x", "X2", "y"), ("", "a"), ("new", "paid", "sent"), ("a b", "it''s", "é"),
    ("1", "2", "0"), ("b", "a"), ("ß", "ss1", "中"), ("y", ""),
)  # fmt: skip
_TWINS: Final = (("a", "A"), ("a", "b", "a"), ("s", "S", "t"))
NAMES: Final = (
    "a", "b", "c", "d", "e", "f", "g", "h", "k", "n", "id2", "name", "a b", "select", "Größe", "中",
    "x-y", "A1", "ts", "day",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grammar:
    """What may be made up.

    Attributes:
        mariadb: whether the source is MariaDB.
        mixed: whether the target is of the other family, and has to know everything, too.
        without: features that are left out, keys of `FEATURES`.
    """

    mariadb: bool
    mixed: bool = False
    without: frozenset[str] = frozenset()

    def has(self, feature: str) -> bool:
        """Whether a feature may be used."""
        return feature not in self.without

    def collation(self, chance: random.Random) -> tuple[str, str]:
        """A character set and a collation of it."""
        charsets = CHARSETS["common"]
        if not self.has("charsets"):
            charsets = charsets[:1]
        if not self.has("encodings"):
            charsets = tuple(each for each in charsets if each[0] not in TWO_ENCODINGS)
        if not self.mixed and chance.random() < 0.3:
            charsets = CHARSETS["mariadb" if self.mariadb else "mysql"]
        # Most of the time one that everybody uses.
        charset, collations = charsets[0] if chance.random() < 0.4 else chance.choice(charsets)
        return charset, chance.choice(collations)


FEATURES: Final = {
    "generated": "generated columns",
    "generated-time": "generated columns over dates and times",
    "labels": "labels of ENUM and SET that are empty or equal for the collation",
    "lenient": "sessions without strict mode, or without CHECKs",
    "charsets": "character sets other than utf8mb4",
    "encodings": "character sets that encode characters in two ways",
    "odd-dates": "dates with zeros in them, and days that do not exist",
    "json": "JSON columns",
    "rounded": "FLOAT(M,D) and DOUBLE(M,D)",
    "images": "binlog_row_image other than FULL",
    "ddl": "schema changes",
    "session": "statements that mean something else in another session",
    "or-replace": "CREATE OR REPLACE TABLE of MariaDB",
    "online": "schema changes as gh-ost and pt-online-schema-change make them",
    "database": "ALTER DATABASE",
    "foreign": "foreign keys",
    "xa": "XA transactions",
    "behind": "histories that are applied after a pause",
    "load": "tables that are loaded again in the middle",
}
"""What `--without` may name."""


class Definitions:
    """Makes up columns and tables that fit a session."""

    def __init__(self, chance: random.Random, grammar: Grammar, session: Session) -> None:
        self._chance = chance
        self._grammar = grammar
        self._session = session

    def table(self, name: str, parent: Shape | None = None) -> str:
        """CREATE TABLE with a key of some sort; the server may refuse it.

        Args:
            name: of the table.
            parent: a table that a foreign key may name.
        """
        chance, quoted = self._chance, self._session.name
        names = chance.sample(NAMES, chance.randint(2, 7))
        columns = [self._made(each) for each in names]
        parts = [f"{quoted(column.name)} {text}" for column, text in columns]
        made = [column for column, _ in columns]
        parts[:0], keys = self._keys(made)
        if self._grammar.has("generated") and chance.random() < 0.5:
            parts += self._computed(made, keys)
        parts += keys
        if chance.random() < 0.15:
            parts.append(self.check(made))
        if parent and self._grammar.has("foreign") and chance.random() < 0.3:
            parts += self._foreign(parent)
        body, options = ", ".join(parts), self._options()
        partitions = self._partitions(made) if chance.random() < 0.1 else ""
        return f"CREATE TABLE {quoted(name)} ({body}){options}{partitions}"

    def column(self, name: str) -> str:
        """The definition of a plain column, without its name."""
        return self._made(name)[1]

    def computed(self, columns: list[Column]) -> str:
        """What makes a column a generated one: type and expression."""
        chance, quoted = self._chance, self._session.name
        of = chance.choice(columns)
        name = quoted(of.name)
        if of.timed and self._grammar.has("generated-time"):
            kind, expression = chance.choice(_OF_TIMES)
        elif of.timed:
            kind, expression = "INT", "1 + 1"
        elif of.text or of.kind in {"enum", "set"}:
            kind, expression = chance.choice(_OF_TEXTS)
            if of.kind in {"enum", "set"} and chance.random() < 0.5:
                kind, expression = "INT", "{c} + 0"
        elif of.kind == "json":
            kind, expression = chance.choice(_OF_JSON)
        elif of.whole or of.kind in {"decimal", "double", "float", "bit"}:
            kind, expression = chance.choice(_OF_NUMBERS)
        else:
            kind, expression = chance.choice(_OF_BYTES)
        stored = chance.choice(("STORED", "STORED", "VIRTUAL"))
        # Only MySQL knows it, and MariaDB may be the target.
        known = not (self._grammar.mariadb or self._grammar.mixed)
        null = " NULL" if known and chance.random() < 0.2 else ""
        return f"{kind} AS ({expression.format(c=name)}) {stored}{null}"

    def check(self, columns: list[Column]) -> str:
        """A CHECK constraint, which most rows meet."""
        of = self._chance.choice(columns)
        name = self._session.name(of.name)
        limit = "<> 6" if of.whole else "IS NOT NULL OR 1 = 1"
        return f"CONSTRAINT k{self._chance.randrange(1000)} CHECK ({name} {limit})"

    def index(self, columns: list[Column], *, unique: bool | None = None) -> str:
        """An index over one to three columns."""
        chance = self._chance
        if unique is None:
            unique = chance.random() < 0.4
        some = chance.sample(columns, min(len(columns), chance.choice([1, 1, 1, 2, 3])))
        parts = ", ".join(self.part(column) for column in some)
        kind = "UNIQUE KEY" if unique else "KEY"
        if not unique and not self._grammar.mariadb and not self._grammar.mixed:
            only = some[0]
            if only.whole and chance.random() < 0.3:
                parts = f"(({self._session.name(only.name)} + 1))"[1:-1]
        return f"{kind} i{chance.randrange(1000)} ({parts})"

    def part(self, column: Column) -> str:
        """A column as a part of an index, by a prefix where it needs one."""
        name, chance = self._session.name(column.name), self._chance
        if column.long or (column.text and "char" in column.kind and chance.random() < 0.2):
            name += f"({chance.choice([1, 2, 4])})"
        return name + chance.choice(["", "", "", " DESC"])

    def _made(self, name: str) -> tuple[Column, str]:
        column, spelling = self._type(name)
        return column, spelling + self._attributes(column)

    def _type(self, name: str) -> tuple[Column, str]:
        """A column with a random type, and how the type is spelt."""
        chance, grammar = self._chance, self._grammar
        groups = [(_NUMBERS, 6), (_TIMES, 5), (_TEXT, 6), (_BYTES, 2), (_SPATIAL, 1)]
        groups.append((("ENUM", "SET"), 3))
        if grammar.has("json"):
            groups.append((("JSON",), 2))
        if grammar.has("rounded"):
            groups.append((_ROUNDED, 1))
        if not grammar.mixed:
            own = ("UUID", "INET6", "INET4") if grammar.mariadb else ("VECTOR(3)",)
            groups.append((own, 1))
        pool = chance.choices([g for g, _ in groups], [weight for _, weight in groups])[0]
        spelling = chance.choice(pool)
        if spelling in {"ENUM", "SET"}:
            spelling = self._labelled(spelling)
        kind = spelling.partition("(")[0].partition(" ")[0].lower()
        kind = {"bool": "tinyint"}.get(kind, kind)
        charset = ""
        if kind in {"enum", "set"} or spelling in _TEXT:
            charset, collation = grammar.collation(chance)
            if chance.random() < 0.7:
                spelling += f" CHARACTER SET {charset}"
                spelling += f" COLLATE {collation}" if chance.random() < 0.8 else ""
        return Column(name, kind, spelling.lower(), charset), spelling

    def _labelled(self, kind: str) -> str:
        chance = self._chance
        labels = chance.choice(_LABELS)
        if not self._grammar.has("labels"):
            labels = _LABELS[3]
        elif chance.random() < 0.1:
            labels = chance.choice(_TWINS)
        listed = ", ".join(f"'{label}'" for label in labels)
        return f"{kind}({listed})"

    def _attributes(self, column: Column) -> str:
        """NULL, DEFAULT and the like."""
        chance = self._chance
        null = chance.choice([" NULL", "", " NOT NULL"])
        if column.kind == "timestamp" and not self._grammar.has("session"):
            text = " NULL"  # a default would be of a time zone
        else:
            text = null + self._default(column, nullable=null != " NOT NULL")
        if chance.random() < 0.06:
            text += " COMMENT " + self._session.text(chance.choice(["a comment", "it's é", "\\"]))
        if chance.random() < 0.05:
            text += " INVISIBLE"
        if self._grammar.mariadb and not self._grammar.mixed and chance.random() < 0.03:
            text += " COMPRESSED" if column.kind in {"varchar", "text", "blob"} else ""
        return text

    def _default(self, column: Column, *, nullable: bool) -> str:
        chance, kind = self._chance, column.kind
        if chance.random() < 0.4:
            return ""
        if kind in {"datetime", "timestamp"} and chance.random() < 0.5:
            digits = column.type.partition("(")[2].rstrip(")")
            now = f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP"
            return f" DEFAULT {now}" + (f" ON UPDATE {now}" if chance.random() < 0.5 else "")
        if nullable and chance.random() < 0.3:
            return " DEFAULT NULL"
        filled = Column(column.name, kind, column.type, column.charset, nullable=False)
        odd = 0.05 if self._session.odd_dates or not column.dated else 0
        value = random_value(chance, filled, odd=odd)
        literal = self._session.literal(labels_of(column)[0] if kind == "enum" else value)
        braced = column.long or kind in {"json", "vector", *(s.lower() for s in _SPATIAL)}
        if len(literal) > 200:
            return ""
        return f" DEFAULT ({literal})" if braced or literal[:1].isupper() else f" DEFAULT {literal}"

    def _keys(self, columns: list[Column]) -> tuple[list[str], list[str]]:
        """Columns that are added in front for the key, and the keys of a table."""
        chance, quoted = self._chance, self._session.name
        keys = [self.index(columns) for _ in range(chance.choice([0, 0, 1, 1, 2]))]
        sort = chance.random()
        if sort < 0.45:
            auto = chance.random() < 0.3
            kind = chance.choice(["INT", "INT", "BIGINT UNSIGNED", "SMALLINT"])
            own = f"{quoted('id')} {kind} NOT NULL{' AUTO_INCREMENT' if auto else ''}"
            columns.insert(0, Column("id", kind.split()[0].lower(), kind.lower(), nullable=False))
            return [own], [f"PRIMARY KEY ({quoted('id')})", *keys]
        if sort < 0.6:
            columns.insert(0, Column("id", "int", "int", nullable=False))
            other = self.part(chance.choice(columns[1:]))
            parts = [quoted("id"), other] if chance.random() < 0.5 else [other, quoted("id")]
            return [f"{quoted('id')} INT NOT NULL"], [f"PRIMARY KEY ({', '.join(parts)})", *keys]
        if sort < 0.7:
            columns.insert(0, Column("id", "int", "int", nullable=False))
            return [f"{quoted('id')} INT NOT NULL"], [f"UNIQUE KEY u ({quoted('id')})", *keys]
        some = [column for column in columns if not column.long] or columns
        chosen = chance.sample(some, min(len(some), chance.choice([1, 1, 2])))
        return [], [f"PRIMARY KEY ({', '.join(quoted(c.name) for c in chosen)})", *keys]

    def _computed(self, columns: list[Column], keys: list[str]) -> list[str]:
        chance, made = self._chance, list[str]()
        for number in range(chance.choice([1, 1, 2])):
            name = f"v{number}"
            text = self.computed(columns)
            made.append(f"{self._session.name(name)} {text}")
            if chance.random() < 0.4:
                kind = text.partition("(")[0].partition(" ")[0].lower()
                only = Column(name, kind, kind, "utf8mb4" if "char" in kind else "")
                keys.append(self.index([only], unique=chance.random() < 0.2))
        return made

    def _foreign(self, parent: Shape) -> list[str]:
        keys = parent.indexes.get("PRIMARY", ())
        of = {column.name: column for column in parent.columns}
        if len(keys) != 1 or not of[keys[0]].whole:
            return []
        quoted, number = self._session.name, self._chance.randrange(1000)
        return [
            f"{quoted('pid')} {of[keys[0]].type}",
            (
                f"CONSTRAINT f{number} FOREIGN KEY ({quoted('pid')}) REFERENCES"
                f" {quoted(parent.name)} ({quoted(keys[0])})"
            ),
        ]

    def _options(self) -> str:
        chance, text = self._chance, " ENGINE=InnoDB"
        if chance.random() < 0.3:
            charset, collation = self._grammar.collation(chance)
            text += f" DEFAULT CHARSET={charset}"
            text += f" COLLATE={collation}" if chance.random() < 0.6 else ""
        if chance.random() < 0.1:
            text += chance.choice([" ROW_FORMAT=COMPACT", " ROW_FORMAT=DYNAMIC", " COMMENT='t'"])
        return text

    def _partitions(self, columns: list[Column]) -> str:
        name = self._session.name(columns[0].name)
        return self._chance.choice(
            [
                f" PARTITION BY HASH ({name}) PARTITIONS 3",
                f" PARTITION BY KEY ({name}) PARTITIONS 2",
                (
                    f" PARTITION BY RANGE ({name}) (PARTITION p0 VALUES LESS THAN (3),"
                    " PARTITION p1 VALUES LESS THAN MAXVALUE)"
                ),
            ]
        )


_OF_TIMES: Final = (
    ("DATE", "DATE({c})"),
    ("INT", "HOUR({c})"),
    ("INT", "YEAR({c})"),
    ("VARCHAR(40)", "CONCAT({c}, 'x')"),
    ("BIGINT", "UNIX_TIMESTAMP({c})"),
    ("INT", "{c} < '2020-01-01'"),
    ("DATETIME", "{c} + INTERVAL 1 DAY"),
    ("VARCHAR(40)", "DATE_FORMAT({c}, '%Y-%m-%d %H')"),
    ("INT", "TO_DAYS({c})"),
    ("BIGINT", "{c} + 0"),
)
_OF_TEXTS: Final = (
    ("VARCHAR(400)", "UPPER({c})"),
    ("VARCHAR(400)", "CONCAT({c}, 'x')"),
    ("INT", "CHAR_LENGTH({c})"),
    ("INT", "LENGTH({c})"),
    ("VARCHAR(9)", "IF({c} = 'A', 'eq', 'ne')"),
    ("CHAR(32)", "MD5({c})"),
    ("VARCHAR(3)", "LEFT({c}, 3)"),
    ("VARCHAR(99)", "HEX(LEFT({c}, 4))"),
    ("VARCHAR(9)", "{c}"),
    ("INT", "{c} LIKE 'a%'"),
    ("VARCHAR(20)", "CONVERT(LEFT({c}, 4) USING utf8mb4)"),
    ("VARCHAR(400)", "TRIM({c})"),
)
_OF_JSON: Final = (
    ("VARCHAR(99)", "LEFT(JSON_EXTRACT({c}, '$.a'), 90)"),
    ("INT", "JSON_LENGTH({c})"),
    ("VARCHAR(20)", "JSON_TYPE({c})"),
    ("INT", "JSON_VALID({c})"),
)
_OF_NUMBERS: Final = (
    ("BIGINT", "{c} % 3"),
    ("DOUBLE", "{c} / 3"),
    ("DECIMAL(30,5)", "{c} + 0.5"),
    ("VARCHAR(40)", "CONCAT({c}, '')"),
    ("INT", "{c} > 3"),
    ("BIGINT", "ROUND({c}, 0)"),
    ("VARCHAR(40)", "CAST({c} AS CHAR(40))"),
    ("TINYINT", "{c}"),
)
_OF_BYTES: Final = (
    ("INT", "LENGTH({c})"),
    ("CHAR(32)", "MD5({c})"),
    ("VARBINARY(4)", "LEFT({c}, 4)"),
)
