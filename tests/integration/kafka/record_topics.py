"""Topics of records that stand alone, and channels that read them."""

from confluent_kafka import Producer

from setl.channel.reading import parse_channel
from tests.integration.pipelines import fresh_name


def send(brokers, topic, *records):
    """Append records, each a key and a value."""
    producer = Producer({"bootstrap.servers": brokers})
    for record_key, value in records:
        producer.produce(topic, value, key=record_key, partition=0)
    assert producer.flush(30) == 0


def channel(kafka, topic, target, tables, format_, batch_rows=10_000, **source):
    given = {
        "type": "kafka", "format": format_, "brokers": [kafka.brokers], "topic": topic,
        "start": "earliest", **source,
    }  # fmt: skip
    pipeline = {"name": "p", "source": given, "target": target, "tables": tables}
    pipeline["batch_rows"] = batch_rows
    return parse_channel({"channel": fresh_name("channel"), "pipelines": [pipeline]})
