"""A pipeline from a topic of DTS records: a full load, then changes, into MySQL."""

import json
import time

import pytest
from kafka import KafkaProducer

from setl.channel.reading import parse_channel
from setl.channel.relations.mark_ids import channel_mark_id
from setl.model.checkpoint import Checkpoint
from tests.integration.kafka.test_kafka_replaced import remake
from tests.integration.pipelines import execute, fresh_name, install_system_tables, mysql, site
from tests.unit.codec.dts_records import character, integer, record, row_record
from tests.waiting import eventually

COLUMNS = [("id", 8), ("name", 253)]
LOADED = 2000


@pytest.fixture(scope="module")
def running(spark):
    with site(spark) as position:
        yield position


@pytest.fixture
def target(site_b):
    install_system_tables(site_b)
    schema = fresh_name("dts")
    execute(
        site_b,
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.orders (id INT PRIMARY KEY, name VARCHAR(50))",
        f"INSERT INTO {schema}.orders VALUES (1, 'was here before'), (2, 'was here before')",
    )
    return site_b, schema


class Stream:
    def __init__(self, brokers, schema):
        self.brokers, self.schema, self.name = brokers, schema, fresh_name("dts")
        self.begin()

    def begin(self):
        """Write to whatever topic has the name now."""
        self.producer = KafkaProducer(bootstrap_servers=self.brokers, linger_ms=5)

    def made_anew(self):
        """From now on this is another topic of the same name, empty."""
        self.producer.close()
        remake(self.brokers, self.name)
        self.begin()

    def row(self, operation, key, name="", part=0, **header):
        """A row of one of the parts that the table is split into."""
        image = [integer(key), character(name.encode())]
        self.send(
            row_record(
                operation,
                COLUMNS,
                before=image if operation in ("UPDATE", "DELETE") else None,
                after=None if operation == "DELETE" else image,
                name=f"{self.schema}_{part:04}.orders_x{part}",
                source={"sourceType": "DRDS", "version": ""},
                tags={
                    "l_db_name": self.schema,
                    "l_tb_name": "orders",
                    "pk_uk_info": '{"PRIMARY":["id"]}',
                },
                **header,
            )
        )

    def mark(self, number):
        columns = [("ID", 8), ("CHANNEL_ID", 3)]
        image = [integer(1), integer(number)]
        self.send(row_record("UPDATE", columns, before=image, after=image, name="retl.retl_mark"))

    def transaction(self, *rows, mark=None):
        self.send(record("BEGIN"))
        if mark is not None:
            self.mark(mark)
        for row in rows:
            self.row(*row)
        self.send(record("COMMIT"))

    def insert_at(self, key, seconds):
        """A transaction that was committed at a time."""
        self.send(record("BEGIN", sourceTimestamp=seconds))
        self.row("INSERT", key, f"row {key}", sourceTimestamp=seconds)
        self.send(record("COMMIT", sourceTimestamp=seconds))

    def send(self, *values):
        for value in values:
            self.producer.send(self.name, value, partition=0)


@pytest.fixture
def stream(kafka, target):
    made = Stream(kafka.brokers, target[1])
    yield made
    made.producer.close(0)


def channel(stream, target, **more):
    server, schema = target
    tables = [{"from": f"{schema}.orders", "to": f"{schema}.orders"}]
    source = {
        "type": "kafka", "brokers": [stream.brokers], "topic": stream.name, "start": "earliest",
    }  # fmt: skip
    pipeline = {"name": "p", "source": source, "target": mysql(server), "tables": tables, **more}
    return parse_channel(
        {"channel": fresh_name("channel"), "mark_id": 4711, "pipelines": [pipeline]}
    )


def test_a_full_load_of_a_split_table_and_changes_after_it(running, stream, target):
    server, schema = target
    for key in range(1, LOADED + 1):
        stream.row("INIT", key, "loaded", part=key % 4)
    stream.producer.flush()
    file = channel(stream, target, batch_rows=300)
    run = running.lead(file)
    run.applied(LOADED, 120)
    run.stop()
    # Without any COMMIT, the checkpoint has left the beginning of the load behind.
    of_run = f"WHERE pipeline = '{file.channel}/p'"
    ((stored,),) = execute(server, f"SELECT checkpoint FROM retl.setl_checkpoint {of_run}")
    assert Checkpoint.from_json(json.loads(stored)).resume.order[1] > LOADED - 600
    own = channel_mark_id(file)
    assert own is not None
    stream.transaction(("UPDATE", 7, "changed", 3), ("DELETE", 8, "", 0), mark=None)
    stream.transaction(("UPDATE", 9, "echo", 1), mark=own)
    stream.row("INIT", 3, "loaded again", part=3)
    stream.transaction(("INSERT", 9001, "new", 1))
    stream.producer.flush()
    again = running.lead(file)
    again.applied(LOADED + 4)
    again.stop()
    rows = dict(execute(server, f"SELECT id, name FROM {schema}.orders"))
    expected = dict.fromkeys(range(1, LOADED + 1), "loaded")
    del expected[8]
    assert rows == expected | {7: "changed", 3: "loaded again", 9001: "new"}
    eventually(lambda: again.figures.rows_total == LOADED + 4)


def test_changes_that_look_like_new_rows_are_right(running, stream, target):
    """A run of records counts as new rows if its first one is; the others may be anything."""
    server, schema = target
    expected = {1: "was here before", 2: "was here before"}
    for new, name in ((100, "older"), (600, "newer")):
        rows = [("INSERT", new + n, name * 8) for n in range(480)]
        rows += [("UPDATE", 100 + n, f"{name}, changed") for n in range(100)]
        rows += [("DELETE", 100 + n, "") for n in range(90, 110)]
        stream.transaction(*rows)
        for operation, key, value in rows:
            expected[key] = value
            if operation == "DELETE":
                del expected[key]
    stream.producer.flush()
    # They are one load, since the first batch ends behind its thousandth row.
    run = running.lead(channel(stream, target, batch_wait=60, rows_per_task=100))
    run.applied(1200)
    assert dict(execute(server, f"SELECT id, name FROM {schema}.orders")) == expected
    assert run.figures.loads == 1


def test_what_another_cluster_delivers_again_is_counted(running, stream, target):
    server, schema = target
    # Of today: brokers drop records whose own times are older than a week.
    base = int(time.time()) - 7200
    for key in range(100, 120):
        stream.insert_at(key, base + 30 * key)
    stream.producer.flush()
    file = channel(stream, target)
    run = running.lead(file)
    run.applied(20)
    run.stop()
    assert run.figures.rows_redelivered == 0
    # Offsets mean something else in it, so reading goes on a minute before the last commit time.
    stream.made_anew()
    for key in range(105, 123):
        stream.insert_at(key, base + 30 * key)
    stream.producer.flush()
    again = running.lead(file)
    eventually(lambda: execute(server, f"SELECT 1 FROM {schema}.orders WHERE id = 122"), 60)
    again.stop()
    eventually(lambda: again.figures.rows_applied == again.figures.rows_redelivered + 3)
    assert again.figures.rows_redelivered in (2, 3)
    expected = {key: f"row {key}" for key in range(100, 123)}
    rows = dict(execute(server, f"SELECT id, name FROM {schema}.orders WHERE id >= 100"))
    assert rows == expected
