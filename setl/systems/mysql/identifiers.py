"""Names of schemas, tables and columns as MySQL text."""

from __future__ import annotations


def quote(name: str) -> str:
    """An identifier in backticks, safe inside a statement whatever characters it has.

    Args:
        name: the bare identifier; one name, not a dotted path.

    Raises:
        ValueError: it is empty or holds a NUL, which no MySQL identifier can.
    """
    if not name or "\0" in name:
        raise ValueError(f"not an identifier: {name!r}")
    return "`" + name.replace("`", "``") + "`"


def identifier(name: str) -> str:
    """A quoted name inside a statement with placeholders, where a percent sign is written twice."""
    return quote(name).replace("%", "%%")


def qualified(schema: str, table: str) -> str:
    """A table's full name, both parts quoted."""
    return f"{quote(schema)}.{quote(table)}"
