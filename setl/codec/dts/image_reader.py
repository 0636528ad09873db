"""Reads the images of one table one by one, by the form of each column's last value.

A record names neither the lengths nor the branches of its values beforehand, so each has to be
gone over. In the records of one table a column's values mostly begin alike: with the same branch
and the same charset or precision (see `setl.codec.dts.image.Form`). Whatever is not of its column's
form goes through ``learn``, which reads any value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from setl.codec.dts.image import Form
from setl.codec.dts.scan import Misread
from setl.model.change import Row, Value

ReadValue = Callable[[bytes, int], tuple[Value, int]]
"""Gives the value at an offset, and the offset behind it; raises one of `scan.MISREADS`."""

_SHORT: Final = 0x80  # a length below that has one byte


def read_image(
    readers: Sequence[ReadValue], listed: bytes, data: bytes, at: int
) -> tuple[Row, int]:
    """The image at an offset, and the offset behind it; its last byte was looked at.

    Args:
        readers: of each column.
        listed: how an image of so many columns begins.
        data: a record.
        at: the offset.

    Raises:
        Misread: the image is damaged, or of a form that is not read by hand; see `MISREADS`.
    """
    if not data.startswith(listed, at):
        raise Misread
    at += len(listed)
    row: list[Value] = []
    for read in readers:
        value, at = read(data, at)
        row.append(value)
    if data[at]:
        raise Misread
    return tuple(row), at + 1


def value_reader(form: Form, learn: ReadValue) -> ReadValue:
    """What reads the values of a column."""
    if form.read is not None:
        return _by_function(form.front, form.read, learn)
    if form.decode is None:
        return lambda data, at: learn(data, at) if data[at] else (None, at + 1)
    return _fixed(form, learn) if form.fixed else _sized(form, form.decode, learn)


def _sized(form: Form, decode: Callable[[bytes], Any], learn: ReadValue) -> ReadValue:
    front, tail = form.front, form.tail
    ahead, more = len(front), len(tail)

    def read(data: bytes, at: int) -> tuple[Value, int]:
        if not data.startswith(front, at):
            return learn(data, at) if data[at] else (None, at + 1)
        begin = at + ahead
        size = data[begin]
        begin += 1
        if size >= _SHORT:
            size = size & 0x7F | data[begin] << 7
            begin += 1
        end = begin + (size >> 1)
        # Longer texts, and what is of another form behind them.
        if size & 1 or size >= 1 << 14 or (tail and not data.startswith(tail, end)):
            return learn(data, at)
        return decode(data[begin:end]), end + more

    return read


def _fixed(form: Form, learn: ReadValue) -> ReadValue:
    front, tail, decode = form.front, form.tail, form.decode
    whole = 9 + len(tail)

    def read(data: bytes, at: int) -> tuple[Value, int]:
        if decode is None or not data.startswith(front, at):
            return learn(data, at) if data[at] else (None, at + 1)
        if not data.startswith(tail, at + 9):
            return learn(data, at)
        return decode(data, at + 1)[0], at + whole

    return read


def _by_function(
    front: bytes, function: Callable[[bytes, int], tuple[Value, int] | None], learn: ReadValue
) -> ReadValue:
    ahead = len(front)

    def read(data: bytes, at: int) -> tuple[Value, int]:
        if not data.startswith(front, at):
            return learn(data, at) if data[at] else (None, at + 1)
        return function(data, at + ahead) or learn(data, at)

    return read
