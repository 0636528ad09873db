"""Relays between real servers: MySQL, relay, Kafka, and pipelines that read what it wrote."""

import itertools
import threading
from collections import Counter
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from setl.channel.reading import parse_channel
from setl.codec.dts.header import read_header
from setl.codec.dts.relayed import relay_position_of
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import ConfigurationError
from setl.model.entry import EntryKind
from setl.run.checkpoints import checkpoint_writer
from setl.run.relay import assembly
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, rows, seven_changes
from tests.mysql_servers import is_mariadb
from tests.unit.codec.dts_records import AT, as_published
from tests.unit.formats.records import FORMATS, records_of
from tests.waiting import eventually


class Topic:
    """A topic of its own, as the target of a relay and the source of pipelines."""

    def __init__(self, broker):
        self.name = fresh_name("relayed")
        self.end = {"type": "kafka", "brokers": [broker.brokers], "topic": self.name}
        self.brokers = broker.brokers

    def source(self, **more):
        return {**self.end, "start": "earliest", **more}

    def records(self, isolation: Any = "read_committed"):
        """What is in it now, by partition, in order."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.brokers, isolation_level=isolation, check_crcs=False
        )
        try:
            positions = [
                TopicPartition(self.name, p) for p in consumer.partitions_for_topic(self.name)
            ]
            ends = consumer.end_offsets(positions)
            consumer.assign(positions)
            consumer.seek_to_beginning(*positions)
            found = {position.partition: [] for position in positions}

            def at_the_end():
                for position, records in consumer.poll(200, max_records=10_000).items():
                    found[position.partition] += records
                return all(
                    (consumer.position(position) or 0) >= ends[position] for position in positions
                )

            eventually(at_the_end, 60)
            return found
        finally:
            consumer.close(autocommit=False)

    def inserted(self, isolation: Any = "read_committed", form="dts"):
        """How often each row of `orders` was inserted."""
        counts = Counter()
        if form != "dts":
            for record in itertools.chain(*self.records(isolation).values()):
                counts.update(records_of(form).inserted(record.value))
            return counts
        codec = DtsRowCodec()
        for records in self.records(isolation).values():
            for record in records:
                # Reading all by the published schema, as other tests do, takes much longer.
                if read_header(record.value, AT).kind is EntryKind.ROWS:
                    decoded = codec.decode(record.value, ())
                    (before, after), *_ = decoded.images
                    of_orders = decoded.schema.table == "orders"
                    if of_orders and before is None and after is not None:
                        counts[after[0]] += 1
        return counts


@pytest.fixture
def topic(kafka):
    return Topic(kafka)


def relay(server, topic, *tables, name=None, **target):
    pipeline = {
        "name": "r",
        "source": {**mysql(server), "start": binlog_end(server), "heartbeat": 0},
        "target": {**topic.end, "heartbeat": 0.2, **target},
        "tables": [{"from": table} for table in tables],
    }
    return parse_channel({"channel": name or fresh_name("relay"), "pipelines": [pipeline]})


def reader(topic, server, tables, partitions=None):
    """A channel that reads a topic: one pipeline, or one for each of some partitions."""
    target, mapped = mysql(server), [{"from": tables}]
    sources = {f"p-{i}": topic.source(partition=i) for i in partitions or ()}
    pipelines = [
        {"name": name, "source": source, "target": target, "tables": mapped}
        for name, source in (sources or {"p": topic.source()}).items()
    ]
    return parse_channel({"channel": fresh_name("reader"), "pipelines": pipelines})


def is_near(behind):
    return behind is not None and behind <= 10


def insert(server, db, first, count):
    values = ", ".join(f"({i}, 'row {i}')" for i in range(first, first + count))
    execute(server, f"INSERT INTO {db}.orders (id, name) VALUES {values}")


def test_both_ways_over_kafka(servers, db, kafka, position):
    topics = Topic(kafka), Topic(kafka)
    relays = [
        position.lead(relay(server, topic, f"{db}.*"), "r").runs()
        for server, topic in zip(servers, topics, strict=True)
    ]
    a, b = servers
    tables = [{"from": f"{db}.orders"}]
    channel = parse_channel(
        {
            "channel": fresh_name("sites"),
            "pipelines": [
                {"name": "ab", "source": topics[0].source(), "target": mysql(b), "tables": tables},
                {"name": "ba", "source": topics[1].source(), "target": mysql(a), "tables": tables},
            ],
        }
    )
    ab, ba = position.lead(channel, "ab"), position.lead(channel, "ba")
    execute(
        a,
        *seven_changes(db),
    )
    insert(b, db, 1000, 3000)
    ab.applied(7)
    ba.applied(3000)
    assert rows(a, f"{db}.orders") == rows(b, f"{db}.orders")
    assert len(rows(a, f"{db}.orders")) == 3003
    # What each pipeline wrote came back over the other relay, and went no further.
    eventually(lambda: ab.figures.rows_loopback >= 3000, 60)
    eventually(lambda: ba.figures.rows_loopback >= 3, 60)
    # Heartbeats keep coming, so there is always a record or two on its way.
    eventually(lambda: all(is_near(run.figures.behind) for run in (ab, ba)), 60)
    assert (ab.figures.rows_applied, ba.figures.rows_applied) == (7, 3000)
    for running in (ab, ba, *relays):
        running.stop()


def test_every_record_is_one_of_the_published_schema(servers, db, topic, position):
    a, _ = servers
    running = position.lead(relay(a, topic, f"{db}.*"), "r").runs()
    insert(a, db, 1, 2)
    execute(
        a,
        f"UPDATE {db}.orders SET name = 'x' WHERE id = 1",
        f"ALTER TABLE {db}.orders ADD COLUMN more INT",
        f"DELETE FROM {db}.orders WHERE id = 2",
    )
    running.applied(4)
    running.stop()
    (records,) = topic.records().values()
    found = [as_published(record.value) for record in records]
    assert [r["operation"] for r in found if r["operation"] != "HEARTBEAT"] == [
        "BEGIN", "INSERT", "INSERT", "COMMIT", "BEGIN", "UPDATE", "COMMIT", "DDL",
        "BEGIN", "DELETE", "COMMIT",
    ]  # fmt: skip
    assert "HEARTBEAT" in {r["operation"] for r in found}
    begin = next(r for r in found if r["operation"] == "BEGIN")
    with a.connect() as connection:
        if is_mariadb(connection):
            assert begin["tags"]["GTID"].split("-")[0] == str(a.gtid_domain_id)
    update = next(r for r in found if r["operation"] == "UPDATE")
    assert update["objectName"] == f"{db}.orders"
    assert update["tags"]["pk_uk_info"] == '{"PRIMARY":["id"],"email":["email"]}'
    assert update["tags"]["server_id"] == str(a.server_id)
    numbers = {field["name"]: field["dataTypeNumber"] for field in update["fields"]}
    assert numbers == {
        "id": 8, "email": 253, "name": 253, "amount": 246, "payload": 253, "at": 12, "seen": 7,
        "kind": 247, "big": 8, "rate": 5,
    }  # fmt: skip
    ddl = next(r for r in found if r["operation"] == "DDL")
    assert ddl["objectName"] == db
    assert "ADD COLUMN more" in ddl["afterImages"]
    positions = [relay_position_of(record.headers) for record in records]
    orders = [position.order for position in positions if position is not None]
    assert orders == sorted(orders)
    assert len(orders) == len(records)


TURNS = "how records are delivered is Kafka's; each family has a relay that dies"


@pytest.mark.parametrize(
    ("delivery", "form"),
    [
        pytest.param("transactional", "dts", marks=pytest.mark.family("mysql", why=TURNS)),
        *(
            pytest.param("idempotent", each, marks=pytest.mark.family("mysql", why=TURNS))
            for each in FORMATS[:1]  # more records a row than DTS's, without BEGIN and COMMIT
        ),
        pytest.param("idempotent", "dts", marks=pytest.mark.family("mariadb", why=TURNS)),
        pytest.param("one_in_flight", "dts", marks=pytest.mark.family("mariadb", why=TURNS)),
    ],
)
def test_a_relay_that_dies_in_a_transaction_neither_loses_nor_repeats(
    servers, db, topic, position, delivery, form
):
    a, _ = servers
    file = relay(a, topic, f"{db}.orders", delivery=delivery, format=form)
    first = position.lead(file, "r", dies_when=lambda f: f.rows_applied > 1000).runs()
    insert(a, db, 1, 10)
    first.applied(10)
    with a.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for start in range(1000, 41_000, 1000):
            values = ", ".join(f"({i}, 'x')" for i in range(start, start + 1000))
            cursor.execute(f"INSERT INTO {db}.orders (id, name) VALUES {values}")
        connection.commit()
    assert 1000 < first.dies().rows_applied < 40_010
    second = position.lead(file, "r", nid="n2").runs()
    insert(a, db, 100, 10)
    second.applied(40_020)
    second.stop()
    counts = topic.inserted(form=form)
    assert len(counts) == 40_020
    assert set(counts.values()) == {1}


def test_what_two_leaders_wrote_without_a_fence_is_read_once(
    servers, db, topic, position, monkeypatch
):
    # What one of them stores ends the other, who may not have written everything yet.
    monkeypatch.setattr(assembly, "_STORE_SECONDS", 3600.0)
    monkeypatch.setattr(checkpoint_writer, "IDLE_SECONDS", 3600.0)
    monkeypatch.setattr(checkpoint_writer, "QUIET_SECONDS", 3600.0)
    a, b = servers
    file = relay(a, topic, f"{db}.orders", delivery="idempotent")
    former = position.lead(file, "r").runs()
    insert(a, db, 1, 10)
    former.applied(10)
    second = position.lead(file, "r", nid="n2").runs()
    for i in range(20):
        execute(a, f"UPDATE {db}.orders SET amount = {i}")
    eventually(lambda: former.figures.rows_applied >= 210, 60)
    second.applied(210)
    former.abort()
    second.stop()
    (records,) = topic.records().values()
    updates = [r for r in records if as_published(r.value)["operation"] == "UPDATE"]
    assert len(updates) == 400, "both wrote everything"
    reading = position.lead(reader(topic, b, f"{db}.orders"))
    reading.applied(210)
    eventually(lambda: reading.figures.behind == 0, 60)
    assert reading.figures.rows_applied == 210
    assert rows(a, f"{db}.orders") == rows(b, f"{db}.orders")


@pytest.mark.parametrize(
    "by",
    [
        pytest.param("table", marks=pytest.mark.family("mariadb", why="partitions are Kafka's")),
        pytest.param("key", marks=pytest.mark.family("mysql", why="partitions are Kafka's")),
    ],
)
def test_partitions_are_read_side_by_side(servers, db, topic, position, by):
    a, b = servers
    tables = range(12)  # of fewer, all may go to one partition by their names
    for server in servers:
        execute(server, *(f"CREATE TABLE {db}.t{i} (id INT PRIMARY KEY, v INT)" for i in tables))
    file = relay(a, topic, f"{db}.*", partition_by=by, partitions=3)
    relaying = position.lead(file, "r").runs()
    written = 0
    for number in range(40):
        with a.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for table in tables:
                cursor.execute(
                    f"INSERT INTO {db}.t{table} VALUES (%s, 0), (%s, 1)",
                    (number * 2, number * 2 + 1),
                )
            written += 2 * len(tables)
            connection.commit()
    execute(
        a,
        f"UPDATE {db}.t0 SET v = v + 10",
        f"DELETE FROM {db}.t1 WHERE id % 3 = 0",
        f"UPDATE {db}.t2 SET id = id + 1000",
    )
    written += 80 + 27 + 80
    relaying.applied(written)
    found = topic.records()
    assert len(found) == 3
    begun = []
    for records in found.values():
        kinds = [as_published(r.value)["operation"] for r in records]
        begun.append(kinds.count("BEGIN"))
        assert kinds.count("COMMIT") == begun[-1]
    assert sum(n > 0 for n in begun) > 1, "all went to one partition"
    file = reader(topic, b, f"{db}.*", partitions=range(3))
    reading = [position.lead(file, f"p-{i}") for i in range(3)]
    for table in tables:
        eventually(
            lambda name=f"{db}.t{table}": rows(a, name) == rows(b, name), 90, message=f"t{table}"
        )
    for running in (*reading, relaying):
        running.stop()


def test_a_topic_of_something_else_is_refused(servers, db, topic, position):
    a, _ = servers
    producer = KafkaProducer(bootstrap_servers=topic.brokers)
    producer.send(topic.name, b"something else", partition=0).get(30)
    producer.close()
    error = position.lead(relay(a, topic, f"{db}.orders"), "r").ends()
    assert isinstance(error, ConfigurationError)
    assert topic.name in str(error)


def test_an_idle_relay_keeps_its_readers_informed(servers, db, topic, position):
    a, b = servers
    position.lead(relay(a, topic, f"{db}.orders"), "r").runs()
    reading = position.lead(reader(topic, b, f"{db}.orders")).runs()
    seen = set()

    def lag_is_told_again_and_again():
        figures = reading.figures
        seen.add((figures.position, figures.lag))
        return len({position for position, lag in seen if lag is not None}) >= 3

    eventually(lag_is_told_again_and_again, 60)

    def is_told():
        figures = reading.figures
        return figures.lag is not None and figures.lag < 5 and figures.behind is not None

    eventually(is_told, 60)


def test_threads_end_with_their_runs(servers, db, topic, position):
    a, _ = servers
    before = threading.active_count()
    running = position.lead(relay(a, topic, f"{db}.orders"), "r").runs()
    running.stop()
    eventually(lambda: threading.active_count() <= before, 20)
