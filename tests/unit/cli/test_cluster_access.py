"""How commands find out that ZooKeeper is not there, and what they say."""

from contextlib import nullcontext

import pytest

from arbiter.errors import Unreachable
from setl.cli.access import cluster
from setl.cli.main import run

limits = []


class Gone:
    """An arbiter whose ZooKeeper is gone."""

    def __init__(self, *_, **__):
        self.session = self

    def problem(self):
        return "zk1:2181: Connection refused"

    def start(self, *, refused_limit):
        limits.append(refused_limit)
        raise Unreachable("no ZooKeeper server is there")

    def close(self):
        pass


@pytest.mark.parametrize("command", [("list",), ("status",), ("stop", "shop"), ("rebalance",)])
def test_a_command_waits_for_no_server_that_is_not_there(monkeypatch, capsys, command):
    monkeypatch.setattr("arbiter.zookeeper.ZooKeeperArbiter", Gone)
    monkeypatch.delenv("SETL_ZOOKEEPER", raising=False)
    limits.clear()
    assert run([*command, "--zookeeper", "zk1:2181"]) == 3
    assert capsys.readouterr().err == "Error: no ZooKeeper server is there\n"
    assert run(command) == 3
    # Who has named no server may not know which one was asked.
    assert "this is the default; --zookeeper or SETL_ZOOKEEPER" in capsys.readouterr().err
    assert limits == [3.0, 3.0]


def test_at_a_terminal_it_is_said_why_a_command_waits(monkeypatch):
    said = []
    monkeypatch.setattr("arbiter.zookeeper.ZooKeeperArbiter", Gone)
    monkeypatch.setattr(Gone, "start", lambda *_, **__: None)

    def busy(words, after):
        said.append((words(), after))
        return nullcontext()

    monkeypatch.setattr(cluster, "busy", busy)
    with cluster.connect_zookeeper("zk1:2181", "/setl"):
        pass
    assert said == [("asking ZooKeeper at zk1:2181 (zk1:2181: Connection refused)", 1.0)]
