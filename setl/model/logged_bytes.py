"""Types of MariaDB that a binlog has the bytes of, and does not name.

UUID, INET4 and INET6 are text to whoever selects them, and 16, 4 and 16 bytes in a binlog, where
nothing tells them from BINARY. Documents are made of what the binlog has, so rows for documents
are read in that form, too: else a row would have another id, and other fields, when it is loaded.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import Final
from uuid import UUID

from setl.model.schema import Column, Kind

_LENGTHS: Final = {"uuid": 16, "inet4": 4, "inet6": 16}


def logged_value(column: Column, text: str) -> bytes | None:
    """The bytes that a binlog has of a value that somebody wrote as text.

    None if its column is one of which a binlog has what a SELECT shows.

    Raises:
        ValueError: it is no value of its column.
    """
    if not logged_length(column):
        return None
    if column.capacity is not None and column.capacity.type == "uuid":
        return UUID(text).bytes
    return ip_address(text).packed


def logged_length(column: Column) -> int:
    """How many bytes a binlog has of each value of a column; 0 where it has what a SELECT shows."""
    return 0 if column.capacity is None else _LENGTHS.get(column.capacity.type, 0)


def column_as_logged(column: Column) -> Column:
    """A column as a binlog describes it."""
    return replace(column, kind=Kind.BINARY) if logged_length(column) else column
