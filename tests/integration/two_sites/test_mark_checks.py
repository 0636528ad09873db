"""`setl check` finds what keeps marks from where they are looked for."""

import threading
from typing import Any

import pytest
from kafka import KafkaProducer

from setl.channel.reading import parse_channel
from setl.run.measured.figures import RunState
from setl.systems.finding import Report
from setl.systems.kafka.preflight.mark_probe import PROBE_ROW, probe_marks
from setl.systems.mysql.preflight.mark_logging import check_mark_triggers, check_replica
from setl.systems.mysql.server import Server
from setl_embedded import MySql
from tests.checking import check_channel
from tests.integration.pipelines import (
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    on_both,
    one_way,
)
from tests.loading import endpoint_of
from tests.unit.codec.dts_records import integer, record, row_record
from tests.waiting import eventually


def found(check, server):
    report = Report("here")
    with Server.opened(endpoint_of(server)) as opened:
        check(opened, report)
    return [(f.level, f.what, f.hint) for f in report.findings]


@pytest.fixture(scope="module")
def replica(site_a, another_server, tmp_path_factory):
    """A replica that logs nothing of what it replicates."""
    folder = tmp_path_factory.mktemp("replica") / "r"
    options = ("--log-slave-updates=OFF", "--replicate-wild-ignore-table=retl.%")
    with another_server(folder, "replica", server_id=104, options=options) as server:
        install_system_tables(server)
        command, word = ("MASTER", "MASTER")
        if isinstance(server, MySql):
            command, word = ("REPLICATION SOURCE", "SOURCE")
        execute(
            server,
            f"CHANGE {command} TO {word}_HOST = '{site_a.host}', {word}_PORT = {site_a.port},"
            f" {word}_USER = '{site_a.user}', {word}_PASSWORD = '{site_a.password}'",
        )
        yield server


def test_a_trigger_on_the_mark_table_is_found(servers):
    server = servers[0]
    name = fresh_name("meddle")
    assert found(check_mark_triggers, server) == []
    execute(
        server,
        f"CREATE TRIGGER retl.{name} BEFORE UPDATE ON retl.retl_mark FOR EACH ROW"
        " SET NEW.ID = NEW.ID",
    )
    [(level, what, hint)] = found(check_mark_triggers, server)
    assert level == "error"
    assert name in what
    execute(server, hint[0].removesuffix(";"))
    assert found(check_mark_triggers, server) == []


def test_a_replica_without_the_marks_of_its_primary_is_found(servers, replica):
    assert found(check_replica, servers[0]) == []
    (_, unlogged, _), (_, filtered, _) = found(check_replica, replica)
    assert "does not write to its binlog what it replicates" in unlogged
    assert filtered.startswith("replicate_wild_ignore_table keeps retl.retl_mark")


def channel(source, a, b):
    tables = [{"from": "s.t"}]
    there = {"name": "ab", "source": source, "target": mysql(b), "tables": tables}
    back = {"name": "ba", "source": mysql(b), "target": mysql(a), "tables": tables}
    return parse_channel({"channel": "shop", "pipelines": [there, back]})


@pytest.fixture
def subscription(servers, kafka):
    """A topic of its own with a record in it, as a source that names its database."""
    topic = {"type": "kafka", "brokers": [kafka.brokers], "topic": fresh_name("probed")}
    producer = KafkaProducer(bootstrap_servers=kafka.brokers)
    producer.send(topic["topic"], record("HEARTBEAT"), partition=0).get(30)
    database = {k: v for k, v in mysql(servers[0]).items() if k != "type"}
    yield producer, {**topic, "database": database}
    producer.close(0)


def probed(servers, source, seconds):
    parsed: Any = channel(source, *servers).pipelines[0].source
    report = Report("ab")
    probe_marks(parsed, parsed.database, report, seconds)
    assert not execute(servers[0], f"SELECT * FROM retl.retl_mark WHERE ID = {PROBE_ROW}")
    return [(f.level, f.what) for f in report.findings]


def test_a_subscription_without_the_mark_table_is_found(servers, subscription):
    [(level, what)] = probed(servers, subscription[1], 2)
    assert level == "error"
    assert "did not arrive" in what


def test_a_subscription_with_the_mark_table_delivers_the_row(servers, subscription):
    producer, source = subscription

    def subscribed():
        """What DTS does with the row."""
        question = f"SELECT CHANNEL_ID FROM retl.retl_mark WHERE ID = {PROBE_ROW}"
        eventually(lambda: execute(servers[0], question), 60)
        image = [integer(PROBE_ROW), integer(0)]
        columns = [("ID", 8), ("CHANNEL_ID", 3)]
        for value in (
            record("BEGIN"),
            row_record("INSERT", columns, before=None, after=image, name="retl.retl_mark"),
            record("COMMIT"),
        ):
            producer.send(source["topic"], value, partition=0)
        producer.flush()

    thread = threading.Thread(target=subscribed, daemon=True)
    thread.start()
    assert probed(servers, source, 60) == [("ok", f"marks arrive in the topic {source['topic']}")]
    thread.join(60)


def test_a_relay_needs_no_row(servers, subscription, marked, position):
    source = {**subscription[1], "topic": fresh_name("relayed")}
    topic = {k: v for k, v in source.items() if k != "database"}
    relay = position.lead(one_way(servers[0], topic, [{"from": f"{marked}.*"}]))
    eventually(lambda: relay.figures.state is RunState.RUNNING, 60)
    assert probed(servers, source, 60)[0][0] == "ok"


def test_unless_it_is_asked_for_nothing_is_written_and_that_is_said(servers, subscription):
    source = subscription[1]
    unnamed = {k: v for k, v in source.items() if k != "database"}
    for given, reported in ((source, "was not looked at"), (unnamed, "cannot be found out")):
        findings = [f for f in check_channel(channel(given, *servers)) if reported in f.what]
        assert [f.level for f in findings] == ["warning"]


marked = on_both("marks", "CREATE TABLE {db}.t (id INT PRIMARY KEY)")
"""A database with one table, on both servers."""
