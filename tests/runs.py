"""Entries as single records: where a source cuts its runs is its own affair."""

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.row_codec import single_entries
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, KafkaPosition


def single(entries):
    """Entries, with an entry of its own for each record of rows."""
    codecs = {BinlogPosition: BinlogRowCodec(), KafkaPosition: DtsRowCodec()}
    found = []
    for entry in entries:
        rows = entry.kind is EntryKind.ROWS
        found += single_entries(codecs[type(entry.position)], entry) if rows else [entry]
    return found
