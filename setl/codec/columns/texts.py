"""Texts and bytes of a column: where they lie, and what of them is UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.charset import DOUBLED, decoder, is_utf8
from setl.codec.columns.fields import UnfitValuesError
from setl.codec.columns.window import Positions, Window


class Texts(NamedTuple):
    """Where the values of a column lie.

    Attributes:
        data: the bytes in which they lie; None for the window of the payload.
        starts: of each value its first byte.
        stops: the byte behind its last one; the same as its start for a NULL.
    """

    data: NDArray[np.uint8] | None
    starts: Positions
    stops: Positions

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each value, 0 for a NULL."""
        return self.stops - self.starts


def slices(
    data: NDArray[np.uint8], starts: Positions, stops: Positions, order: Positions | None = None
) -> pa.Array:
    """Pieces of some bytes, which follow each other, as an array.

    Args:
        data: the bytes.
        starts: where each piece begins.
        stops: where each ends.
        order: numbers of the pieces that the array has, in its order; None for all as they are.

    Raises:
        OverflowError: there are more bytes than an array's offsets can say.
    """
    if len(data) >= 1 << 31:
        raise OverflowError(f"{len(data)} bytes are more than an array holds")
    count = len(starts)
    # What lies between two pieces is an element, too.
    bounds = np.zeros(2 * count + 1, np.int32)
    bounds[:-1:2], bounds[1::2] = starts, stops
    bounds[-1] = bounds[-2] if count else 0
    array = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    numbers = np.arange(0, 2 * count, 2) if order is None else order * 2
    return array.take(pa.array(numbers.astype(np.int32)))


def array_of(window: Window, texts: Texts) -> pa.Array:
    """The values as an array; a NULL is empty. Raises as `slices`."""
    data = window.bytes if texts.data is None else texts.data
    return slices(data, texts.starts, texts.stops)


def parts_of(array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Offsets and bytes of a new array of texts."""
    _, bounds, data = array.buffers()
    offsets = np.frombuffer(bounds, np.int32)[: len(array) + 1]
    found = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return offsets, found[: offsets[-1]]


def texts_of_values(held: Sequence[Any]) -> Texts:
    """Values that rows hold as text or bytes, or None."""
    found = [value.encode() if isinstance(value, str) else value or b"" for value in held]
    ends = np.cumsum([0, *map(len, found)], dtype=np.int64)
    return Texts(np.frombuffer(b"".join(found), np.uint8), ends[:-1], ends[1:])


def require_utf8(window: Window, columns: Sequence[tuple[str, Texts]]) -> None:
    """Look at all text that lies in a payload and says to be UTF-8, or ASCII.

    Args:
        window: the payload.
        columns: of each column of text its character set, and its values.

    Raises:
        UnfitValuesError: some of it is not.
    """
    plain = [(charset, texts) for charset, texts in columns if is_utf8(charset)]
    ascii_alone = [texts for charset, texts in plain if "ascii" in charset.lower()]
    if ascii_alone and not _is_ascii(parts_of(_joined(window, ascii_alone))[1]):
        raise UnfitValuesError("text is no ASCII")
    if plain:
        try:
            # One look at all of it. To Arrow and to Python the same bytes are UTF-8.
            _joined(window, [texts for _, texts in plain]).cast(pa.string())
        except pa.ArrowInvalid as error:
            raise UnfitValuesError("text is no UTF-8") from error


def _joined(window: Window, columns: Sequence[Texts]) -> pa.Array:
    starts = np.concatenate([texts.starts for texts in columns])
    stops = np.concatenate([texts.stops for texts in columns])
    return slices(window.bytes, starts, stops)


def _is_ascii(data: NDArray[np.uint8]) -> bool:
    return not (data & np.uint8(0x80)).any()


def in_utf8(window: Window, texts: Texts, charset: str) -> Texts:
    """Text of another character set than UTF-8, in UTF-8.

    Raises:
        UnfitValuesError: it has a character that is read one by one.
    """
    offsets, data = parts_of(array_of(window, texts))
    sizes = _utf8_sizes(charset)
    if _is_ascii(data) and (sizes[data] == 1).all():
        return texts
    if (sizes[data] == 0).any():
        raise UnfitValuesError(f"text of {charset} is read one by one")
    bounds = np.append(0, np.cumsum(sizes[data], dtype=np.int64))[offsets]
    text = decoder(charset)(data.tobytes()).encode()
    return Texts(np.frombuffer(text, np.uint8), bounds[:-1], bounds[1:])


@cache
def _utf8_sizes(charset: str) -> NDArray[np.uint8]:
    """For each byte of a character set that is one character, how many bytes it has in UTF-8.

    0 for a byte that is none, or is another one with others; and for one of a character that has
    a second encoding. ASCII may stay as it is, so what is one byte is the same one.
    """
    sizes = np.zeros(256, np.uint8)
    try:
        decode = decoder(charset)
    except ValueError:
        return sizes
    for code in range(256):
        try:
            text = decode(bytes([code]))
        except ValueError:
            continue
        own = text.encode("utf-8", "surrogatepass")
        if len(text) != 1 or (len(own) == 1 and own[0] != code):
            continue
        if charset.lower() in DOUBLED and (code >= 0x80 or text == "\\"):
            continue
        sizes[code] = len(own)
    return sizes
