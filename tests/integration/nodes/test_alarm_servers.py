"""What servers tell of their binlogs, certificates and passwords, and alarms of real pipelines."""

import json
import time

import pytest
import yaml

from setl.alarms.facts import PipelineFacts
from setl.alarms.rules import judge_pipeline
from setl.channel.file import MysqlSource
from setl.model.position import BinlogPosition
from setl.systems.expiry import ExpiringSystem, RemovingSource
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.registry import system_of
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.two_nodes import command, write
from tests.waiting import eventually

DAY = 86_400


@pytest.fixture
def retention(site_a):
    """Sets for how many seconds the source keeps binlogs, and puts that back."""
    name = "binlog_expire_logs_seconds"
    before = execute(site_a, f"SELECT @@GLOBAL.{name}")[0][0]

    def keep(seconds):
        execute(site_a, f"SET GLOBAL {name} = {seconds}")

    yield keep
    keep(before)


def source_of(site):
    return MysqlSource.model_validate({**mysql(site), "password": site.password})


def test_a_source_reports_when_a_position_may_be_purged(site_a, retention):
    config = source_of(site_a)
    source = system_of(config)
    assert isinstance(source, RemovingSource)
    server = BinlogServer(mysql_endpoint(config))
    retention(3 * DAY)
    here = server.latest()

    def stored_of(position):
        stored = source.retention(position)
        assert stored is not None
        return stored

    stored = stored_of(here)
    assert stored.lost == ""
    assert stored.retention == 3 * DAY
    assert abs(stored.now - time.time()) < 60
    execute(site_a, "FLUSH BINARY LOGS")
    stored = stored_of(here)
    assert 3 * DAY - 120 < (stored.seconds_left() or 0) <= 3 * DAY
    assert stored_of(server.latest()).seconds_left() is None
    retention(3 * 3600)
    facts = PipelineFacts("shop", "ab", "PAUSE", retention=stored_of(here))
    [found] = [j for j in judge_pipeline(facts, time.time()) if j.holds]
    assert found.key.rule == "position"
    assert "will be purged in 2 h 59 min" in found.text or "purged in 3 h" in found.text
    retention(0)
    assert stored_of(here).seconds_left() is None
    purged = BinlogPosition(here.file.rpartition(".")[0] + ".000000", 4, origin=here.origin)
    assert "was purged" in stored_of(purged).lost


def expirations(config):
    system = system_of(config)
    assert isinstance(system, ExpiringSystem)
    return system.expirations()


def test_a_certificate_and_a_password_tell_when_they_expire(site_a):
    admin = source_of(site_a)
    version = execute(site_a, "SELECT VERSION()")[0][0].lower()
    encrypted = execute(site_a, "SHOW SESSION STATUS LIKE 'Ssl_server_not_after'")
    found = {each.what: each for each in expirations(admin)}
    if encrypted and encrypted[0][1]:
        assert 0.0 < (found["certificate"].begins or 0.0) < time.time() < found["certificate"].at
    if "mariadb" in version:
        return
    name = fresh_name("reader")
    execute(
        site_a,
        f"CREATE USER {name}@'%' IDENTIFIED BY 'Secret-1' PASSWORD EXPIRE INTERVAL 10 DAY",
    )
    try:
        reader = admin.model_copy(update={"user": name, "password": "Secret-1"})
        assert "password" not in {e.what for e in expirations(reader)}
        execute(
            site_a,
            "GRANT SELECT (user, host, password_last_changed, password_lifetime) ON mysql.user"
            f" TO {name}@'%'",
        )
        [found] = [e for e in expirations(reader) if e.what == "password"]
        assert 9.9 * DAY < found.at - time.time() <= 10 * DAY
        assert found.at - (found.begins or 0.0) == 10 * DAY
        execute(site_a, f"ALTER USER {name}@'%' PASSWORD EXPIRE NEVER")
        assert "password" not in {e.what for e in expirations(reader)}
    finally:
        execute(site_a, f"DROP USER {name}@'%'")


def alarms(cluster, channel):
    listed = json.loads(command(cluster, "alarm", "list", "-o", "json").stdout)
    return {(a["pipeline"], a["rule"]): a for a in listed if a["channel"] == channel.name}


@pytest.mark.timeout(600)
@pytest.mark.family("mariadb", why="what servers tell is tested above; nodes make alarms of it")
def test_a_stopped_pipeline_and_a_position_near_its_purge_raise_alarms(channel, cluster, retention):
    write(channel.a, channel.db, 1, 3)
    eventually(lambda: channel.count(channel.b) == 3, 60)
    # A table that is gone at the target, and an old file of the binlog that will soon be purged.
    execute(channel.b, "SET sql_log_bin = 0", f"DROP TABLE {channel.db}.t")
    write(channel.a, channel.db, 11, 1)
    eventually(lambda: channel.listed()["ab"]["state"] == "failed", 60)
    retention(3 * 3600)
    execute(channel.a, "FLUSH BINARY LOGS")

    def raised():
        known = alarms(cluster, channel)
        return {("ab", "stopped"), ("ab", "position")} <= set(known) and known

    found = eventually(raised, 400, interval=1)
    assert found["ab", "stopped"]["severity"] == "critical"
    assert channel.db in found["ab", "stopped"]["text"]
    assert "position will be purged in" in found["ab", "position"]["text"]
    assert ("ba", "stopped") not in found
    shown = command(cluster, "status", channel.name).stdout
    assert "stopped (critical) for" in " ".join(shown.split())
    done = command(cluster, "alarm", "test", check=False)
    assert done.returncode == 1
    assert "names no receiver" in done.stderr
    command(cluster, "alarm", "silence", channel.name, "--rule", "stopped", "--reason", "known")
    assert eventually(
        lambda: alarms(cluster, channel)["ab", "stopped"]["last_sent"] == "silenced", 20
    )
    is_started_again_until_the_cause_is_gone(channel, cluster)


def is_started_again_until_the_cause_is_gone(channel, cluster):
    content = yaml.safe_load(channel.file.read_text())
    content["alarms"] = {"recover_after": 1, "restart": {"times": 60, "after": 2}}
    channel.file.write_text(yaml.safe_dump(content))
    command(cluster, "apply", str(channel.file), "--no-check")
    # In vain at first: the table is still missing.
    eventually(lambda: len(restarts(cluster, channel)) >= 2, 120, interval=1)
    execute(
        channel.b,
        "SET sql_log_bin = 0",
        f"CREATE TABLE {channel.db}.t (id BIGINT PRIMARY KEY, v VARCHAR(40))",
        # The pipeline, which tries again all the time, may have written them already.
        f"REPLACE INTO {channel.db}.t VALUES (1, 'row 1'), (2, 'row 2'), (3, 'row 3')",
    )
    eventually(lambda: channel.equal() and channel.count(channel.b) == 4, 120)
    eventually(lambda: channel.listed()["ab"]["state"] == "running", 60)
    eventually(lambda: ("ab", "stopped") not in alarms(cluster, channel), 60, interval=1)


def restarts(cluster, channel):
    """What setl started again by itself, as the audit log has it."""
    done = json.loads(command(cluster, "history", "--actions", "-o", "json").stdout)
    return [a for a in done if a["what"] == "restart" and channel.name in json.dumps(a)]
