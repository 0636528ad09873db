"""Damaged events of real servers, and events that are whole and say too little: typed errors."""

import pytest

from setl.codec.binlog.event import has_checksums, is_mariadb
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import DataError, FatalError
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_events import DATA, START, EventWriter, entries_of

FORMAT, TABLE_MAP, BEGINS = 15, 19, {2, 33, 34, 162}
BEYOND = "in the binlog is damaged: its schema's name does not end in it"

# What the stream is refused with, and the type of the event.
STREAMS = {
    "column_of_0_bytes": (19, "column 11, of type 252, has 00 as metadata"),
    "blob_of_255_length_bytes": (19, "column 4, of type 252, has ff as metadata"),
    "impossible_string": (19, "column 3, of type 254, has 000c as metadata"),
    "impossible_string_in_a_file": (19, "column 5, of type 254, has 0004 as metadata"),
    "query_lengths": (2, BEYOND),
    "corrupt_relay_log": (2, BEYOND),
    "payload_of_0_bytes": (40, "its payload has 204 bytes and not 0"),
}

# What a row is refused with where it is decoded.
ROWS = {
    "no_columns_endless": "a change names no column of its row, not even the key",
    "minimal_insert_mariadb": "a change names no column of its row, not even the key",
    "minimal_insert_mysql": "a change names no column of its row, not even the key",
    "key_beyond_columns_mariadb": r"its key has the columns \[16\] of 8",
    "key_beyond_columns_mysql": r"its key has the columns \[64\] of 2",
    "columns_2_36": "68719476736 columns where the table has 3",
    "columns_2_63": "9223372036854775808 columns where the table has 3",
}
# What is whole, and was once refused.
WHOLE = ("enum_binary_mysql", "enum_binary_mariadb")
OLD_FORMATS = {"corrupt_relay_log": 18, "load_data": 22}


def recorded(name):
    """The events of a file, and whether they have checksums."""
    lines = (DATA / "damaged" / f"{name}.hex").read_text(encoding="utf-8").splitlines()
    events = [bytes.fromhex(line) for line in lines[1:]]
    checksum = all(has_checksums(event) for event in events if event[4] == FORMAT)
    return events, checksum


def stream(name):
    """The events behind what a server of today says first, inside a transaction."""
    events, checksum = recorded(name)
    formats = [event for event in events if event[4] == FORMAT]
    mariadb = bool(formats) and is_mariadb(formats[0])
    writer = EventWriter(mariadb=mariadb, checksum=checksum)
    events = [event for event in events if event[4] != FORMAT or name not in OLD_FORMATS]
    if formats and name not in OLD_FORMATS:
        opening = [writer.rotate(START.file, 4, artificial=True), events.pop(0)]
    else:
        opening = writer.opening()
    if not BEGINS & {event[4] for event in events}:
        opening += [writer.mariadb_gtid(1)] if mariadb else [writer.gtid(1), writer.query("BEGIN")]
    return [*opening, *events], checksum


@pytest.mark.parametrize("name", STREAMS)
def test_a_damaged_event_ends_the_stream_and_is_named_with_its_position(name):
    events, checksum = stream(name)
    kind, said = STREAMS[name]
    with pytest.raises(FatalError, match=said) as caught:
        entries_of(events, checksum=checksum)
    assert f"type {kind}" in str(caught.value)
    assert caught.value.where["position"].startswith(f"{START.file}:")


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("keys_alone", [False, True])
def test_a_row_that_cannot_be_decoded_is_an_error_and_not_left_out(name, keys_alone):
    events, checksum = stream(name)
    entries, _ = entries_of(events, checksum=checksum, hold_bytes=0)
    (entry,) = [entry for entry in entries if entry.kind is EntryKind.ROWS]
    with pytest.raises(DataError, match=ROWS[name]):
        BinlogRowCodec().decode(entry.payload, entry.context, keys_alone=keys_alone)


@pytest.mark.parametrize("name", OLD_FORMATS)
def test_a_format_without_checksums_is_refused_before_its_events_are(name):
    events, checksum = recorded(name)
    said = f"laid out in a way that is not known: {OLD_FORMATS[name]} types of events are listed"
    with pytest.raises(FatalError, match=said):
        entries_of(events, checksum=checksum)


@pytest.mark.parametrize("name", WHOLE)
def test_labels_in_the_character_set_binary_are_read(name):
    events, checksum = stream(name)
    entries, _ = entries_of(events, checksum=checksum, hold_bytes=0)
    (entry,) = [entry for entry in entries if entry.kind is EntryKind.ROWS]
    decoded = BinlogRowCodec().decode(entry.payload, entry.context)
    assert [after for _, after in decoded.images] == [
        (1, "BITMAP", "a,b", b"xy".ljust(10, b"\0"), b"zz"),
        (4_000_000_000, None, None, bytes(10), b"q"),
    ]


def test_each_recorded_file_is_read():
    files = {path.stem for path in (DATA / "damaged").iterdir()}
    assert files == STREAMS.keys() | ROWS.keys() | set(WHOLE) | OLD_FORMATS.keys()
