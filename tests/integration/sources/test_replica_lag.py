"""What a server's replicas say of how far they are behind."""

import math

import pytest

from setl.channel.file import MysqlTarget
from setl.systems.finding import Report
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.preflight.load_limits import check_replicas
from setl.systems.registry import system_of
from setl.systems.replicas import ReplicatedTarget
from setl_embedded import MySql
from setl_embedded.ports import free_port
from tests.integration.pipelines import execute, fresh_name, mysql, one_way
from tests.integration.replicas import points_at
from tests.waiting import eventually

WATCHER = fresh_name("watcher")


@pytest.fixture
def replica(site_b, another_server, tmp_path):
    """A replica of the target, from here on."""
    with another_server(tmp_path / "r", "replica", server_id=105) as server:
        points_at(server, site_b)
        is_mysql = isinstance(server, MySql)
        grant = "REPLICATION CLIENT" if is_mysql else "REPLICA MONITOR"
        execute(
            server,
            f"CREATE USER {WATCHER}@'%' IDENTIFIED BY 'Secret-1'",
            f"GRANT {grant} ON *.* TO {WATCHER}@'%'",
        )
        yield server, "REPLICA" if is_mysql else "SLAVE"


def farthest(site, *addresses):
    config = {**mysql(site), "replicas": list(addresses)}
    if addresses:
        config |= {"user": WATCHER, "password": "Secret-1"}
    system = system_of(MysqlTarget.model_validate(config))
    assert isinstance(system, ReplicatedTarget)
    return system.farthest_replica()


def checked(site, address, limit):
    """What `setl check` finds of a replica that loads are throttled by."""
    config = {**mysql(site), "replicas": [address], "user": WATCHER, "password": "Secret-1"}
    limits = {"load_limits": {"replica_lag": limit}}
    file = one_way(site, config, [{"from": "no.such", "to": "no.other"}], **limits)
    report, endpoint = Report("here"), mysql_endpoint(MysqlTarget.model_validate(config))
    check_replicas(endpoint, [address], file.pipelines[0], report)
    return [(f.level, f.code, f.what) for f in report.findings]


def test_replicas_say_how_far_behind_they_are(site_b, replica):
    server, word = replica
    there = f"{server.host}:{server.port}"

    def behind():
        found = farthest(site_b, there)
        assert found is not None
        return found

    assert farthest(site_b) is None
    assert behind().seconds == math.inf
    assert str(behind()) == f"the replica {there} does not replicate now"
    execute(server, f"START {word}")
    eventually(lambda: behind().seconds == 0, 60)
    # It waits for a lock of somebody, and falls behind.
    db = fresh_name("behind")
    execute(site_b, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY)")
    # Its database may not be there yet, which SHOW TABLES takes for an error.
    there_yet = f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{db}'"
    eventually(lambda: execute(server, there_yet), 60)
    with server.connect() as holder, holder.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {db}.t READ")
        execute(site_b, f"INSERT INTO {db}.t VALUES (1)")
        eventually(lambda: behind().seconds >= 2, 60)
        cursor.execute("UNLOCK TABLES")
    eventually(lambda: behind().seconds == 0, 60)
    nobody = f"{server.host}:{free_port()}"
    found = farthest(site_b, there, nobody)
    assert found is not None
    assert (found.address, found.seconds) == (nobody, math.inf)
    assert "cannot be asked" in str(found)
    assert checked(site_b, there, 5) == []
    execute(server, f"STOP {word}")
    ((level, code, what),) = checked(site_b, there, 5)
    assert (level, code) == ("warning", "load-never-begins")
    assert f"no load begins while the replica {there} does not replicate now" in what
    change = "REPLICATION SOURCE TO SOURCE" if word == "REPLICA" else "MASTER TO MASTER"
    execute(server, f"CHANGE {change}_DELAY = 3600", f"START {word}")
    eventually(lambda: behind().seconds == 0, 60)
    ((*_, what),) = checked(site_b, there, 5)
    assert "is kept 3600 s behind on purpose" in what
    assert checked(site_b, there, 3600) == []
    execute(server, f"STOP {word}")
    execute(site_b, f"DROP DATABASE {db}")


def test_a_server_that_is_nobodys_replica_counts_as_behind(site_b):
    execute(
        site_b,
        f"CREATE USER {WATCHER}@'%' IDENTIFIED BY 'Secret-1'",
        f"GRANT ALL ON *.* TO {WATCHER}@'%'",
    )
    found = farthest(site_b, f"{site_b.host}:{site_b.port}")
    execute(site_b, f"DROP USER {WATCHER}@'%'")
    assert found is not None
    assert str(found).endswith("replicates nothing")
