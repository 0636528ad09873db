"""Topics with the DTS records of a workload."""

from __future__ import annotations

import time
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.many_tables_workload import Change, records

_TICK_SECONDS = 0.01


def new_topic(brokers: str) -> str:
    """A topic with one partition and nothing in it; returns its name."""
    name = f"many-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    return name


def all_at_once(brokers: str, topic: str, written: list[list[Change]]) -> None:
    """Write all transactions; returns when the broker has them."""
    producer = _producer(brokers)
    for number, changes in enumerate(written, 1):
        _send(producer, topic, number, changes)
        producer.poll(0)
    producer.flush()


def at_a_rate(brokers: str, topic: str, written: list[list[Change]], rate: float) -> list[float]:
    """Write `rate` changes a second, whole transactions of them.

    Returns:
        When the broker had each change, by `time.monotonic`.
    """
    producer, began = _producer(brokers), time.monotonic()
    available: list[float] = []
    sent = 0
    for number, changes in enumerate(written, 1):
        due = began + sent / rate
        if (wait := due - time.monotonic()) > _TICK_SECONDS:
            available += [_flushed(producer)] * (sent - len(available))
            time.sleep(wait)
        _send(producer, topic, number, changes)
        sent += len(changes)
    return available + [_flushed(producer)] * (sent - len(available))


def _flushed(producer: Producer) -> float:
    producer.flush()
    return time.monotonic()


def _producer(brokers: str) -> Producer:
    return Producer({
        "bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True, "linger.ms": 1,
        "queue.buffering.max.messages": 1_000_000,
    })  # fmt: skip


def _send(producer: Producer, topic: str, number: int, changes: list[Change]) -> None:
    for value in records(number, changes):
        producer.produce(topic, value, partition=0)
