"""`setl check` names pipelines that write one target from different sources."""

import json

from setl.operate.cluster_check import shared_target_findings
from tests.unit.cli.cluster_in_memory import definition


def from_server(name, host, **table):
    """A channel that writes to the target of the cluster's channel shop."""
    made = definition(name, pipelines=("p",))
    pipeline = made["pipelines"][0]
    reads = {**pipeline["source"], "host": host}
    return {**made, "pipelines": [{**pipeline, "source": reads, "tables": [table]}]}


def test_both_pipelines_are_named():
    found = shared_target_findings(
        from_server("east", "db7", **{"from": "e.t", "to": "s.t"}),
        [from_server("west", "db8", **{"from": "s.t"})],
    )
    (finding,) = found["p"]
    assert finding.level == "warning"
    assert finding.what.startswith("east/p and west/p write s.t, each from another source")
    assert (finding.where, finding.id) == ("p, table e.t", "shared-target@s.t")


def test_what_is_written_alone_is_no_finding():
    alone = from_server("east", "db7", **{"from": "e.t"})
    assert not shared_target_findings(alone, [from_server("west", "db8", **{"from": "s.t"})])
    assert not shared_target_findings(alone)


def test_two_directions_of_a_channel_partition_nothing():
    forth = from_server("shop", "db1", **{"from": "s.t"})
    pipeline = forth["pipelines"][0]
    back = {**pipeline, "name": "b", "source": pipeline["target"], "target": pipeline["source"]}
    assert not shared_target_findings({**forth, "pipelines": [pipeline, back]})


def test_check_looks_at_the_channels_of_the_cluster(shop, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("setl.operate.check.check_pipeline", lambda check: [])
    file = tmp_path / "east.yaml"
    east = from_server("east", "db7", **{"from": "s.t"})
    file.write_text(json.dumps(east))
    shown = []
    for options in ((), ("--zookeeper", "zk:2181")):
        assert shop.run("check", str(file), *options, "-o", "json") == 0
        shown.append([each["what"] for each in json.loads(capsys.readouterr().out)])
    assert shown[0] == []
    assert [what.partition(" write ")[0] for what in shown[1]] == ["east/p and shop/ab and shop/ba"]
    # Who knows of it says so in the file, and is told nothing where the cluster is not asked.
    (pipeline,) = east["pipelines"]
    east["pipelines"] = [{**pipeline, "accept": ["shared-target@s.t"]}]
    file.write_text(json.dumps(east))
    for options, levels in (((), []), (("--zookeeper", "zk:2181"), ["accepted"])):
        assert shop.run("check", str(file), *options, "-o", "json") == 0
        assert [each["level"] for each in json.loads(capsys.readouterr().out)] == levels
