"""Whatever a record is, it is read, or refused as a record that cannot be."""

from hypothesis import strategies as st

from setl.codec.keyed_record import keyed
from setl.errors import DataError
from setl.model.entry import EntryKind

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["-1", "99999999999999999999", "=", "AA==", "0", "2020-13-45", "x?"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for name, member in value.items():
            yield from paths(member, (*path, name))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from paths(member, (*path, index))


def changed(value, path, other):
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], other)
    return copy


def tried(reader, codec, key, value):
    try:
        header = reader.read(key, value)
        if header.kind is EntryKind.ROWS:
            rows = codec.decode(keyed(key, value), ())
            width = len(rows.schema.columns)
            assert all(len(row) == width for pair in rows.images for row in pair if row)
    except DataError:
        pass


def damaged(value, data):
    """A record with another byte, and without its end or beginning."""
    at = data.draw(st.integers(0, len(value) - 1))
    yield value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
    yield value[:at]
    yield value[at:]
