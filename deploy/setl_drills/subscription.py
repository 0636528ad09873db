"""A DTS subscription as a service delivers it: records of a table on a Kafka topic."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafka import KafkaProducer

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts
from setl.codec.dts.table_form import TableForm
from setl.model.change import DecodedRows, Op
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema

_WRITER = DtsRecordWriter("8.0.28")
_COLUMNS = {
    Column("id", Kind.INTEGER): WireColumn(ColumnType.LONGLONG),
    Column("site", Kind.TEXT): WireColumn(ColumnType.STRING),
    Column("seq", Kind.INTEGER): WireColumn(ColumnType.LONGLONG),
    Column("note", Kind.TEXT): WireColumn(ColumnType.VARCHAR),
}
SITE = "k"
"""What rows of a subscription have in their column `site`."""
FIRST_ID = 2_000_000_000


class Subscription(threading.Thread):
    """Writes transactions of inserts into a table's topic until it is stopped.

    It remembers them all, so that another Kafka cluster can be given the same stream from a
    later beginning, as a service does that was moved.

    Attributes:
        topic: the topic's name.
        committed: ids of the rows in it.
    """

    def __init__(self, brokers: str, topic: str, schema: str, *, pace: float = 15.0) -> None:
        """Describe it; `start` begins to write.

        Args:
            brokers: the first cluster's address.
            topic: the topic.
            schema: of the table ``entries`` that the records are of.
            pace: transactions a second.
        """
        super().__init__(name="subscription", daemon=True)
        self.topic = topic
        self.committed: set[int] = set()
        table = RowSchema(schema, "entries", tuple(_COLUMNS), key=(0,))
        self._form = TableForm(table, tuple(_COLUMNS.values()))
        self._brokers = brokers
        self._pace = pace
        self._sent: list[tuple[float, list[bytes]]] = []
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._producer = self._connect()

    def run(self) -> None:
        """See `threading.Thread`."""
        while not self._stopping.wait(1 / self._pace):
            with self._lock:
                self._transaction()

    def stop(self) -> None:
        """Write no more."""
        self._stopping.set()
        if self.is_alive():
            self.join(30)
        self._producer.close(5)

    def hold(self) -> None:
        """Write nothing until `move`; returns when everything is acknowledged."""
        self._lock.acquire()
        self._producer.flush(30)
        self._producer.close(5)

    def fill(self, brokers: str, keep_seconds: float) -> None:
        """Write what was written since `keep_seconds` ago into another cluster; after `hold`."""
        self._brokers = brokers
        self._producer = self._connect()
        oldest = time.time() - keep_seconds
        for at, records in self._sent:
            if at >= oldest:
                self._send(at, records)
        self._producer.flush(30)
        self._producer.close(5)

    def move(self, brokers: str) -> None:
        """Go on in another cluster; after `hold`."""
        self._brokers = brokers
        self._producer = self._connect()
        self._lock.release()

    def _connect(self) -> Any:
        return KafkaProducer(bootstrap_servers=self._brokers, linger_ms=2)

    def _transaction(self) -> None:
        number, now = len(self._sent), time.time()
        ids = [FIRST_ID + number * 3 + index for index in range(3)]
        records = self._records(number, now, ids)
        self._sent.append((now, records))
        self._send(now, records)
        self._producer.flush(30)
        self.committed.update(ids)

    def _send(self, at: float, records: list[bytes]) -> None:
        for value in records:
            self._producer.send(self.topic, value, partition=0, timestamp_ms=int(at) * 1000)

    def _records(self, number: int, now: float, ids: list[int]) -> list[bytes]:
        index = BinlogPosition("binlog.000001", number)
        transaction = _WRITER.transaction(TransactionFacts(index, int(now * 1000)))
        images = [(None, (ident, SITE, number, "by DTS 🦊")) for ident in ids]
        rows = DecodedRows(self._form.schema, Op.INSERT, list(images))
        seconds = int(now)
        return [
            transaction.begin(number, seconds=seconds, position=index),
            *transaction.rows(self._form, rows, first_id=number, seconds=seconds, position=index),
            transaction.commit(number, seconds=seconds, position=index),
        ]
