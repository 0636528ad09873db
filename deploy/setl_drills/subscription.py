"""A DTS subscription as a service delivers it: records of a table on a Kafka topic.

What stands in a record: `schemas/Record.avsc`, and Alibaba's description of the data formats of
a change tracking instance.
"""

from __future__ import annotations

import io
import threading
import time
from typing import Any, cast

import fastavro
from fastavro import parse_schema
from kafka import KafkaProducer

from setl.codec.dts.wire import published_schema

_NAMESPACE = "com.alibaba.dts.formats.avro."
_LONGLONG, _STRING, _VARCHAR = 8, 254, 253  # MySQL's column types, as a binlog numbers them
SITE = "k"
"""What rows of a subscription have in their column `site`."""
FIRST_ID = 2_000_000_000


def _record_schema() -> Any:
    *named, record = published_schema()
    known: dict[str, Any] = {}
    for declared in named:
        parse_schema(declared, named_schemas=known)
    return parse_schema(record, named_schemas=known)


_SCHEMA = _record_schema()


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
        self._table = f"{schema}.entries"
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

    def move(self, brokers: str, keep_seconds: float) -> None:
        """Go on in another cluster, whose topic begins `keep_seconds` ago; after `hold`."""
        self._brokers = brokers
        self._producer = self._connect()
        oldest = time.time() - keep_seconds
        for at, records in self._sent:
            if at >= oldest:
                self._send(at, records)
        self._producer.flush(30)
        self._lock.release()

    def _connect(self) -> Any:
        return KafkaProducer(bootstrap_servers=self._brokers, linger_ms=2)

    def _transaction(self) -> None:
        number, now = len(self._sent), time.time()
        ids = [FIRST_ID + number * 3 + place for place in range(3)]
        records = [
            _record(number, now, "BEGIN"),
            *(_record(number, now, "INSERT", self._row(ident, number)) for ident in ids),
            _record(number, now, "COMMIT"),
        ]
        self._sent.append((now, records))
        self._send(now, records)
        self._producer.flush(30)
        self.committed.update(ids)

    def _send(self, at: float, records: list[bytes]) -> None:
        for value in records:
            self._producer.send(self.topic, value, partition=0, timestamp_ms=int(at) * 1000)

    def _row(self, ident: int, seq: int) -> dict[str, Any]:
        columns = (
            ("id", _LONGLONG), ("site", _STRING), ("seq", _LONGLONG), ("note", _VARCHAR),
        )  # fmt: skip
        return {
            "objectName": self._table,
            "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'},
            "fields": [{"name": name, "dataTypeNumber": number} for name, number in columns],
            "afterImages": [_integer(ident), _text(SITE), _integer(seq), _text("by DTS 🦊")],
        }


def _integer(value: int) -> tuple[str, dict[str, Any]]:
    return (_NAMESPACE + "Integer", {"precision": 8, "value": str(value)})


def _text(value: str) -> tuple[str, dict[str, Any]]:
    return (_NAMESPACE + "Character", {"charset": "utf8mb4", "value": value.encode()})


def _record(number: int, at: float, operation: str, row: dict[str, Any] | None = None) -> bytes:
    datum: dict[str, Any] = {
        "version": 0,
        "id": number,
        "sourceTimestamp": int(at),
        "sourcePosition": f"{number}@1",
        "safeSourcePosition": f"{number}@1",
        "sourceTxid": str(number),
        "source": {"sourceType": "MySQL", "version": "8.0.28"},
        "operation": operation,
        "objectName": None,
        "processTimestamps": None,
        "tags": {},
        "fields": None,
        "beforeImages": None,
        "afterImages": None,
        "bornTimestamp": int(at),
        **(row or {}),
    }
    out = io.BytesIO()
    cast("Any", fastavro.schemaless_writer)(out, _SCHEMA, datum)
    return out.getvalue()
