"""Streams of entries as sources deliver them, made up by Hypothesis."""

from hypothesis import strategies as st

from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition, KafkaPosition

LENGTH = 10  # bytes of an event in made-up binlogs


def kafka_position(offset):
    return KafkaPosition("t", 0, offset)


def binlog_position(number):
    # Files roll over every seven events, in the middle of transactions too.
    file, event = divmod(number, 7)
    return BinlogPosition(f"binlog.{file + 1:06d}", 4 + event * LENGTH)


def entries(kinds, position=kafka_position, timestamps=None):
    """Entries of these kinds, at positions 1, 2, 3, …"""
    return [
        Entry(
            kind,
            position(number),
            float(number if timestamps is None else timestamps[number - 1]),
            rows=1 if kind is EntryKind.ROWS else 0,
            payload=b"r" * 20 if kind is EntryKind.ROWS else b"",
        )
        for number, kind in enumerate(kinds, 1)
    ]


B, R, C, D, H = (
    EntryKind.BEGIN,
    EntryKind.ROWS,
    EntryKind.COMMIT,
    EntryKind.DDL,
    EntryKind.HEARTBEAT,
)


@st.composite
def transaction(draw, most_rows=6):
    """One transaction; its begin, its commit, or both may be missing, as with DTS."""
    kinds = [B] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, most_rows))):
        kinds.append(R)
        if draw(st.integers(0, 5)) == 0:
            kinds.append(H)
    if draw(st.booleans()):
        kinds.append(C)
    return kinds


@st.composite
def streams(draw, most_rows=6, most=8, position=kafka_position):
    """A stream, and the set of indexes before which a transaction may begin or has ended."""
    kinds, boundaries = [], {0}
    for _ in range(draw(st.integers(0, most))):
        piece = draw(
            st.one_of(
                transaction(most_rows),
                st.just([B, R, C]),
                st.just([B, C]),
                st.just([H]),
                st.just([D]),
            )
        )
        kinds += piece
        boundaries.add(len(kinds))
    stamps = draw(st.lists(st.integers(0, 9), min_size=len(kinds), max_size=len(kinds)))
    return entries(kinds, position, stamps), boundaries


def cuts(length):
    """Ways to cut a stream of this length into pieces."""
    return st.lists(st.integers(0, length), max_size=5).map(lambda at: sorted({0, *at, length}))
