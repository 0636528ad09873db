"""Values of DTS images in their normal form, and the kind of column each belongs to.

A record names its columns and gives each a MySQL type number, but that number is one and the
same for TEXT and BLOB, and nothing says whether an integer has a sign. The branch of the union
that a value uses says more, and counts; the number decides where the branch leaves it open, and
stands in for it as long as a column has only been seen as NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from struct import Struct
from typing import Any, Final, NamedTuple

from setl.codec.charset import BINARY, decoder, exact_decoder, or_bytes
from setl.codec.dts.avro_bytes import long_bytes, text_bytes
from setl.codec.dts.image_writer import BYTES_OF, NUMBERED
from setl.codec.dts.moment import (
    MOMENTS,
    date_at,
    date_value,
    datetime_at,
    datetime_value,
    moment_kind,
    time_value,
    timestamp_at,
    timestamp_value,
    year_value,
    zoned_value,
)
from setl.codec.dts.scan import Misread
from setl.model.change import Value
from setl.model.labels import marked
from setl.model.schema import Column, Kind
from setl.printable import text_of_bytes

_Raw = dict[str, Any]
_Read = Callable[[_Raw], Value]

_BIT: Final = 16
_TIMESTAMP: Final = 7
LARGEST_SIGNED: Final = 2**63 - 1
_BYTE_ORDER_MARKS: Final = (b"\xfe\xff", b"\xff\xfe")
_SIXTEEN_BITS: Final = frozenset({"ucs2", "utf16"})

# What a column is that has only been NULL so far. Source of the numbers: `enum_field_types`.
_HINTS: Final[dict[int, Kind]] = {
    **dict.fromkeys((1, 2, 3, 8, 9), Kind.INTEGER),
    _BIT: Kind.BIT,
    13: Kind.YEAR,
    0: Kind.DECIMAL,
    246: Kind.DECIMAL,
    4: Kind.FLOAT,
    5: Kind.FLOAT,
    _TIMESTAMP: Kind.TIMESTAMP,
    17: Kind.TIMESTAMP,
    10: Kind.DATE,
    11: Kind.TIME,
    19: Kind.TIME,
    12: Kind.DATETIME,
    14: Kind.DATETIME,
    18: Kind.DATETIME,
    245: Kind.JSON,
    247: Kind.ENUM,
    248: Kind.SET,
    255: Kind.GEOMETRY,
}
_DATE_OR_DATETIME: Final = 14  # writers use it for both
_MOMENT_VALUES: Final[dict[Kind, _Read]] = {
    Kind.DATE: date_value,
    Kind.TIME: time_value,
    Kind.YEAR: year_value,
}
_LABELS: Final = frozenset({Kind.JSON, Kind.ENUM, Kind.SET})
_NUMBERED: Final = {NUMBERED["ENUM"]: Kind.ENUM, NUMBERED["SET"]: Kind.SET}
_OBJECT_TYPES: Final = {"JSON": Kind.JSON, "ENUM": Kind.ENUM, "SET": Kind.SET, **_NUMBERED}


class Form(NamedTuple):
    """The layout of a column's last value; the next one usually has the same.

    Attributes:
        front: the bytes that such a value begins with: the branch, and members before the one
            that counts, if they are the same in every value.
        decode: makes the value of its bytes, in front of which their length stands; None for
            values without a length, and if there is no such form.
        tail: the members behind it, if they are the same in every value.
        fixed: the value is of eight bytes without a length, and `decode` is a `Struct`'s
            ``unpack_from``.
        read: instead of `decode`, makes the value of the bytes behind `front` at an offset, and
            tells the offset behind it; None for a value that is not of the form after all.
    """

    front: bytes = b""
    decode: Callable[..., Any] | None = None
    tail: bytes = b""
    fixed: bool = False
    read: Callable[[bytes, int], tuple[Value, int] | None] | None = None


NO_FORM: Final = Form()
_FORMS_TRIED: Final = 100
_DOUBLE: Final = Struct("<d")
_MakeForm = Callable[[Column, _Raw], Form]


class KnownColumn(NamedTuple):
    """What is known of the values of a column.

    Attributes:
        column: what it is.
        member: the member that only the branch of its values has, see `BRANCH`; "" if all were
            NULL so far.
        front: the bytes that its values begin with, up to a number.
        named: the character set or type that its values name, "" if they name none.
        hinted: whether the column's type number says which kind of date or time it has.
    """

    column: Column
    member: str
    front: bytes
    named: str
    hinted: bool

    @property
    def charset(self) -> str:
        """The character set of its text; strings of Avro are UTF-8."""
        return self.named if self.member == "character" else "utf8mb4"

    @property
    def decode(self) -> Callable[[bytes], Value]:
        """Makes a value that is text or bytes, as `ImageColumn.read` does."""
        kind = self.column.kind
        if kind in (Kind.BINARY, Kind.GEOMETRY):
            return bytes
        if self.member == "character":
            return _decoder(self.named, lenient=True, exact=kind is Kind.TEXT)
        return _marked_text if self.named in _NUMBERED else bytes.decode


class ImageColumn:
    """One column of the records of a table, and what has been learned about it.

    Attributes:
        column: what it is, as far as it is known.
        changes: how often that may have changed.
        form: see `Form`.
    """

    def __init__(self, name: str, number: int) -> None:
        self._number = number
        kind = _HINTS.get(number, Kind.TEXT)
        self.column = Column(name, kind, binary_order=kind is not Kind.TEXT)
        self.changes = 0
        self.form = NO_FORM
        self._forms = 0  # how often that was another one
        self._read: _Read = _unknown
        self._member = self._named = ""

    def read(self, raw: _Raw) -> Value:
        """A value that is neither NULL nor absent.

        Raises:
            ValueError: it cannot be decoded.
        """
        try:
            value = self._read(raw)
        except LookupError:
            # Another branch than last time, or something more to learn from this one.
            self.column, self._read = self._learn(raw)
            self._member, self._named = _member(raw), _named(raw)
            self.changes += 1
            self.form = NO_FORM
            value = self._read(raw)
        self._take_form(raw)
        return value

    def _take_form(self, raw: _Raw) -> None:
        """Expect further values to lie as this one, which was read."""
        self._named = _named(raw)
        form = _form(self.column, raw)
        if form != self.form:
            # Where values have no form that lasts, making another one each time would cost more.
            self._forms += 1
            self.form = form if self._forms < _FORMS_TRIED else NO_FORM

    def known(self) -> KnownColumn:
        """What has been learned so far."""
        member, named = self._member, self._named
        front = BRANCH.get(member, b"") + (text_bytes(named) if member in _NAMING else b"")
        return KnownColumn(self.column, member, front, named, _is_moment(self._number))

    def _learn(self, raw: _Raw) -> tuple[Column, _Read]:
        return _BRANCHES[_member(raw)](self.column, self._number, raw)


def _member(raw: _Raw) -> str:
    """The member that only a value's branch has.

    Raises:
        ValueError: there is none.
    """
    for member in _BRANCHES:
        if member in raw:
            return member
    raise ValueError(f"no branch of the record schema has the members {', '.join(raw)}")


_NAMING: Final = frozenset({"character", "text", "binary", "wkb", "wkt"})


def _named(raw: _Raw) -> str:
    """The character set or type that a value names."""
    return raw.get("charset", raw.get("type", ""))


def _form(column: Column, raw: _Raw) -> Form:
    """The form of values like this one, of a column that has read it."""
    for member, make in _FORMS.items():
        if member in raw:
            return make(column, raw)
    return NO_FORM


def _integer_form(column: Column, raw: _Raw) -> Form:
    grows = column.kind is Kind.INTEGER and not column.unsigned
    front = BRANCH["integer"] + long_bytes(raw["precision"])
    return Form(front, signed_digits if grows else int)


def _character_form(column: Column, raw: _Raw) -> Form:
    charset = raw["charset"]
    decode = (
        bytes if column.kind is Kind.BINARY else _decoder(charset, exact=column.kind is Kind.TEXT)
    )
    return Form(BRANCH["character"] + text_bytes(charset), decode)


def plain_digits(digits: bytes) -> str:
    """A decimal as it stands there; Misread for one with an exponent."""
    text = digits.decode()
    if "E" in text or "e" in text:
        raise Misread
    return text


def _digits_form(member: str, decode: Callable[..., Any], *, fixed: bool) -> _MakeForm:
    def make(_: Column, raw: _Raw) -> Form:
        tail = long_bytes(raw["precision"]) + long_bytes(raw["scale"])
        return Form(BRANCH[member], decode, tail, fixed=fixed)

    return make


def _typed_form(member: str, decode: Callable[[bytes], Value]) -> _MakeForm:
    return lambda _, raw: Form(BRANCH[member] + text_bytes(raw["type"]), decode)


def _text_form(_: Column, raw: _Raw) -> Form:
    decode = _marked_text if raw["type"] in _NUMBERED else bytes.decode
    return Form(BRANCH["text"] + text_bytes(raw["type"]), decode)


def _marked_text(data: bytes) -> str:
    return marked(data.decode())


def _timestamp_form(_column: Column, _raw: _Raw) -> Form:
    return Form(BRANCH["timestamp"], read=timestamp_at)


def _moment_form(column: Column, _: _Raw) -> Form:
    read = {Kind.DATETIME: datetime_at, Kind.DATE: date_at}.get(column.kind)
    return Form(BRANCH["year"], read=read) if read else NO_FORM


_FORMS: Final[dict[str, _MakeForm]] = {
    "integer": _integer_form,
    "character": _character_form,
    "decimal": _digits_form("decimal", plain_digits, fixed=False),
    "float": _digits_form("float", _DOUBLE.unpack_from, fixed=True),
    "timestamp": _timestamp_form,
    "year": _moment_form,
    "text": _text_form,
    "binary": _typed_form("binary", bytes),
    "wkb": _typed_form("wkb", bytes),
}


def _label_kind(number: int) -> Kind:
    hinted = _HINTS.get(number)
    return hinted if hinted in _LABELS else Kind.TEXT


def _unknown(_: _Raw) -> Value:
    raise LookupError


def _as_kind(column: Column, kind: Kind, *, binary_order: bool = True) -> Column:
    if column.kind is kind and column.binary_order == binary_order:
        return column
    return Column(column.name, kind, binary_order=binary_order)


def _integer(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    if number == _BIT:
        return _as_kind(column, Kind.BIT), _any_integer
    if _HINTS.get(number) is Kind.YEAR:
        return _as_kind(column, Kind.YEAR), _any_integer
    column = _as_kind(column, Kind.INTEGER)
    if column.unsigned or int(raw["integer"]) > LARGEST_SIGNED:
        return replace(column, unsigned=True), _any_integer
    return column, _signed_integer


def _signed_integer(raw: _Raw) -> Value:
    value = int(raw["integer"])
    if value > LARGEST_SIGNED:
        raise LookupError
    return value


def signed_digits(digits: bytes) -> int:
    """A number that a signed column holds; Misread for another one, which tells something."""
    value = int(digits)
    if value > LARGEST_SIGNED:
        raise Misread
    return value


def _any_integer(raw: _Raw) -> Value:
    return int(raw["integer"])


def _decimal(column: Column, _: int, raw: _Raw) -> tuple[Column, _Read]:
    whole = max(raw["precision"] - raw["scale"], column.precision - column.scale)
    scale = max(raw["scale"], column.scale)
    learned = Column(
        column.name, Kind.DECIMAL, precision=whole + scale, scale=scale, binary_order=True
    )

    def read(raw: _Raw) -> Value:
        if raw["scale"] > scale or raw["precision"] - raw["scale"] > whole:
            raise LookupError
        text: str = raw["decimal"]
        return _without_exponent(text) if "E" in text or "e" in text else text

    return learned, read


def _without_exponent(text: str) -> str:
    """A decimal as servers write it: Java's clients write 0.00000001 as 1E-8."""
    try:
        return f"{Decimal(text):f}"
    except InvalidOperation:
        raise ValueError(f"not a decimal number: {text!r}") from None


def _float(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    return _as_kind(column, Kind.FLOAT), lambda raw: raw["float"]


def _character(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    charset: str = raw["charset"]
    if charset.lower() == BINARY:
        kind, decode = Kind.BINARY, bytes
    else:
        kind = _label_kind(number)
        decode = _decoder(charset, lenient=True, exact=kind is Kind.TEXT)

    def read(raw: _Raw) -> Value:
        if raw["charset"] != charset:
            raise LookupError
        return decode(raw["character"])

    return _as_kind(column, kind, binary_order=kind is not Kind.TEXT), read


def _decoder(charset: str, *, lenient: bool = False, exact: bool = False) -> Callable[[bytes], str]:
    if charset.startswith(BYTES_OF):
        own = charset.removeprefix(BYTES_OF)
        return lambda data: text_of_bytes(own, data.hex().upper())
    if charset.lower() in _SIXTEEN_BITS:
        decode = _unmarked
    else:
        decode = (exact_decoder if exact else decoder)(charset)
    return or_bytes(charset, decode) if lenient else decode


def _unmarked(data: bytes) -> str:
    """UTF-16, of which some writers mark the byte order in front; else the high byte leads."""
    codec = "utf-16" if data[:2] in _BYTE_ORDER_MARKS else "utf-16-be"
    return data.decode(codec)


def _timestamp(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    return _as_kind(column, Kind.TIMESTAMP), timestamp_value


def _moment(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    hinted = _HINTS.get(number) if _is_moment(number) else None
    kind = moment_kind(hinted, raw)
    value = _MOMENT_VALUES.get(kind, datetime_value)

    def read(raw: _Raw) -> Value:
        if moment_kind(hinted, raw) is not kind:
            raise LookupError  # each value says by itself what it is
        return value(raw)

    return _as_kind(column, kind), read


def _is_moment(number: int) -> bool:
    """Whether a type number says which kind of date or time a column has."""
    return number != _DATE_OR_DATETIME and _HINTS.get(number) in MOMENTS


def _zoned(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    return _as_kind(column, Kind.TIMESTAMP), zoned_value


def _bytes_of(member: str, kind: Kind) -> Callable[[Column, int, _Raw], tuple[Column, _Read]]:
    def learn(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
        return _as_kind(column, kind), lambda raw: raw[member]

    return learn


def _text(column: Column, number: int, raw: _Raw) -> tuple[Column, _Read]:
    object_type = raw["type"]
    kind = _OBJECT_TYPES.get(object_type.upper(), _label_kind(number))

    def read(raw: _Raw) -> Value:
        if raw["type"] != object_type:
            raise LookupError
        return marked(raw["text"]) if object_type in _NUMBERED else raw["text"]

    return _as_kind(column, kind, binary_order=kind is not Kind.TEXT), read


def _wkt(column: Column, _number: int, _raw: _Raw) -> tuple[Column, _Read]:
    # Well-known text: there is no kind for it, and turning it into bytes is the target's job.
    return _as_kind(column, Kind.TEXT, binary_order=False), lambda raw: raw["wkt"]


# A member that only this branch has, see `setl.codec.dts.wire`.
_BRANCHES: Final[dict[str, Callable[[Column, int, _Raw], tuple[Column, _Read]]]] = {
    "integer": _integer,
    "character": _character,
    "decimal": _decimal,
    "float": _float,
    "timestamp": _timestamp,
    "year": _moment,
    "zoned": _zoned,
    "wkb": _bytes_of("wkb", Kind.GEOMETRY),
    "wkt": _wkt,
    "binary": _bytes_of("binary", Kind.BINARY),
    "text": _text,
}

BRANCH: Final = {member: long_bytes(number) for number, member in enumerate(_BRANCHES, 1)}
"""Member → how its branch stands in the bytes; the order above is that of the union."""
