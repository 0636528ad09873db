"""Where the values of each column lie in some images.

Each value has its branch of the union in front of it, then the members of that branch, see
``schemas/Record.avsc``. All images are gone over together, one column after the other. Whatever
lies otherwise than its column's values have lain so far is an UnfitValuesError: the records are
decoded one by one then, which learns of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.fields import UnfitValuesError
from setl.codec.columns.window import Mask, Positions, Window
from setl.codec.dts.image import KnownColumn

_MORE: Final = 0x80
_BITS: Final = 7
_LAST_SHIFT: Final = 63
_THERE: Final = 2  # the branch int of a moment's member
_MEMBERS: Final = 7  # year, month, day, hour, minute, second, microseconds


class Located(NamedTuple):
    """The values of one column that are not NULL, or room for them.

    Attributes:
        starts: where the bytes begin that count.
        stops: where they end; as `starts` if they are of one size or `numbers` are all there is.
        numbers: members that are numbers, one of each value in each array.
        absent: of a moment's members, where some are not there, which values lack them.
    """

    starts: Positions
    stops: Positions
    numbers: tuple[NDArray[np.int64], ...] = ()
    absent: tuple[Mask | None, ...] = ()


_Walk = Callable[[Window, Positions], tuple[Located, Positions]]


def numbers_at(window: Window, at: Positions) -> tuple[NDArray[np.int64], Positions]:
    """The numbers at these positions, and the positions behind them.

    Source: https://avro.apache.org/docs/1.11.1/specification/#binary-encoding

    Raises:
        UnfitValuesError: one is too long.
        IndexError: the bytes end.
    """
    byte = window.bytes[at]
    value = (byte & 0x7F).astype(np.uint64)
    at = at + 1
    more = byte >= _MORE
    shift = _BITS
    while more.any():
        if shift > _LAST_SHIFT:
            raise UnfitValuesError("a number has too many bytes")
        index = np.flatnonzero(more)
        byte = window.bytes[at[index]]
        if shift == _LAST_SHIFT and (byte > 1).any():
            raise UnfitValuesError("a number has too many bits")
        value[index] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        at[index] += 1
        more[index] = byte >= _MORE
        shift += _BITS
    signed = value >> np.uint64(1) ^ (np.uint64(0) - (value & np.uint64(1)))
    return signed.view(np.int64), at


def located(
    window: Window, at: Positions, column: KnownColumn
) -> tuple[Located, Mask | None, Positions]:
    """The values of a column that begin at these positions, and what is behind them.

    Returns:
        The values, which are NULL (None if none is), and the positions behind.

    Raises:
        UnfitValuesError, IndexError: see the module's text.
    """
    branch = window.bytes[at]
    null = branch == 0
    if null.all():
        return Located(at, at), null, at + 1
    if not column.member:
        raise UnfitValuesError("nothing is known of a column's values")
    walk = _WALKS[column.member]
    if not null.any():
        _require_front(window, at, column)
        found, behind = walk(window, at + len(column.front))
        return found, None, behind
    index = np.flatnonzero(~null)
    some = at[index]
    _require_front(window, some, column)
    found, end = walk(window, some + len(column.front))
    behind = at + 1
    behind[index] = end
    starts, stops = behind.copy(), behind.copy()
    starts[index], stops[index] = found.starts, found.stops
    spread = [_spread(numbers, index, len(at)) for numbers in found.numbers]
    absent = [None if lacks is None else _spread(lacks, index, len(at)) for lacks in found.absent]
    return Located(starts, stops, tuple(spread), tuple(absent)), null, behind


def _spread(values: NDArray[Any], index: NDArray[np.int64], count: int) -> NDArray[Any]:
    whole = np.zeros(count, values.dtype)
    whole[index] = values
    return whole


def _require_front(window: Window, at: Positions, column: KnownColumn) -> None:
    """Refuse values of another branch, character set or type than the column's."""
    alike = np.ones(len(at), np.bool_)
    for offset, byte in enumerate(column.front):
        alike &= window.bytes[at + offset] == byte
    if not alike.all():
        raise UnfitValuesError("a value lies otherwise than those before")


def sizes_at(window: Window, at: Positions) -> tuple[Positions, Positions]:
    """Where bytes with their length in front of them begin, and where they end.

    Raises:
        UnfitValuesError: a length makes no sense.
        IndexError: the bytes end.
    """
    size, begin = numbers_at(window, at)
    if ((size < 0) | (size > window.size)).any():
        raise UnfitValuesError("a length makes no sense")
    return begin, begin + size


def _sized(window: Window, at: Positions) -> tuple[Located, Positions]:
    begin, stop = sizes_at(window, at)
    return Located(begin, stop), stop


def _integer(window: Window, at: Positions) -> tuple[Located, Positions]:
    _, at = numbers_at(window, at)  # its precision, which says nothing
    return _sized(window, at)


def _decimal(window: Window, at: Positions) -> tuple[Located, Positions]:
    found, at = _sized(window, at)
    precision, at = numbers_at(window, at)
    scale, at = numbers_at(window, at)
    return found._replace(numbers=(precision, scale)), at


def _float(window: Window, at: Positions) -> tuple[Located, Positions]:
    _, behind = numbers_at(window, at + 8)
    _, behind = numbers_at(window, behind)
    return Located(at, at), behind


def _timestamp(window: Window, at: Positions) -> tuple[Located, Positions]:
    seconds, behind = numbers_at(window, at)
    micros, behind = numbers_at(window, behind)
    return Located(at, at, (seconds, micros)), behind


def _moment(window: Window, at: Positions) -> tuple[Located, Positions]:
    begin = at
    numbers: list[NDArray[np.int64]] = []
    absent: list[Mask | None] = []
    for _ in range(_MEMBERS):
        branch = window.bytes[at]
        lacks = branch == 0
        if (branch[~lacks] != _THERE).any():
            raise UnfitValuesError("a member is of another branch")
        if not lacks.any():
            number, at = numbers_at(window, at + 1)
            numbers.append(number)
            absent.append(None)
            continue
        index = np.flatnonzero(~lacks)
        number, behind = numbers_at(window, at[index] + 1)
        at = at + 1
        at[index] = behind
        numbers.append(_spread(number, index, len(at)))
        absent.append(lacks)
    return Located(begin, begin, tuple(numbers), tuple(absent)), at


_WALKS: Final[dict[str, _Walk]] = {
    "integer": _integer,
    "character": _sized,
    "decimal": _decimal,
    "float": _float,
    "timestamp": _timestamp,
    "year": _moment,
    "text": _sized,
    "binary": _sized,
    "wkb": _sized,
    "wkt": _sized,
}

WALKED: Final = frozenset(_WALKS)
"""The members whose branches are read by column."""
