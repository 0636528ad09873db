"""The file of one table: every change is a line with its version, and the newest of a key counts.

So a change that comes late, or again, changes nothing, whoever sends it: lines are appended, never
replaced, and need no fence (I2, I12).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from setl.model.change import Row, TargetChanges

Line = tuple[int, str, dict[str, Any] | None]
"""Version, key as text, and the row; None where it was deleted."""


def file_of(folder: str, schema: str, table: str) -> Path:
    """The file of a table."""
    return Path(folder) / f"{schema}.{table}.jsonl"


def lines_of(changes: TargetChanges) -> Iterator[Line]:
    """Changes as lines."""
    names = [column.name for column in changes.columns]
    for row, version in zip(changes.upserts, changes.upsert_versions, strict=True):
        key = key_of([row[i] for i in changes.key])
        yield version, key, dict(zip(names, map(plain, row), strict=True))
    for values, version in zip(changes.deletes, changes.delete_versions, strict=True):
        yield version, key_of(values), None


def append(file: Path, lines: Iterable[Line]) -> None:
    """Append lines for good, all of them or none that counts. Raises OSError."""
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with file.open("ab+") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        # A process that died in the middle of a line has left the rest of the file to others.
        size = out.seek(0, os.SEEK_END)
        if size and os.pread(out.fileno(), 1, size - 1) != b"\n":
            text = b"\n" + text
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def rows_in(file: Path) -> dict[str, dict[str, Any]]:
    """The rows of a table by their keys. Raises OSError."""
    newest: dict[str, Line] = {}
    with file.open("rb") as lines:
        for line in lines:
            try:
                version, key, row = json.loads(line)
            except ValueError:
                continue  # cut off; what was in it was not acknowledged, and came again
            if key not in newest or version >= newest[key][0]:
                newest[key] = (version, key, row)
    return {key: row for key, (_, _, row) in newest.items() if row is not None}


def key_of(values: Iterable[Any]) -> str:
    """A key as text; equal keys have equal text."""
    return json.dumps([plain(value) for value in values])


def plain(value: Any) -> Any:
    """A value as JSON has it; `original` is its inverse."""
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def original(row: dict[str, Any], names: Iterable[str]) -> Row:
    """The values of some columns of a row that was read."""
    found = [row.get(name) for name in names]
    return tuple(bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in found)
