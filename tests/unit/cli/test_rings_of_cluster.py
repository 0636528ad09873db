"""`setl apply` and `setl check` look at the other channels of the cluster."""

import json

import pytest

from arbiter.errors import Denied, Unreachable
from setl.cli.main import run
from setl.systems.finding import Finding
from tests.unit.cli.cluster_in_memory import definition

# The cluster has the channel shop, whose pipelines lead from db1 to db2.
ONE_WAY = definition("back", pipelines=("p",))


@pytest.fixture
def back(tmp_path):
    """A channel file that leads back."""
    pipeline = ONE_WAY["pipelines"][0]
    turned = {**pipeline, "source": pipeline["target"], "target": pipeline["source"]}
    file = tmp_path / "back.yaml"
    file.write_text(json.dumps({**ONE_WAY, "pipelines": [turned]}))
    return file


def test_a_ring_is_refused_unless_it_is_asked_for(shop, back, capsys):
    assert shop.run("apply", str(back)) == 1
    reported = capsys.readouterr().err
    assert (
        "a change would go round for ever: back/p (db2:3306 to db1:3306), shop/ab (db1" in reported
    )
    assert "--allow-ring" in reported
    assert [c.name for c in shop.arbiter.channels.all()] == ["shop"]
    assert shop.run("apply", "--allow-ring", str(back)) == 0
    assert "warning: a change would go round" in capsys.readouterr().err
    assert len(shop.arbiter.channels.all()) == 2


def test_a_channel_is_no_ring_with_what_is_stored_of_itself(shop, back, capsys):
    shop.run("apply", "--allow-ring", str(back))
    capsys.readouterr()
    text = back.read_text().replace("s.t", "s.other")
    back.write_text(text)
    assert shop.run("apply", str(back)) == 0
    assert "warning" not in capsys.readouterr().err


def test_check_asks_the_cluster_only_where_it_is_given(shop, back, capsys, monkeypatch):
    monkeypatch.setattr("setl.operate.check.check_channel", lambda *args, **options: [])
    assert shop.run("check", str(back), "-o", "json") == 0
    assert "go round" not in capsys.readouterr().out
    assert shop.run("check", str(back), "--zookeeper", "zk:2181", "-o", "json") == 1
    [finding] = json.loads(capsys.readouterr().out)
    assert (finding["level"], finding["where"]) == ("error", "channel back")
    assert "go round" in finding["what"]


@pytest.mark.parametrize("error", [Unreachable("no contact"), Denied("not allowed")])
def test_check_says_what_the_databases_lack_though_zookeeper_does_not_answer(
    back, capsys, monkeypatch, error
):
    def refuse(*_):
        raise error

    lacking = Finding("error", "no table", "p, source db2:3306")
    monkeypatch.setattr("setl.operate.check.check_channel", lambda *args, **options: [lacking])
    assert run(["check", str(back), "--zookeeper", "zk:2181", "-o", "json"], refuse) == 1
    cluster, database = json.loads(capsys.readouterr().out)
    assert (cluster["where"], cluster["what"]) == ("ZooKeeper zk:2181", f"no answer: {error}")
    assert database["what"] == "no table"
