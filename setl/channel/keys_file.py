"""Keys of rows from a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from setl.errors import ConfigurationError
from setl.model.change import Row

KEYS_PER_REQUEST = 5_000
"""So that a request fits where requests are kept: ZooKeeper takes a megabyte."""

_MOST_BYTES = 600_000


def read_keys(path: Path) -> Iterator[tuple[tuple[str, ...], tuple[Row, ...]]]:
    """The keys of a file, some at a time, each time with the names of their columns.

    The first line names the columns; each further line is a key. Values are text as the server
    writes them; bytes are written as ``0x`` and hexadecimal digits.

    Raises:
        ConfigurationError: it cannot be read, or has a line with another number of values.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            names = tuple(name.strip() for name in next(lines, [""]))
            if not all(names):
                raise ConfigurationError(f"the first line of {path} does not name columns")
            keys: list[Row] = []
            size = 0
            for line in lines:
                if not line:
                    continue
                if len(line) != len(names):
                    raise ConfigurationError(
                        f"line {lines.line_num} of {path} has {len(line)} values for"
                        f" {len(names)} columns"
                    )
                keys.append(tuple(line))
                size += sum(map(len, line))
                if len(keys) >= KEYS_PER_REQUEST or size > _MOST_BYTES:
                    yield names, tuple(keys)
                    keys, size = [], 0
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path} cannot be read as CSV: {error}") from error
    if keys:
        yield names, tuple(keys)
