"""Topics for tests of a relay, and what their readers see, through a client of its own."""

import time
import uuid

from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from setl.channel.fields.kafka_endpoints import KafkaTarget
from setl.codec.dts.relayed import HEADER, LAST, RelayPosition, RelayTransaction
from setl.systems.kafka.relay.log import KafkaRelayLog
from tests.memory_log import Stored


def position(number, ordinal=LAST):
    """The place of one transaction's record; grows with `number`."""
    return RelayPosition(RelayTransaction(1, "binlog.000001", number), ordinal)


class RelayTopic:
    """A topic of its own on a broker, written by leaders of one relay."""

    def __init__(self, brokers, delivery="transactional", partitions=1):
        self.brokers = brokers
        self.delivery = delivery
        self.partitions = partitions
        self.name = f"relay-{uuid.uuid4().hex[:12]}"
        self.logs = []

    def target(self, **more):
        more = {
            "type": "kafka",
            "brokers": [self.brokers],
            "topic": self.name,
            "partitions": self.partitions,
            "partition_by": "table" if self.partitions > 1 else "order",
            "delivery": self.delivery,
            **more,
        }
        return KafkaTarget.model_validate(more)

    def make(self, config):
        """Make the topic before a relay does."""
        admin = AdminClient({"bootstrap.servers": self.brokers})
        new = NewTopic(self.name, self.partitions, config=config)
        admin.create_topics([new], request_timeout=60)[self.name].result()

    def log(self, limit=15.0, **more):
        self.logs.append(KafkaRelayLog(self.target(**more), f"setl/{self.name}", limit=limit))
        return self.logs[-1]

    def size(self):
        """How many offsets the broker has given out, also to records that nobody is shown."""
        consumer = KafkaConsumer(bootstrap_servers=self.brokers)
        try:
            positions = [TopicPartition(self.name, number) for number in range(self.partitions)]
            return sum(consumer.end_offsets(positions).values())
        finally:
            consumer.close()

    def read(self, partition=0, timeout=60.0):
        """Everything that readers of committed records see."""
        where, found, deadline = (
            TopicPartition(self.name, partition),
            [],
            time.monotonic() + timeout,
        )
        consumer = KafkaConsumer(
            bootstrap_servers=self.brokers,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=8 << 20,
        )
        try:
            consumer.assign([where])
            end = consumer.end_offsets([where])[where]
            while (consumer.position(where) or 0) < end:
                assert time.monotonic() < deadline, f"only {len(found)} records before {end}"
                for record in consumer.poll(200).get(where, []):
                    header = dict(record.headers).get(HEADER, b"")
                    found.append(Stored(record.value, header, record.key, record.timestamp))
        finally:
            consumer.close()
        return found

    def close(self):
        for log in self.logs:
            log.close()
