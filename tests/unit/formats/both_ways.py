"""What a relay writes of every type is read as it was, but for what the format itself loses."""

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from tests.unit.codec.binlog_events import entries_of, stored


def entries():
    """Entries of rows of every type, with their rows."""
    events, said = stored("every_type")
    start = BinlogPosition(said["start"]["file"], said["start"]["offset"])
    codec = BinlogRowCodec()
    for entry in entries_of(events, start)[0]:
        if entry.kind is EntryKind.ROWS:
            yield entry, codec.decode(entry.payload, entry.context)


def differing(schema, rows, read):
    """Columns whose values are others; digits behind a point are not counted."""
    assert schema.names == read.schema.names
    for side in (0, 1):
        for column, one, two in zip(
            schema.columns, rows[side] or (), read.images[0][side] or (), strict=False
        ):
            if one != two and str(one).rstrip("0").rstrip(".") != str(two).rstrip("0").rstrip("."):
                yield column, one, two
