"""Columns of text and bytes: where the bytes lie that rows hold, text in UTF-8."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.binlog.columns.decoded import values_of
from setl.codec.binlog.columns.fields import UnfitValuesError
from setl.codec.binlog.columns.last_states import slices
from setl.codec.binlog.columns.offsets import ColumnValues
from setl.codec.binlog.columns.window import Positions
from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.charset import DOUBLED, decoder, is_utf8
from setl.model.schema import Kind


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


def texts_of(values: ColumnValues, column: int) -> Texts:
    """The values of a column that have their lengths in front of them.

    Text in UTF-8 is not looked at, see `require_utf8`.

    Raises:
        UnfitValuesError: text is of a character set, or has a character, that is read row by row.
        ValueError, LookupError, struct.error, zlib.error: see `decoded.values_of`.
    """
    layout, spans = values.layout.columns[column], values.spans(column)
    if layout.converted:
        return _converted(values, column)
    found = Texts(None, spans.starts, spans.stops)
    if layout.kind is Kind.TEXT and not is_utf8(layout.detail.charset):
        return _in_utf8(values, found, layout.detail.charset)
    if layout.kind is Kind.BINARY and layout.wire.type == ColumnType.STRING:
        return _filled(values, column, found)
    return found


def _converted(values: ColumnValues, column: int) -> Texts:
    found = [
        value.encode() if isinstance(value, str) else value or b""
        for value in values_of(values, column)
    ]
    ends = np.cumsum([0, *map(len, found)], dtype=np.int64)
    return Texts(np.frombuffer(b"".join(found), np.uint8), ends[:-1], ends[1:])


def require_utf8(values: ColumnValues, columns: list[int]) -> None:
    """Look at all text of some columns that says to be UTF-8, or ASCII.

    Raises:
        UnfitValuesError: some of it is not.
    """
    plain = [i for i in columns if _charset(values, i) and is_utf8(_charset(values, i))]
    ascii_alone = [i for i in plain if "ascii" in _charset(values, i).lower()]
    if ascii_alone and not _is_ascii(_bytes_of(values, ascii_alone)):
        raise UnfitValuesError("text is no ASCII")
    if plain:
        try:
            # One look at all of it. To Arrow and to Python the same bytes are UTF-8.
            _array_of(values, plain).cast(pa.string())
        except pa.ArrowInvalid as error:
            raise UnfitValuesError("text is no UTF-8") from error


def _charset(values: ColumnValues, column: int) -> str:
    """The character set of text that lies in the payload as it is; "" of all else."""
    layout = values.layout.columns[column]
    return layout.detail.charset if layout.kind is Kind.TEXT and not layout.converted else ""


def _array_of(values: ColumnValues, columns: list[int]) -> pa.Array:
    spans = [values.spans(i) for i in columns]
    starts = np.concatenate([span.starts for span in spans])
    stops = np.concatenate([span.stops for span in spans])
    return slices(values.window.bytes, starts, stops)


def _bytes_of(values: ColumnValues, columns: list[int]) -> NDArray[np.uint8]:
    return parts_of(_array_of(values, columns))[1]


def parts_of(array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Offsets and bytes of a new array of texts."""
    _, bounds, data = array.buffers()
    offsets = np.frombuffer(bounds, np.int32)[: len(array) + 1]
    found = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return offsets, found[: offsets[-1]]


def _is_ascii(data: NDArray[np.uint8]) -> bool:
    return not (data & np.uint8(0x80)).any()


def _in_utf8(values: ColumnValues, texts: Texts, charset: str) -> Texts:
    offsets, data = parts_of(slices(values.window.bytes, texts.starts, texts.stops))
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


def _filled(values: ColumnValues, column: int, texts: Texts) -> Texts:
    """BINARY(n) with the zero bytes that it loses at its end."""
    size, null = values.layout.columns[column].wire.length, values.nulls.get(column)
    short = texts.lengths < size
    if null is not None:
        short &= ~null
    if not short.any():
        return texts
    data, count = values.window.bytes, values.count
    at = np.minimum(texts.starts[:, None] + np.arange(size), len(data) - 1)
    filled = data[at]
    filled[np.arange(size) >= texts.lengths[:, None]] = 0
    starts = np.arange(0, count * size, size, dtype=np.int64)
    stops = starts + np.maximum(texts.lengths, size)
    raise_too_long = texts.lengths > size
    if raise_too_long.any():
        raise UnfitValuesError("bytes are more than their column holds")
    if null is not None:
        stops = np.where(null, starts, stops)
    return Texts(filled.ravel(), starts, stops)
