"""Keys of rows from a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from setl.counting import count
from setl.errors import ConfigurationError
from setl.model.change import Row


def read_keys(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """The names of the key's columns, and the keys of a file.

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
            for line in filter(None, lines):
                if len(line) != len(names):
                    raise ConfigurationError(
                        f"line {lines.line_num} of {path} has {count(len(line), 'value')} for"
                        f" {count(len(names), 'column')}"
                    )
                keys.append(tuple(line))
            return names, keys
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path} cannot be read as CSV: {error}") from error
