"""Rows as MySQL literals, a column at a time.

Rendering is the driver-side cost of writing to MySQL, so it does its work per column and not
per value: one join finds out whether a column of a thousand strings holds anything that needs
care, and one ``%`` makes a row. What comes out is safe in a session without NO_BACKSLASH_ESCAPES
and ANSI_QUOTES, as `setl.systems.mysql.connection.connect` opens it: https://mariadb.com/kb/en/string-literals/
asks for the quote and the backslash to be escaped and for nothing else.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from setl.errors import DataError
from setl.model.change import ABSENT
from setl.model.labels import is_marked, shown
from setl.model.schema import Column, Kind
from setl.printable import BYTES_OF_TEXT, bytes_of_text, printable, text_of_bytes
from setl.systems.mysql.values.fit import is_single
from setl.systems.mysql.values.json_literal import json_literal

Values = Sequence[Any]
"""One column of several rows. Anything may stand in it; what does not belong is refused."""


class Rendered(NamedTuple):
    """A column ready to be set into rows: ``piece % literal`` for each of `literals`."""

    piece: str
    literals: Sequence[str]


def render_columns(
    columns: Sequence[Column],
    held: Sequence[Values],
    *,
    for_key: bool,
    by_bytes: bool = False,
    exact_json: bool = False,
) -> list[str]:
    """Each row as ``(1,'a',NULL)``, the values in the order of `columns`.

    Args:
        columns: what the values are, with the capacities of the columns that they go to.
        held: the values of each column, of at least one row.
        for_key: whether the values are compared with a column and not stored into it. NULL is
            refused then, since it equals nothing. Numbers are text then if the column is, and
            decimals are numbers if it is none, which they are not else: servers compare a number
            with text as floating point, and would find the wrong row or none; but what they store
            from text is exact.

        by_bytes: whether text without a UTF-8 form is written as its bytes, where the column has
            its character set. LOAD DATA would take the literal for text.
        exact_json: see `json_literal`.

    Raises:
        DataError: a value is not of the form that its `Kind` has, or is `ABSENT`. Text that
            has no UTF-8 form is found later, by `encode`.
    """
    pieces: list[str] = []
    rendered: list[Sequence[str]] = []
    for column, values in zip(columns, held, strict=True):
        render = _renderer(column, for_key=for_key, exact_json=exact_json)
        if by_bytes and column.kind in _TEXTUAL:
            render = _by_bytes(column, render)
        if for_key and None in values:
            raise _refused(column, values, render, nulls=False)
        try:
            piece, literals = render(values)
        except (TypeError, ValueError, AttributeError) as error:
            raise _refused(column, values, render, nulls=True) from error
        pieces.append(piece)
        rendered.append(literals)
    template = "(" + ",".join(pieces) + ")"
    return [template % row for row in zip(*rendered, strict=True)]


def _renderer(column: Column, *, for_key: bool, exact_json: bool) -> Callable[[Values], Rendered]:
    if column.kind is Kind.FLOAT and is_single(column):
        return _singles if for_key else lambda values: _floats(storable(column, values))
    if column.capacity is not None and column.capacity.type == "json":
        if column.kind not in (Kind.JSON, Kind.TEXT):
            return _FOR_VALUE[column.kind]
        return _documents_as_text if exact_json else _documents
    if fills_year(column):
        return _years
    if for_key and column.capacity is not None:
        return _key_renderer(column.kind, column.capacity.type)
    return (_FOR_KEY if for_key else _FOR_VALUE)[column.kind]


def _by_bytes(column: Column, render: Callable[[Values], Rendered]) -> Callable[[Values], Rendered]:
    """Writes text by its bytes where it has no UTF-8 form, and all else as `render` does."""
    charset = column.capacity.charset if column.capacity is not None else ""

    def literals(values: Values) -> Rendered:
        known = [None if literal_of_bytes(v, charset) else v for v in values]
        piece, rendered = render([v for v in known if v is not None] or [""])
        others = iter([piece % literal for literal in rendered])
        return Rendered(
            "%s",
            [
                literal_of_bytes(given, charset) or ("NULL" if value is None else next(others))
                for given, value in zip(values, known, strict=True)
            ],
        )

    return literals


def literal_of_bytes(value: Any, charset: str) -> str:
    """Text without a UTF-8 form by its bytes; "" if it has one, or is of another character set.

    Args:
        value: any value.
        charset: of the column that it is for.
    """
    if not isinstance(value, str) or not value.startswith(BYTES_OF_TEXT):
        return ""
    digits = bytes_of_text(value)[1]
    if not (charset and _HEXADECIMAL.fullmatch(digits)) or text_of_bytes(charset, digits) != value:
        return ""
    # With its character set an index finds it, and a column that has another one by now refuses it.
    return f"_{charset} x'{digits}'"


def fills_year(column: Column) -> bool:
    """Whether years go into a YEAR column, which takes the year 0000 as text only.

    The number 0 is 2000 to a YEAR(2).
    """
    held = column.capacity
    return column.kind is Kind.YEAR and held is not None and held.type == "year"


def _key_renderer(kind: Kind, held: str) -> Callable[[Values], Rendered]:
    """A number and text are compared as floating point, and neighbours are one then."""
    if held in _CHARACTERS and kind in (Kind.INTEGER, Kind.YEAR, Kind.BIT):
        return _digits
    if held in _CHARACTERS and kind is Kind.DECIMAL:
        return _texts
    if held in _EXACT and kind is Kind.TEXT:
        return _numbers_or_texts
    return _FOR_KEY[kind]


def encode(columns: Sequence[Column], held: Sequence[Values], statement: str) -> bytes:
    """A statement as the server reads it; DataError if a text value has no UTF-8 form.

    Codecs hand on bytes that are no valid text as lone surrogates, so that they are not lost
    and nothing is made up; here is where they stop.

    Args:
        columns: of the values.
        held: the values of each column.
        statement: with all of them.
    """
    try:
        return statement.encode("utf-8")
    except UnicodeEncodeError as error:
        for column, values in zip(columns, held, strict=True):
            for value in values:
                if is_marked(value):
                    raise DataError(
                        f"column {column.name} is {shown(str(value))} at the source, where another"
                        " value has that text, too",
                        hint="Correct the row at the source, or let the target's column have the"
                        " same type and labels",
                    ) from error
                if isinstance(value, str) and not _is_unicode(value):
                    raise invalid_text(column, value) from error
        raise


def invalid_text(column: Column, value: str) -> DataError:
    """The error for text that has no UTF-8 form."""
    if value.startswith(BYTES_OF_TEXT):
        charset, digits = bytes_of_text(value)
        what = f"{charset or 'its character set'}, or in a key is a second encoding of a character"
        if not _HEXADECIMAL.fullmatch(digits):
            what = f"{charset}, and is longer than what is kept of such text when a table is read"
        return DataError(
            f"column {column.name} holds text that has no character in {what}:"
            f" {printable(value)[:200]}",
            hint="Let the target's column have the same character set, which keeps the bytes, and"
            " start the pipeline again. With `faulty_rows: dead_letter` such rows are put aside,"
            " until the text is corrected at the source",
        )
    return DataError(
        f"column {column.name} holds text that is not valid in its character set",
        hint="Correct the text at the source",
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refused(
    column: Column, values: Values, render: Callable[[Values], Rendered], *, nulls: bool
) -> DataError:
    """The error for the first value of a column that cannot be rendered."""
    value = next(v for v in values if _is_refused(v, render, nulls=nulls))
    if value is ABSENT:
        what = "is missing from a row that needs it"
    elif value is None:
        what = "is NULL, but identifies rows"
    else:
        what = f"holds a {type(value).__name__} that is no {column.kind.value}: {value!r:.100}"
    return DataError(f"column {column.name} {what}")


def _is_refused(value: Any, render: Callable[[Values], Rendered], *, nulls: bool) -> bool:
    if value is None:
        return not nulls
    try:
        render((value,))
    except (TypeError, ValueError, AttributeError):
        return True
    return False


def _integers(values: Values) -> Rendered:
    # int.__repr__ instead of str: it takes integers only, so no text gets into a statement
    # outside quotes.
    number = int.__repr__
    try:
        return Rendered("%s", list(map(number, values)))
    except TypeError:
        return Rendered("%s", ["NULL" if v is None else number(v) for v in values])


def _years(values: Values) -> Rendered:
    rendered = _integers(values)
    if 0 not in values:
        return rendered
    return Rendered("%s", ["'0000'" if year == "0" else year for year in rendered.literals])


def _floats(values: Values) -> Rendered:
    try:
        numbers = list(map(float.__repr__, values))
    except TypeError:
        return Rendered("%s", ["NULL" if v is None else _float(v) for v in values])
    if "n" in "".join(numbers):
        raise ValueError("not a finite number")
    return Rendered("%s", [n if "e" in n else f"{n}e0" for n in numbers])


def _float(value: Any) -> str:
    number = float.__repr__(value)
    if not math.isfinite(value):
        raise ValueError(value)
    # Without an exponent it would be a decimal, which has no -0.0.
    return number if "e" in number else f"{number}e0"


_FOUR_BYTES = struct.Struct("<f")


def _singles(values: Values) -> Rendered:
    return Rendered("%s", ["NULL" if v is None else _float(single(v)) for v in values])


def storable(column: Column, values: Values) -> Values:
    """Numbers as they are given to a FLOAT column, which makes them its own.

    Only the largest are out of range if they are written with fewer digits. All others stay as they
    are: the column may have become a DOUBLE a moment ago, and shows other digits of `single` then.
    """
    most = _largest(column)
    near, far = -most, most
    return [v if v is None or near < v < far else _at_most(most, v) for v in values]


def _largest(column: Column) -> float:
    """From which number on a FLOAT column looks at what it is given."""
    held = column.capacity
    if held is None or held.scale is None or not held.digits:
        return _NEARLY_LARGEST
    return min(_NEARLY_LARGEST, 10.0 ** (held.digits - held.scale) - 10.0**-held.scale)


def _at_most(most: float, value: Any) -> float:
    """FLOAT(10,5) takes 99999.99999, and holds it as 100000, which it would not take."""
    if most < _NEARLY_LARGEST and single(abs(value)) == single(most):
        return math.copysign(most, value)
    return single(value)


def single(value: Any) -> float:
    """A number as a FLOAT column has it, with all of its digits.

    The server compares it in this form: a FLOAT that holds 0.1 is not equal to 0.1. And the
    largest one, written with fewer digits, is out of range.
    """
    try:
        return _FOUR_BYTES.unpack(_FOUR_BYTES.pack(value))[0]
    except (OverflowError, struct.error):
        if abs(value) < _BEYOND_FLOAT:
            return math.copysign(_LARGEST_FLOAT, value)
        return value


_LARGEST_FLOAT = 3.4028234663852886e38
_NEARLY_LARGEST = 3.4e38
_BEYOND_FLOAT = 3.4028236e38  # what is below it and rounds up is the largest, written short


_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_HEXADECIMAL = re.compile(r"([0-9A-F]{2})+")
_TEXTUAL = frozenset({Kind.TEXT, Kind.ENUM, Kind.SET})


def _decimals(values: Values) -> Rendered:
    if not all(map(_DECIMAL.fullmatch, values)):
        raise ValueError("not a decimal number")
    return Rendered("%s", values)


def _digits(values: Values) -> Rendered:
    return Rendered("'%s'", list(map(int.__repr__, values)))


def _numbers_or_texts(values: Values) -> Rendered:
    return (_decimals if all(map(_DECIMAL.fullmatch, values)) else _texts)(values)


def _texts(values: Values) -> Rendered:
    try:
        joined = "".join(values)
    except TypeError:
        return _texts_and_nulls(values)
    if "'" in joined or "\\" in joined:
        return Rendered("'%s'", list(map(_escape, values)))
    return Rendered("'%s'", values)


def _texts_and_nulls(values: Values) -> Rendered:
    joined = "".join([v for v in values if v is not None])
    if "'" in joined or "\\" in joined:
        return Rendered("%s", ["NULL" if v is None else f"'{_escape(v)}'" for v in values])
    return Rendered("%s", ["NULL" if v is None else f"'{v}'" for v in values])


def _escape(text: str) -> str:
    return str.replace(text, "\\", "\\\\").replace("'", "\\'")


def _documents(values: Values) -> Rendered:
    return Rendered("%s", ["NULL" if v is None else json_literal(v) for v in values])


def _documents_as_text(values: Values) -> Rendered:
    return Rendered("%s", ["NULL" if v is None else json_literal(v, exact=True) for v in values])


def _binaries(values: Values) -> Rendered:
    # Hexadecimal: bytes in quotes would have to pass through text, and their cost is the same.
    return Rendered("%s", ["NULL" if v is None else f"x'{bytes.hex(v)}'" for v in values])


_FOR_VALUE: dict[Kind, Callable[[Values], Rendered]] = {
    Kind.INTEGER: _integers,
    Kind.YEAR: _integers,
    Kind.BIT: _integers,
    Kind.FLOAT: _floats,
    Kind.BINARY: _binaries,
    Kind.GEOMETRY: _binaries,
    Kind.DECIMAL: _texts,
    Kind.TEXT: _texts,
    Kind.ENUM: _texts,
    Kind.SET: _texts,
    Kind.JSON: _texts,
    Kind.DATE: _texts,
    Kind.TIME: _texts,
    Kind.DATETIME: _texts,
    Kind.TIMESTAMP: _texts,
}
_CHARACTERS = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext",
     "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
)  # fmt: skip
_EXACT = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal"})
_FOR_KEY = {**_FOR_VALUE, Kind.DECIMAL: _decimals}
