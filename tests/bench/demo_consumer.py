"""The consumer of the DTS subscription demo, as a person would write it with Python.

One thread fetches into a bounded queue, one decodes the records with `fastavro` and the public
schema and applies them one after another, one commits the offset every five seconds. A row change
is a statement of its own, an upsert or a delete, and a transaction of the source is one of the
target. `python -m tests.bench.demo_consumer` takes `Settings` as a line of JSON, says ``ready``,
and begins when it is told anything.
"""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import fastavro
import pymysql
from kafka import KafkaConsumer
from kafka.structs import OffsetAndMetadata, TopicPartition

_SCHEMA = Path(__file__).parents[2] / "schemas" / "Record.avsc"
_QUEUE_RECORDS = 512
_POLL_MS = 500
_COMMIT_SECONDS = 5.0


@dataclass(frozen=True)
class Settings:
    """What the script is told.

    Attributes:
        brokers: Kafka's address.
        topic: where the records are, in partition 0, from its beginning.
        group: the consumer group whose offset it commits.
        target: keyword arguments of `pymysql.connect`.
        changes: row changes after which it is done.
    """

    brokers: str
    topic: str
    group: str
    target: dict[str, Any]
    changes: int


class Consumer:
    """The three threads; the processing one is the caller's."""

    def __init__(self, settings: Settings) -> None:
        """Connect."""
        self._settings = settings
        self._place = TopicPartition(settings.topic, 0)
        self._fetching = self._client()
        self._fetching.assign([self._place])
        self._fetching.seek_to_beginning(self._place)
        self._target = pymysql.connect(charset="utf8mb4", autocommit=False, **settings.target)
        self._records: Queue[Any] = Queue(_QUEUE_RECORDS)
        self._applied = 0  # offset of the last record applied
        self._decode = decoder()

    def run(self) -> None:
        """Apply as many changes as the settings say."""
        for work in (self._fetch, self._commit):
            threading.Thread(target=work, daemon=True).start()
        upserts: dict[tuple[str, ...], str] = {}
        count = 0
        with self._target.cursor() as cursor:
            while count < self._settings.changes:
                message = self._records.get()
                if isinstance(message, Exception):
                    raise message
                record = self._decode(message.value)
                operation = record["operation"]
                if operation == "BEGIN":
                    self._target.begin()
                elif operation == "COMMIT":
                    self._target.commit()
                elif operation in {"INSERT", "UPDATE", "DELETE"}:
                    cursor.execute(*_statement(record, upserts))
                    count += 1
                self._applied = message.offset
        self._target.commit()

    def _client(self) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self._settings.brokers,
            group_id=self._settings.group,
            enable_auto_commit=False,
        )

    def _fetch(self) -> None:
        try:
            while True:
                for messages in self._fetching.poll(_POLL_MS).values():
                    for message in messages:
                        self._records.put(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other thread raises it
            self._records.put(error)

    def _commit(self) -> None:
        # A client of its own, since one serves one thread.
        client = self._client()
        client.assign([self._place])
        while True:
            time.sleep(_COMMIT_SECONDS)
            client.commit({self._place: OffsetAndMetadata(self._applied, "", -1)})


def decoder() -> Callable[[bytes], Any]:
    """Decodes a record with the public schema, whose last type is the record's."""
    *named, record = json.loads(_SCHEMA.read_text())
    known: dict[str, Any] = {}
    for declared in named:
        fastavro.parse_schema(declared, named_schemas=known)
    parsed = fastavro.parse_schema(record, named_schemas=known)
    read = partial(fastavro.schemaless_reader, writer_schema=parsed, reader_schema=None)
    return lambda value: read(io.BytesIO(value))


def _statement(record: Any, upserts: dict[tuple[str, ...], str]) -> tuple[str, tuple[Any, ...]]:
    """The statement for a row change and its values; the first column is the key."""
    name = "`" + record["objectName"].replace(".", "`.`") + "`"
    columns = [field["name"] for field in record["fields"]]
    if record["operation"] == "DELETE":
        key = _value(record["beforeImages"][0])
        return f"DELETE FROM {name} WHERE `{columns[0]}` = %s", (key,)
    text = upserts.get((name, *columns))
    if text is None:
        names = ", ".join(f"`{c}`" for c in columns)
        updates = ", ".join(f"`{c}`=VALUES(`{c}`)" for c in columns[1:])
        text = upserts[name, *columns] = (
            f"INSERT INTO {name} ({names}) VALUES ({', '.join(['%s'] * len(columns))})"
            f" ON DUPLICATE KEY UPDATE {updates}"
        )
    return text, tuple(_value(image) for image in record["afterImages"])


def _value(image: Any) -> Any:
    """A column's value, of the kinds that the benchmark has: integers and texts."""
    value = image["value"]
    return value.decode("utf-8") if isinstance(value, bytes) else int(value)


def main() -> None:
    """Run as the module says."""
    consumer = Consumer(Settings(**json.loads(sys.stdin.readline())))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    consumer.run()


if __name__ == "__main__":
    main()
