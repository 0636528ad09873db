"""A relay of a format over a binlog's bytes, and tables of a column of any type."""

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog_tables import BinlogColumn, BinlogTable
from setl.model.checkpoint import Checkpoint
from setl.model.schema import Column, Kind, RowSchema
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import PartitionBy, Partitioner
from setl.relay.sequence import Sequencer
from tests.unit.codec.binlog_events import entries_of
from tests.unit.relay.relay_streams import ShopIsMapped
from tests.unit.relay.test_relay_bytes import START, binlog


def relayed(serializer, by: PartitionBy = "order", partitions=1, mariadb=False):
    relay = Sequencer(
        Checkpoint(START, generation=2),
        [None] * partitions,
        interceptor=Interceptor(ShopIsMapped(), own_tables=False),
        partitioner=Partitioner(by, partitions),
        codec=BinlogRowCodec(),
        serializer=serializer,
    )
    entries, _ = entries_of(binlog(mariadb=mariadb), START)
    found = [[] for _ in range(partitions)]
    for record in relay.records(entries).records:
        found[record.partition].append(record)
    return found, relay.heartbeat(1.7e9)


def table_of(kind, wire, **column):
    schema = RowSchema("s", "t", (Column("id", Kind.INTEGER), Column("v", kind, **column)), (0,))
    columns = (
        BinlogColumn(schema.columns[0], WireColumn(ColumnType.LONG), nullable=False),
        BinlogColumn(schema.columns[1], wire, labels=("a", "b", "a")),
    )
    return BinlogTable(schema, columns)
