"""`setl check` and pipelines on servers that tests do not have, played by a stub.

See `tests.other_servers`: the stub refuses each statement that the server in its place refuses.
"""

from contextlib import closing

import pytest

from setl.channel.reading import parse_channel
from setl.model.position import KafkaPosition
from setl.systems.finding import Report
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.stream_retention import binlog_retention
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.locks.waits import look
from setl.systems.mysql.preflight.origin import check_tables
from setl.systems.mysql.reading.consistent_read import read_all_before
from setl.systems.mysql.replicas import farthest_replica
from setl.systems.mysql.server import Server
from setl.systems.mysql.write_stop import MysqlWriteStop
from setl.systems.pipeline_check import PipelineCheck
from tests.checking import check_channel
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.other_servers.profiles import PROFILES
from tests.other_servers.stub import OtherServer
from tests.waiting import eventually


def _each(profiles):
    return [
        pytest.param(each, id=str(each), marks=pytest.mark.family(each.family, why="it plays one"))
        for each in profiles
    ]


EACH = _each(PROFILES)
USED = _each(each for each in PROFILES if each.reads)
OF_AMAZON = _each(each for each in PROFILES if each.service)


@pytest.fixture
def played(servers):
    a, b = servers
    opened = []

    def start(profile):
        both = [OtherServer(profile, server).__enter__() for server in (a, b)]
        opened.extend(both)
        return both

    yield start
    for each in opened:
        each.__exit__()


def channel(a, b, db, **options):
    source = {**mysql(a), "start": {"load": True}, "heartbeat": 0.2}
    pipeline = {
        "name": "p", "source": source, "target": mysql(b), "tables": [{"from": f"{db}.*"}],
        **options,
    }  # fmt: skip
    return parse_channel({"channel": fresh_name("channel"), "pipelines": [pipeline]})


def endpoint(server):
    return MysqlEndpoint(server.host, server.port, server.user, server.password)


@pytest.mark.parametrize("profile", EACH)
def test_the_whole_of_check(played, db, profile):
    a, b = played(profile)
    a.hours = b.hours = "168"
    findings = [f for f in check_channel(channel(a, b, db, ddl="pass")) if f.level != "ok"]
    reported = [f.what for f in findings]
    assert a.refused == b.refused == [], reported
    if profile.reads:
        assert {f.code for f in findings} <= {"old-server"}, reported
        return
    assert [f.level for f in findings] == ["error", "error"], reported
    assert "cannot be a source: its binlog does not name columns" in reported[0]
    assert "cannot be a target" in reported[1]


@pytest.mark.parametrize("profile", USED)
def test_rows_are_loaded_and_streamed_and_schema_changes_pass(
    servers, played, position, db, profile
):
    a, b = played(profile)
    content = f"SELECT * FROM {db}.orders ORDER BY id"
    execute(servers[0], f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    position.lead(channel(a, b, db, ddl="pass", create=True)).runs()
    eventually(lambda: len(execute(servers[1], content)) == 3, 60)
    execute(
        servers[0],
        f"UPDATE {db}.orders SET name = 'x', amount = 1.5 WHERE id = 1",
        f"DELETE FROM {db}.orders WHERE id = 2",
        f"ALTER TABLE {db}.orders ADD more DATETIME(3) NULL DEFAULT '2024-02-29 01:02:03.123'",
        f"CREATE TABLE {db}.later (id INT PRIMARY KEY, at TIMESTAMP NULL)",
        f"INSERT INTO {db}.later VALUES (1, '2024-01-01 00:00:00')",
        f"INSERT INTO {db}.orders (id, name) VALUES (9, 'last')",
    )
    eventually(lambda: execute(servers[1], content) == execute(servers[0], content), 60)
    assert a.refused == b.refused == []


@pytest.mark.parametrize("profile", _each(p for p in PROFILES if not p.reads))
def test_neither_is_one_that_is_refused_ever_begun_with(servers, played, position, db, profile):
    a, b = played(profile)
    error = position.lead(channel(servers[0], b, db)).ends()
    assert f"{profile.name.split('.')[0]}" in error.message
    assert "cannot be a target" in error.message
    error = position.lead(channel(a, servers[1], db)).ends()
    assert "cannot be a source" in error.message


@pytest.mark.parametrize("profile", OF_AMAZON)
def test_what_an_operator_of_amazons_servers_is_reported_can_be_done(servers, played, db, profile):
    a, b = played(profile)
    a.variables |= {
        "binlog_row_metadata": "MINIMAL", "sync_binlog": "0", "gtid_mode": "OFF", "log_bin": "OFF",
    }  # fmt: skip
    b.variables["read_only"] = "ON"
    found = {f.code: f for f in check_channel(channel(a, b, db))}
    fixes = [hint for finding in found.values() for hint in finding.hint]
    group = f"DB {'cluster ' if profile.service == 'Aurora' else ''}parameter group"
    assert {"no-binlog", "binlog-setting", "start-too-early", "read-only"} <= set(found)
    assert not [hint for hint in fixes if "SET PERSIST" in hint or "SET GLOBAL" in hint], fixes
    assert not [hint for hint in fixes if "configuration file" in hint]
    for code in ("binlog-setting", "start-too-early", "read-only"):
        assert group in found[code].hint[-1 if code == "start-too-early" else 0]
    wanted = "Set binlog_format to ROW" if profile.service == "Aurora" else "automated backups"
    assert wanted in found["no-binlog"].hint[0]


@pytest.mark.parametrize("profile", OF_AMAZON)
@pytest.mark.parametrize(
    ("hours", "seconds", "what"),
    [
        (None, 0.0, "removes binlogs at once ('binlog retention hours' is not set)"),
        ("6", 6 * 3600.0, "removed after 6 hours"),
        ("168", 168 * 3600.0, ""),
        ("hidden", None, "may not read; it need not keep them at all"),
    ],
)
def test_how_long_amazon_stores_binlogs(played, db, profile, hours, seconds, what):
    a, b = played(profile)
    a.hours = hours
    assert BinlogServer(endpoint(a)).retention()[0] == seconds
    found = [f for f in check_channel(channel(a, b, db)) if f.code == "binlog-retention"]
    assert len(found) == bool(what)
    for finding in found:
        assert what in finding.what
        (hint,) = finding.hint
        wanted = (
            "GRANT SELECT ON mysql.rds_configuration" if hours == "hidden" else "CALL mysql.rds"
        )
        assert hint.startswith(wanted)


@pytest.mark.parametrize("profile", OF_AMAZON)
def test_a_position_that_amazon_may_purge_at_any_moment(servers, played, db, profile):
    a, _ = played(profile)
    position = BinlogServer(endpoint(a)).latest()
    execute(servers[0], "FLUSH BINARY LOGS")
    stored = binlog_retention(endpoint(a), position)
    assert stored is not None
    assert (stored.lost, stored.seconds_left()) == ("", 0.0)
    a.hours = "24"
    stored = binlog_retention(endpoint(a), position)
    assert stored is not None
    assert (stored.seconds_left() or 0) > 23 * 3600


@pytest.mark.parametrize("profile", OF_AMAZON)
def test_writes_are_stopped_in_the_parameter_group(played, profile):
    a, _ = played(profile)
    stop = MysqlWriteStop(endpoint(a))
    writes = stop.look()
    group = f"DB {'cluster ' if profile.service == 'Aurora' else ''}parameter group"
    assert (writes.stopped, group in writes.lacking, "GRANT" in writes.lacking) == (
        False,
        True,
        False,
    )
    can_pass = writes.bypass_grant.startswith("GRANT CONNECTION_ADMIN")
    assert can_pass == (profile.service == "Aurora")
    a.variables["read_only"] = "1"  # as the group has it from now on
    writes = stop.look()
    assert writes.stopped
    stop.stop()
    stop.restore(writes.settings)
    assert not a.refused


@pytest.mark.parametrize("profile", _each(p for p in PROFILES if p.reads and p.family == "mysql"))
def test_a_replica_is_asked_in_its_own_words(played, profile):
    _, b = played(profile)
    found = farthest_replica(endpoint(b), [f"{b.host}:{b.port}"])
    assert found is not None
    assert found.why == "replicates nothing"
    assert not b.refused


@pytest.mark.family("mysql", why="a MariaDB lists lock waits without it")
def test_a_target_that_cannot_list_lock_waits_says_so(servers, played):
    key = fresh_name("channel") + "/p"
    _, b = played(PROFILES[3])
    with servers[1].connect() as writer, writer.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retl.setl_writer (conn_id, pipeline, epoch, nid)"
            " VALUES (CONNECTION_ID(), %s, 1, 'n')",
            (key,),
        )
        assert look(endpoint(b), key, 1).blind == ""
        b.variables["performance_schema"] = "0"
        assert "performance_schema=OFF" in look(endpoint(b), key, 1).blind
        cursor.execute("DELETE FROM retl.setl_writer WHERE pipeline = %s", (key,))


@pytest.mark.family("mysql", why="it plays one")
@pytest.mark.parametrize("profile", _each(p for p in PROFILES if p.version[:3] == "5.7"))
def test_tables_may_be_at_a_mysql_5_7_whose_changes_come_by_way_of_kafka(
    servers, played, db, profile
):
    a, _ = played(profile)
    execute(
        servers[0],
        # As it would be there.
        f"ALTER TABLE {db}.orders CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        f"INSERT INTO {db}.orders (id, name) VALUES (1, 'a')",
    )
    database = {key: value for key, value in mysql(a).items() if key != "type"}
    kafka = {"type": "kafka", "brokers": ["k:9092"], "topic": "t", "database": database}
    file = parse_channel({
        "channel": "c",
        "pipelines": [{
            "name": "p", "source": kafka, "target": mysql(servers[1]),
            "tables": [{"from": f"{db}.orders"}],
        }],
    })  # fmt: skip
    report = Report("here")
    check = PipelineCheck(file.pipelines[0])
    with Server.opened(endpoint(a)) as server:
        server.grants()
        check_tables(check, server, report)
    reported = [each.what for each in report.findings if each.level != "ok"]
    assert [table.schema.name for table in check.tables] == [f"{db}.orders"], reported
    with closing(connect(endpoint(a))) as connection, connection.cursor() as cursor:
        ending = read_all_before(connection, KafkaPosition("t", 0, 1))
        cursor.execute(f"SELECT id FROM {db}.orders{ending}")
        assert cursor.fetchall() == ((1,),)
    assert not a.refused
