import json
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setl.codec.binlog.values.mysql_json import double_text, json_text
from setl.model.json_text import ServerJson


def length(number):
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def encode(value, *, large=False):
    """(type, bytes) of a value, the way the server lays it out."""
    if value is None or isinstance(value, bool):
        return 4, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        for kind, form in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
        raise AssertionError(value)
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode()
        return 12, length(len(data)) + data
    return container(value, large=large)


def container(value, *, large):
    is_object = isinstance(value, dict)
    width, number = (4, "<I") if large else (2, "<H")
    keys = [k.encode() for k in value] if is_object else []
    elements = [encode(v, large=large) for v in (value.values() if is_object else value)]
    inline = {4, 5, 6} | ({7, 8} if large else set())
    at = 2 * width + len(keys) * (width + 2) + len(elements) * (width + 1)
    key_entries = b""
    for key in keys:
        key_entries += struct.pack(number, at) + struct.pack("<H", len(key))
        at += len(key)
    value_entries, payload = b"", b""
    for kind, data in elements:
        value_entries += bytes([kind])
        if kind in inline:
            value_entries += data.ljust(width, b"\0")
        else:
            value_entries += struct.pack(number, at)
            payload += data
            at += len(data)
    head = struct.pack(number, len(elements)) + struct.pack(number, at)
    kind = (0 if is_object else 2) + (1 if large else 0)
    return kind, head + key_entries + value_entries + b"".join(keys) + payload


def document(value, *, large=False):
    kind, data = encode(value, large=large)
    return bytes([kind]) + data


def opaque(kind, data):
    return bytes([15, kind]) + length(len(data)) + data


def moment(packed):
    return struct.pack("<q", packed)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=10), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(_VALUES, st.booleans())
def test_every_document_comes_back(value, large):
    text = json_text(document(value, large=large))
    assert json.loads(text) == value
    assert json.dumps(json.loads(text)) == json.dumps(value)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=90), st.booleans())
@example([0.5, 2.0, -0.0, 1e-5, 1.5e-16, 1e15, 1e300] * 10, False)
@example([0.5] * 64, True)
def test_arrays_of_doubles_are_written_as_their_numbers_are(values, large):
    text = json_text(document(values, large=large))
    assert text == f"[{', '.join(map(double_text, values))}]"
    assert json.dumps(json.loads(text)) == json.dumps(values)


def test_arrays_of_doubles_that_are_damaged():
    data = document([0.5] * 70)
    for cut in (*range(1, 20), len(data) // 2, len(data) - 1):
        with pytest.raises(ValueError, match="binary JSON"):
            json_text(data[:cut])
    # Two entries that point at one number.
    twice = bytearray(document([0.5, 1.5, 2.5]))
    twice[9:11] = twice[6:8]
    assert json_text(bytes(twice)) == "[0.5, 0.5, 2.5]"


def test_what_has_decimals_is_reported_apart():
    decimal = opaque(246, bytes.fromhex("0302 81 0a"))
    assert type(json_text(document([0.5, "1.10", 7]))) is ServerJson
    assert type(json_text(decimal)) is str


@pytest.mark.parametrize(
    ("data", "text"),
    [
        # {"a": "b"}: count, size, offset and length of the key, type and offset of the value
        ("00 0100 0e00 0b00 0100 0c 0c00 61 01 62", '{"a": "b"}'),
        # [1, -1, null]: small integers and literals stand in place of offsets
        ("02 0300 0d00 05 0100 05 ffff 04 0000", "[1, -1, null]"),
        ("04 01", "true"),
        ("0b 000000000000f03f", "1.0"),
        ("0a ffffffffffffffff", "18446744073709551615"),
        ("00 0000 0400", "{}"),
        ("02 0000 0400", "[]"),
    ],
)
def test_known_bytes(data, text):
    assert json_text(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('a"b\\c/', r'"a\"b\\c/"'),
        ("\b\f\n\r\t\x01\x1f", r'"\b\f\n\r\t\u0001\u001f"'),
        ("é日🙂\x7f", '"é日🙂\x7f"'),
    ],
)
def test_strings_are_escaped_as_the_server_does(value, text):
    assert json_text(document(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e100, "1e100"),
        (-1.5e-7, "-0.00000015"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.1, "0.1"),
        (123.25, "123.25"),
        (1e-15, "0.000000000000001"),
        (1.5e-16, "1.5e-16"),
        (123456789012345.0, "123456789012345.0"),
        (1e15, "1e15"),
        (2.0**53, "9.007199254740992e15"),
        (1234567890123456.8, "1234567890123456.8"),
        (5e-324, "5e-324"),
        (-1.7976931348623157e308, "-1.7976931348623157e308"),
    ],
)
def test_doubles(value, text):
    """As the server answers, so that both look the same."""
    assert json_text(document(value)) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        # DECIMAL(5,2) 123.45, DECIMAL(3,1) -0.5
        (opaque(246, b"\x05\x02" + bytes.fromhex("807b2d")), "123.45"),
        (opaque(246, b"\x03\x01" + bytes.fromhex("7ffa")), "-0.5"),
        (opaque(10, moment(((2026 * 13 + 2) << 5 | 3) << 17 << 24)), '"2026-02-03"'),
        (
            opaque(12, moment((((2026 * 13 + 2) << 5 | 3) << 17 | 4 << 12 | 5 << 6 | 6) << 24 | 7)),
            '"2026-02-03 04:05:06.000007"',
        ),
        (opaque(11, moment(-((100 << 12 | 11 << 6 | 12) << 24 | 340000))), '"-100:11:12.340000"'),
        (opaque(252, b"\x00\xff"), '"base64:type252:AP8="'),
    ],
)
def test_values_without_a_json_type(data, text):
    assert json_text(data) == text


def test_an_object_around_an_opaque_value():
    data = opaque(246, b"\x05\x02" + bytes.fromhex("807b2d"))
    head = struct.pack("<HHHH", 1, 12 + len(data) - 1, 11, 1) + b"\x0f" + struct.pack("<H", 12)
    assert json_text(b"\x00" + head + b"k" + data[1:]) == '{"k": 123.45}'


@pytest.mark.parametrize(
    "data", ["", "03", "0d00", "0c05 61", "00 0100 ff00", "04 07", "0c ffffffffffff"]
)
def test_damage_is_a_value_error(data):
    with pytest.raises(ValueError, match="JSON"):
        json_text(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["02 0100 0700 02 0000", "02 0300 0d00 02 0000 02 0000 02 0000"])
def test_circles_are_a_value_error(data):
    # Arrays whose elements are the array itself.
    with pytest.raises(ValueError, match="nested"):
        json_text(bytes.fromhex(data))


def test_the_deepest_document_that_the_server_takes():
    value = 1
    for _ in range(99):
        value = [value]
    assert json_text(document(value)) == "[" * 99 + "1" + "]" * 99


@given(st.binary(max_size=80))
def test_bytes_of_any_kind_give_text_or_a_value_error(data):
    try:
        json_text(data)
    except ValueError:
        return
