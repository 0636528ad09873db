"""Decodes PARTIAL_UPDATE_ROWS events: updates that say of JSON values only what has changed.

As other updates, but in front of an image after the update stand options and, where one of them
says so, a bit for each JSON column of the table: whether changes stand there instead of a value.
Source: ``Rows_log_event::print_verbose_one_row`` in MySQL's ``log_event.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from setl.codec.binlog.event import packed_integer
from setl.codec.binlog.values.json_diff import applied
from setl.codec.binlog.values.value_number import Reader
from setl.codec.binlog.values.value_text import json_value
from setl.errors import DataError
from setl.model.change import ABSENT, Row, Value

_PARTIAL_JSON: Final = 1
_LENGTH: Final = 4  # bytes of the length in front of changes


def partial_images(
    event: bytes,
    at: int,
    end: int,
    readers: Sequence[Reader],
    json: Sequence[int],
    *,
    present: int,
    after: int,
) -> list[Row]:
    """All images of an event; those before and after take turns.

    Args:
        event: the event.
        at: where its images begin.
        end: where they end.
        readers: of all columns; those of JSON columns give MySQL's binary form.
        json: indexes of JSON columns.
        present: a bit for each column that the images before have.
        after: a bit for each column that the images after have.

    Raises:
        DataError: a value is said to have changed, and what it was is not said.
        ValueError, LookupError, struct.error: the bytes are damaged.
    """
    images: list[Row] = []
    while at < end:
        old, _, at = _image(event, at, readers, present, ())
        options, at = packed_integer(event, at)
        if options & ~_PARTIAL_JSON:
            raise ValueError(f"an update has options that are not known ({options})")
        partial: tuple[int, ...] = ()
        if options & _PARTIAL_JSON:
            width = (len(json) + 7) // 8
            bits = int.from_bytes(event[at : at + width], "little")
            partial = tuple(column for n, column in enumerate(json) if bits >> n & 1)
            at += width
        new, changed, at = _image(event, at, readers, after, partial)
        for column in json:
            if column in changed:
                new[column] = _changed(old[column], cast("bytes", new[column]))
            else:
                new[column] = _as_text(new[column])
            old[column] = _as_text(old[column])
        images += (tuple(old), tuple(new))
    if at != end:
        raise ValueError("its rows do not end where the event ends")
    return images


def _image(
    event: bytes, at: int, readers: Sequence[Reader], present: int, partial: Sequence[int]
) -> tuple[list[Value], set[int], int]:
    """The values of an image, which of them are changes, and where it ends."""
    width = (present.bit_count() + 7) // 8
    nulls = int.from_bytes(event[at : at + width], "little")
    at += width
    row: list[Value] = []
    changed: set[int] = set()
    for column, read in enumerate(readers):
        value: Value = ABSENT
        if present >> column & 1:
            value = None
            if not nulls & 1 and column in partial:
                start = at + _LENGTH
                at = start + int.from_bytes(event[at:start], "little")
                value = event[start:at]
                changed.add(column)
            elif not nulls & 1:
                value, at = read(event, at)
            nulls >>= 1
        row.append(value)
    return row, changed, at


def _changed(before: Value, diffs: bytes) -> str:
    if not isinstance(before, bytes):
        raise DataError(
            "an update says how a JSON value has changed, but not what it was",
            hint="SET GLOBAL binlog_row_value_options='', or binlog_row_image='FULL', on the source"
            " and let clients connect again. What the binlog has already arrives with"
            " `read: source` for the table",
        )
    return applied(before, diffs)


def _as_text(value: Value) -> Value:
    return json_value(value) if isinstance(value, bytes) else value
