"""`setl peek`, on a broker and on servers: what it prints, and that it touches nothing."""

import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from random import randrange
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata, TopicPartition

from arbiter.values import PipelineId
from setl.channel.reading import read_channel_file
from setl.cli.main import run
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.select.checkpoints.arbiter import ArbiterNotes
from setl.select.checkpoints.owner import Owner
from setl.systems.mysql.load.fence import MysqlFence
from setl.systems.mysql.stored.checkpoints import MysqlCheckpointStore
from setl.systems.registry import system_of
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    on_a,
)
from tests.loading import endpoint_of
from tests.mysql_servers import is_mariadb
from tests.unit.codec.dts_records import fixture_records, integer, record, row_record
from tests.waiting import eventually

NOT_A_RECORD = b"not a record at all " * 5
FILLER = b"\0" * 20


@pytest.fixture
def printed(capsys):
    """Runs `setl peek`; gives what it printed."""

    def peek(*arguments, status=0):
        capsys.readouterr()
        ended = run(["peek", *arguments])
        out, err = capsys.readouterr()
        assert ended == status, err
        return out if status == 0 else err

    return peek


@pytest.fixture
def objects(printed):
    """Runs `setl peek -o json`; gives the objects."""

    def peek(*arguments):
        return [json.loads(line) for line in printed(*arguments, "-o", "json").splitlines()]

    return peek


# ---- Kafka


class Records:
    """A topic of its own."""

    def __init__(self, kafka, partitions=1):
        self.brokers = kafka.brokers
        self.name = fresh_name("peek")
        with closing(KafkaAdminClient(bootstrap_servers=kafka.brokers)) as admin:
            # The times that tests give to records are of long ago; a broker would drop them.
            forever = {"retention.ms": "-1"}
            admin.create_topics([NewTopic(self.name, partitions, 1, topic_configs=forever)])
        self.address = f"kafka://{kafka.brokers}/{self.name}"

    def send(self, *values, partition=0, **more):
        with closing(KafkaProducer(bootstrap_servers=self.brokers)) as producer:
            for value in values:
                producer.send(self.name, value, partition=partition, **more)
            producer.flush()


@pytest.fixture
def topic(kafka):
    return Records(kafka)


@pytest.fixture
def fixture_topic(topic):
    topic.send(*(value for value, _ in fixture_records()))
    return topic


def numbered(*numbers):
    return [row_record("INSERT", [("id", 8)], after=[integer(n)]) for n in numbers]


def ids(found):
    return [line["after"]["id"] for line in found]


def test_the_fixture_is_printed_in_full(fixture_topic, objects):
    meanings = [meaning for _, meaning in fixture_records()]
    found = objects(fixture_topic.address, "--from", "earliest", "--all")
    assert len(found) == len(meanings)
    for offset, (line, meaning) in enumerate(zip(found, meanings, strict=True)):
        assert line["position"] == f"{fixture_topic.name}[0]@{offset}"
        assert line["operation"] == meaning["operation"]
        assert line["timestamp"] == meaning["source_timestamp"]
        assert line["record"]["position"] == meaning["position"]
        assert line.get("statement") == meaning.get("ddl")
        if "table" in meaning:
            assert line["table"] == meaning["table"]
        if "db" in meaning:
            assert line["schema"] == meaning["db"]
        if "after" in meaning:
            assert (line["before"], line["after"]) == (meaning["before"], meaning["after"])
        if meaning["operation"] == "UPDATE" and "after" in meaning:
            changed = [c for c, v in meaning["after"].items() if meaning["before"].get(c, ...) != v]
            assert line["changed"] == changed


def test_rows_and_ddl_are_shown_unless_all_is_asked_for(fixture_topic, objects):
    found = objects(fixture_topic.address, "--from", "earliest")
    assert {line["operation"] for line in found} == {"INSERT", "UPDATE", "DELETE", "DDL"}
    assert {line["table"] for line in found}.isdisjoint({"xdual"})
    marked = objects(fixture_topic.address, "--from", "earliest", "--table", "retl.*")
    assert {line["table"] for line in marked} >= {"xdual"}


def test_the_gtid_of_a_transaction_is_reported_with_its_rows(fixture_topic, objects):
    found = objects(fixture_topic.address, "--from", "earliest", "--all", "-n", "6")
    begin, *rows, commit, following = found
    assert begin["transaction"] == begin["record"]["tags"]["GTID"]
    assert {line["transaction"] for line in (*rows, commit)} == {begin["transaction"]}
    assert following["transaction"] not in (None, begin["transaction"])


def test_text_shows_each_field_before_and_after(topic, printed):
    columns = [("id", 8), ("n", 3), ("gone", 3)]
    change = row_record(
        "UPDATE",
        columns,
        before=[integer(1), integer(2), None],
        after=[integer(1), integer(3), None],
        tags={"thread_id": "5"},
        id=77,
    )
    topic.send(change, headers=[("origin", b"unit \xff")])
    head, source, tags, header, *fields = printed(topic.address).splitlines()
    assert head == f"{topic.name}[0]@0  UPDATE  shop.orders  2023-11-14T22:13:20+00:00"
    assert source.startswith("  record 77, position 72469@78, transaction 0, MySQL 8.0.28, ")
    assert tags == "  tags: thread_id=5"
    assert header == "  header origin: unit �"
    assert fields == [
        "    id    integer  1",
        "  * n     integer  2 → 3",
        "    gone  integer  NULL",
    ]


def test_bytes_that_are_no_record_are_shown_and_passed(topic, objects, printed):
    topic.send(*numbered(1), NOT_A_RECORD, FILLER, *numbered(2))
    first, broken, second = objects(topic.address)
    assert (ids([first, second]), broken["operation"]) == ([1, 2], "UNREADABLE")
    assert (broken["offset"], broken["size"]) == (1, len(NOT_A_RECORD))
    assert bytes.fromhex(broken["payload"]["hex"]) == NOT_A_RECORD
    shown = printed(topic.address, "--all")
    assert f"{topic.name}[0]@1  UNREADABLE  {len(NOT_A_RECORD)} bytes" in shown
    assert f"{topic.name}[0]@2  FILLER  {len(FILLER)} bytes" in shown


def test_without_a_position_the_last_wanted_records_are_shown(topic, objects):
    heartbeats = [record("HEARTBEAT")] * 150
    topic.send(*numbered(*range(1, 16)), *heartbeats)
    assert ids(objects(topic.address)) == list(range(6, 16))
    assert ids(objects(topic.address, "-n", "3")) == [13, 14, 15]
    assert ids(objects(topic.address, "-n", "40")) == list(range(1, 16))


def test_a_position_is_an_offset_or_a_time(topic, objects, printed):
    topic.send(
        *(
            row_record("INSERT", [("id", 8)], after=[integer(n)], sourceTimestamp=1_700_000_000 + n)
            for n in range(6)
        )
    )
    assert ids(objects(topic.address, "--from", "4")) == [4, 5]
    when = datetime.fromtimestamp(1_700_000_003, UTC).isoformat()
    assert ids(objects(topic.address, "--from", when)) == [3, 4, 5]
    assert "the topic holds 0 to 6" in printed(topic.address, "--from", "7", status=2)
    assert "not a position" in printed(topic.address, "--from", "b.000001:4", status=2)


def test_a_time_is_found_whatever_the_broker_dates_records_with(topic, objects):
    for n in range(40):
        stamp = (1_700_000_000 + n) * (1 if n % 2 else 1000)
        value = row_record(
            "INSERT", [("id", 8)], after=[integer(n)], sourceTimestamp=1_700_000_000 + n
        )
        topic.send(value, timestamp_ms=stamp)
    when = datetime.fromtimestamp(1_700_000_030, UTC).isoformat()
    assert ids(objects(topic.address, "--from", when)) == list(range(30, 40))
    late = datetime.fromtimestamp(1_700_000_100, UTC).isoformat()
    assert objects(topic.address, "--from", late) == []


def test_rows_of_sharded_tables_are_of_the_logical_one(topic, objects):
    tags = {"l_db_name": "shop", "l_tb_name": "orders"}
    value = row_record("INSERT", [("id", 8)], after=[integer(1)], name="shop_03.o_7", tags=tags)
    topic.send(value)
    (found,) = objects(topic.address, "--table", "shop.orders")
    assert (found["schema"], found["table"]) == ("shop", "orders")
    assert found["record"]["object_name"] == "shop_03.o_7"


def test_partitions_are_looked_at_together_or_one_by_one(kafka, objects, printed):
    topic = Records(kafka, partitions=3)
    for partition in (2, 0, 1):
        topic.send(*numbered(partition), partition=partition)
        time.sleep(0.005)  # Kafka dates records in milliseconds
    assert ids(objects(topic.address)) == [2, 0, 1]
    assert ids(objects(f"{topic.address}/1", "--from", "0")) == [1]
    assert "of one partition" in printed(topic.address, "--from", "0", status=2)
    assert "no partition 7" in printed(f"{topic.address}/7", status=2)
    assert "no such topic" in printed(f"{topic.address}-not", status=2)


PROGRAM = (sys.executable, "-c", "from setl.cli.main import main; main()", "peek")


def test_from_latest_waits_for_what_comes(topic):
    topic.send(*numbered(1))
    command = (*PROGRAM, topic.address, "--from", "latest", "-n", "1", "-o", "json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        number = 2
        while process.poll() is None:
            # It begins at the end that it finds, whenever that is.
            topic.send(*numbered(number))
            number += 1
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                assert number < 60
        assert process.stdout is not None
        (line,) = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert json.loads(line)["after"]["id"] >= 2


def test_it_ends_at_its_timeout_and_when_interrupted(topic, printed, monkeypatch):
    began = time.monotonic()
    assert printed(topic.address, "--from", "latest", "--timeout", "0.3") == ""
    assert time.monotonic() - began < 10
    monkeypatch.setattr("setl.cli.streams.peeked.json_line", interrupt)
    topic.send(*numbered(1))
    assert run(["peek", topic.address, "-o", "json"]) == 130


def interrupt(_):
    raise KeyboardInterrupt


def test_a_reader_that_goes_away_is_no_error(topic):
    topic.send(*numbered(*range(3000)))
    done = subprocess.run(
        f"set -o pipefail; {shlex.join(PROGRAM)} {topic.address} --from earliest | head -1",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


def test_no_offset_is_committed_and_no_group_joined(kafka, topic, objects):
    topic.send(*numbered(*range(20)))
    group, partition = fresh_name("sid"), TopicPartition(topic.name, 0)
    settings = {"bootstrap_servers": kafka.brokers, "group_id": group, "enable_auto_commit": False}
    with closing(KafkaConsumer(**settings)) as consumer:
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(7, "1700000000", -1)})
    known, unknown = f"{topic.address}?sid={group}", fresh_name("sid")
    assert ids(objects(known, "--from", "earliest")) == list(range(20))
    assert ids(objects(known, "--from", "3", "-n", "2")) == [3, 4]
    assert len(objects(f"{topic.address}?sid={unknown}")) == 10
    admin: Any
    with closing(KafkaAdminClient(bootstrap_servers=kafka.brokers)) as admin:
        offsets = admin.list_group_offsets(group)
        assert offsets[group][partition].offset == 7
        assert not admin.list_group_offsets(unknown).get(unknown)


# ---- binlog


db = on_a("peek", "CREATE TABLE {db}.t (id INT PRIMARY KEY, v VARCHAR(300), b VARBINARY(100))")


@pytest.fixture
def server_address(site_a, monkeypatch):
    monkeypatch.setenv("SETL_PEEK_PASSWORD", site_a.password)
    return f"mysql://{site_a.user}@{site_a.host}:{site_a.port}"


def position(server):
    end = binlog_end(server)
    return f"{end['file']}:{end['offset']}"


def test_a_binlog_is_printed_from_a_position(site_a, db, server_address, objects, printed):
    start = position(site_a)
    execute(
        site_a,
        f"INSERT INTO {db}.t VALUES (1, 'a', NULL), (2, 'b', x'00ff')",
        f"UPDATE {db}.t SET v = 'c' WHERE id = 2",
        f"DELETE FROM {db}.t WHERE id = 1",
        f"ALTER TABLE {db}.t ADD COLUMN w INT",
        f"INSERT INTO {db}.t VALUES (3, REPEAT('x', 250), REPEAT('y', 90), 4)",
    )
    arguments = (server_address, "--from", start, "--table", f"{db}.*")
    first, second, update, delete, ddl, last = objects(*arguments)
    assert first["after"] == {"id": 1, "v": "a", "b": None}
    assert second["after"] == {"id": 2, "v": "b", "b": {"hex": "00ff"}}
    assert first["transaction"] == second["transaction"] is not None
    assert first["position"] == second["position"] == f"{first['file']}:{first['offset']}"
    assert (update["operation"], update["changed"]) == ("UPDATE", ["v"])
    assert (update["before"]["v"], update["after"]["v"]) == ("b", "c")
    assert (delete["before"]["id"], delete["after"]) == (1, None)
    assert (ddl["operation"], ddl["statement"]) == (
        "DDL", f"ALTER TABLE {db}.t ADD COLUMN w INT",
    )  # fmt: skip
    assert last["kinds"]["w"] == "integer"
    assert abs(last["timestamp"] - time.time()) < 600
    assert ids(objects(*arguments, "-n", "2")) == [1, 2]
    shown = printed(*arguments)
    assert "  * v   text     'b' → 'c'" in shown
    assert "… (250 characters)" in shown
    assert "… (90 bytes)" in shown


def test_begin_commit_and_signs_of_life_are_shown_on_request(site_a, db, server_address, objects):
    start = position(site_a)
    execute(site_a, f"INSERT INTO {db}.t VALUES (1, 'a', NULL)")
    found = objects(server_address, "--from", start, "--all")
    assert [line["operation"] for line in found] == ["BEGIN", "INSERT", "COMMIT"]


def test_a_time_in_a_binlog_hides_what_was_before_it(site_a, db, server_address, objects):
    execute(site_a, "FLUSH BINARY LOGS")  # what other tests wrote need not be rows
    start = position(site_a)
    execute(site_a, f"INSERT INTO {db}.t VALUES (1, 'a', NULL)")
    (committed,) = {
        line["timestamp"]
        for line in objects(server_address, "--from", start, "--table", f"{db}.t")
        if line["operation"] == "INSERT"
    }
    eventually(lambda: time.time() >= committed + 1)
    execute(site_a, f"INSERT INTO {db}.t VALUES (2, 'a', NULL)")
    when = datetime.fromtimestamp(committed + 1, UTC).isoformat()
    assert ids(objects(server_address, "--from", when, "--table", f"{db}.t")) == [2]


def test_a_position_inside_a_transaction_or_purged_is_refused(site_a, db, server_address, printed):
    start = binlog_end(site_a)
    execute(site_a, f"INSERT INTO {db}.t VALUES (1, 'a', NULL)")
    inside = f"{start['file']}:{start['offset'] + 1}"
    assert "not the beginning" in printed(server_address, "--from", inside, status=2)
    printed(server_address, "--from", f"{start['file']}9:4", status=4)


def test_a_password_on_the_command_line_is_refused_and_not_repeated(printed):
    reported = printed("mysql://root:hunter2@127.0.0.1:3306", status=2)
    assert "SETL_PEEK_PASSWORD" in reported
    assert "hunter2" not in reported


@pytest.fixture
def two_pipelines(site_a, site_b, db, tmp_path, monkeypatch):
    """A channel file with the pipelines one and two, and what one's checkpoint store holds."""
    monkeypatch.setenv("SITE_A_PASSWORD", site_a.password)
    install_system_tables(site_b)
    start = binlog_end(site_a)
    source = {**mysql(site_a), "password": "${SITE_A_PASSWORD}", "start": start, "heartbeat": 0}
    ends = {"source": source, "target": mysql(site_b), "tables": [{"from": f"{db}.t"}]}
    name, file = fresh_name("channel"), tmp_path / "channel.yaml"
    # What a look must not take for its own.
    numbered = {**ends, "source": {**source, "server_id": 3_000_000_000 + randrange(10**9)}}
    pipelines = [{"name": "one", **numbered}, {"name": "two", **ends}]
    file.write_text(yaml.safe_dump({"channel": name, "pipelines": pipelines}), encoding="utf-8")
    return file


def test_a_pipelines_reader_and_checkpoint_stay_as_they_are(
    site_a, site_b, db, two_pipelines, objects
):
    """Two readers of one id end each other, so the one of the pipeline has to live on."""
    channel = read_channel_file(two_pipelines, os.environ)
    pipeline, key = channel.pipelines[0], f"{channel.channel}/one"
    source: Any = pipeline.source
    start = source.start
    position = BinlogPosition(start.file, start.offset)
    MysqlFence(endpoint_of(site_b), key, 1.0).raise_to(5, "n1")
    arbiter = MemoryArbiter(MemoryCluster())
    arbiter.channels.put(channel.channel, {})
    notes = ArbiterNotes(arbiter, PipelineId(channel.channel, "one"))
    store = MysqlCheckpointStore(endpoint_of(site_b), Owner(key, "n1", "host"), notes)
    store.store(Checkpoint(position, timestamp=12.0, rows=3), 5)
    before = system_rows(site_b), store.load()
    with closing(system_of(pipeline.source).stream(pipeline, channel.channel, "n1")) as reader:
        reader.open(position)
        read = []

        def has_read(count):
            read.extend(e for e in reader.read(100, 0.1) if e.table == "t" and e.schema == db)
            return len(read) == count

        execute(site_a, f"INSERT INTO {db}.t VALUES (1, 'a', NULL)")
        eventually(lambda: has_read(1))
        written = gtids(site_a)
        assert ids(objects(f"{two_pipelines}:one", "--from", str(position), "--table", "t")) == [1]
        assert gtids(site_a) == written
        execute(site_a, f"INSERT INTO {db}.t VALUES (2, 'a', NULL)")
        eventually(lambda: has_read(2))
    assert (system_rows(site_b), store.load()) == before


def gtids(server):
    """Those of all that was ever written; a MariaDB's binlog grows a little by itself, too."""
    with server.connect() as connection, connection.cursor() as cursor:
        known = "gtid_binlog_pos" if is_mariadb(connection) else "gtid_executed"
        cursor.execute(f"SELECT @@GLOBAL.{known}")
        return cursor.fetchone()[0]


def system_rows(server):
    tables = [name for (name,) in execute(server, "SHOW TABLES FROM retl")]
    return {name: execute(server, f"SELECT * FROM retl.{name}") for name in tables}


def test_a_file_with_several_pipelines_needs_one_named(two_pipelines, printed):
    assert f"write one of {two_pipelines}:one" in printed(str(two_pipelines), status=2)
    assert "has no pipeline 'three'" in printed(f"{two_pipelines}:three", status=2)
    reported = printed(f"{two_pipelines}:one", "--target", status=2)
    assert "the pipeline one writes no records" in reported


def test_what_is_in_transactions_that_were_not_committed_is_not_waited_for(topic, objects):
    settings = {"bootstrap.servers": topic.brokers, "transactional.id": topic.name}
    producer = Producer(settings)
    producer.init_transactions(30)
    for values, end in (
        (numbered(1, 2), producer.commit_transaction),
        (numbered(3), producer.abort_transaction),
        (numbered(4), producer.commit_transaction),
        (numbered(5), producer.abort_transaction),
    ):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic.name, value, partition=0)
        producer.flush()
        end(30)
    assert ids(objects(topic.address, "--from", "earliest")) == [1, 2, 4]
    assert ids(objects(topic.address, "-n", "2")) == [2, 4]
