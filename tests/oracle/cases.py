"""The SQL whose changes are recorded: a column of every type, and every kind of change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.integration import type_catalogue

_COLUMNS = 12  # of a table
_VALUES = 6  # of a column
_TOO_LONG = 1000  # characters of a value
_LARGE = re.compile(r"_large$|^varchar_long$|^char_long$|^mediumtext$|^mediumblob$|^any_")
_NO_DAY = re.compile(r"-02-(29|3.)|-(04|06|09|11)-31")
"""Days that do not exist, on which Debezium stops; the one of 2024 that does is left out, too."""

_ZERO = re.compile(r"^(date|datetime|timestamp)(s|6|_0|_3)?$|^year$|^bit1$|^decimal$")
"""Columns that there are as NOT NULL, too: what stands for a zero date depends on it."""

SESSION = (
    "SET time_zone = '+00:00'",
    "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
)
"""Of whoever runs the statements: a column takes whatever it may hold, zero dates among it."""

_CHANGES = (
    "CREATE TABLE one (id INT PRIMARY KEY, v VARCHAR(20), n INT NOT NULL DEFAULT 7)",
    "INSERT INTO one VALUES (1, 'a', 1), (2, NULL, 2), (3, 'c', 3)",
    "UPDATE one SET v = 'b' WHERE id = 1",
    "UPDATE one SET v = NULL, n = n + 1 WHERE id > 1",
    "UPDATE one SET id = 10 WHERE id = 1",
    "DELETE FROM one WHERE id IN (2, 10)",
    "REPLACE INTO one VALUES (3, 'replaced', 9)",
    "ALTER TABLE one ADD COLUMN more DECIMAL(6,2) UNSIGNED AFTER id",
    "INSERT INTO one (id, more) VALUES (4, 1.5)",
    "ALTER TABLE one DROP COLUMN v, RENAME COLUMN more TO `o'the\"r é`",
    "UPDATE one SET n = 0",
    "CREATE TABLE two (a INT, `b c` VARCHAR(9), c BIGINT UNSIGNED, PRIMARY KEY (`b c`, a))",
    "INSERT INTO two VALUES (1, 'x', 18446744073709551615), (2, 'y', NULL)",
    "UPDATE two SET `b c` = 'z', c = 5 WHERE a = 1",
    "DELETE FROM two WHERE a = 2",
    "CREATE TABLE keyless (a INT, b VARCHAR(9))",
    "INSERT INTO keyless VALUES (1, 'x'), (1, 'x')",
    "UPDATE keyless SET a = 2 LIMIT 1",
    "DELETE FROM keyless",
    "CREATE TABLE uniq (a INT NOT NULL, b INT, UNIQUE KEY (a))",
    "INSERT INTO uniq VALUES (1, 1)",
    "UPDATE uniq SET a = 2",
    "DELETE FROM uniq",
    "CREATE TABLE computed (a INT PRIMARY KEY, b INT AS (a * 2) STORED, c INT AS (a + 1) VIRTUAL)",
    "INSERT INTO computed (a) VALUES (1)",
    "CREATE TABLE `strange-na.me é` (id DATETIME(6) PRIMARY KEY, v DECIMAL(9,2))",
    "INSERT INTO `strange-na.me é` VALUES ('2026-01-02 03:04:05.678901', -1.5)",
    "DELETE FROM `strange-na.me é`",
    "TRUNCATE TABLE one",
    "DROP TABLE computed",
)

_Column = tuple[str, tuple[str, list[str]]]  # its name, its definition, and SQL of its values


def statements(connection: Any) -> list[str]:
    """All statements, in a database that is empty; types are those of the connection's server."""
    found = [*type_catalogue.columns(connection).items(), *type_catalogue.LABELS.items()]
    chosen = [(name, column) for name, column in found if not _LARGE.search(name)]
    made: list[str] = []
    for first in range(0, len(chosen), _COLUMNS):
        made += _table_of(first, chosen[first : first + _COLUMNS])
    return [*made, *_CHANGES]


def _table_of(number: int, columns: Sequence[_Column]) -> Iterator[str]:
    table = f"types_{number // _COLUMNS}"
    text = ", ".join(f"`{name}` {definition}" for name, (definition, _) in columns)
    yield f"CREATE TABLE {table} (id INT PRIMARY KEY, {text})"
    yield f"INSERT INTO {table} (id) VALUES (0)"
    values = [[v for v in found if _fits(v)][:_VALUES] for _, (_, found) in columns]
    for i in range(max(map(len, values))):
        row = ", ".join(column[i % len(column)] for column in values)
        yield f"INSERT INTO {table} VALUES ({i + 1}, {row})"
    required = [(name, definition) for name, (definition, _) in columns if _ZERO.search(name)]
    if required:
        text = ", ".join(
            f"`{name}` {definition.removesuffix(' NULL')} NOT NULL" for name, definition in required
        )
        listed = ", ".join(["id", *(f"`{name}`" for name, _ in required)])
        yield f"CREATE TABLE required_{number} (id INT PRIMARY KEY, {text})"
        for i in range(max(map(len, values))):
            select = f"SELECT {listed} FROM {table} WHERE id = {i + 1}"
            yield f"INSERT INTO required_{number} {select}"


def _fits(value: str) -> bool:
    return len(value) < _TOO_LONG and not _NO_DAY.search(value)
