"""Columns of text and bytes: where the bytes lie that rows hold, text in UTF-8."""

from __future__ import annotations

import numpy as np

from setl.codec.binlog.columns.offsets import ColumnOffsets
from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.charset import is_utf8
from setl.codec.columns.fields import UnfitValuesError
from setl.codec.columns.texts import Texts, in_utf8
from setl.model.schema import Kind


def texts_of(values: ColumnOffsets, column: int) -> Texts:
    """The values of a column that have their lengths in front of them, and are not converted.

    Text in UTF-8 is not looked at.

    Raises:
        UnfitValuesError: text is of a character set, or has a character, that is read row by row.
    """
    layout, spans = values.layout.columns[column], values.spans(column)
    found = Texts(None, spans.starts, spans.stops)
    if layout.kind is Kind.TEXT and not is_utf8(layout.detail.charset):
        return in_utf8(values.window, found, layout.detail.charset)
    if layout.kind is Kind.BINARY and layout.wire.type == ColumnType.STRING:
        return _filled(values, column, found)
    return found


def charset_of(values: ColumnOffsets, column: int) -> str:
    """The character set of text that lies in the payload as it is; "" of all else."""
    layout = values.layout.columns[column]
    return layout.detail.charset if layout.kind is Kind.TEXT and not layout.converted else ""


def _filled(values: ColumnOffsets, column: int, texts: Texts) -> Texts:
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
