"""All that a report of a fault needs is gathered, and no secret is."""

import re
import tomllib
from pathlib import Path

import yaml

from arbiter.values import HistoryItem
from setl.cli.inspection.doctor import EXTRAS, shown_environment
from setl.cli.main import run
from setl.error_text import HIDDEN
from tests.unit.cli.cluster_in_memory import AB, definition


def test_what_is_gathered(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("SETL_ZOOKEEPER", "zk1:2181")
    for name in ("SETL_HTTP_TOKEN", "SETL_MY_DATABASE"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("SETL_ZOOKEEPER_DIGEST", "setl:hunter2")
    file = definition()
    file["pipelines"][0]["source"]["password"] = "hunter2"
    file["pipelines"][1]["source"]["password"] = "${SHOP_PASSWORD}"
    shop.arbiter.channels.put("shop", file)
    shop.node("n1").leads(AB, lag=0.5)
    shop.arbiter.history.add(
        AB, HistoryItem(5, "n1", "first", 1e9, error="no room", error_public="fatal")
    )
    report = tmp_path / "report.yaml"
    assert shop.run("doctor", "-f", str(report)) == 0
    text = report.read_text()
    assert "hunter2" not in text
    reported = yaml.safe_load(text)
    assert reported["environment"]["SETL_ZOOKEEPER"] == "zk1:2181"
    assert reported["environment"]["SETL_HTTP_TOKEN"] == "(set)"
    assert reported["machine"]["libraries"]["pyspark"][0].isdigit()
    (warning,) = reported["warnings"]
    assert "the password of SETL_ZOOKEEPER_DIGEST goes in plain" in warning
    cluster = reported["cluster"]
    assert cluster["nodes"]["n1"]["answers"] is True
    assert cluster["channels"]["shop"]["state"] == "START"
    forth, back = cluster["channels"]["shop"]["file"]["pipelines"]
    assert (forth["source"]["password"], back["source"]["password"]) == (
        "(hidden)",
        "${SHOP_PASSWORD}",
    )
    assert cluster["pipelines"][0]["lag"] == 0.5
    assert cluster["history"][0]["error"] == "fatal"
    assert report.stat().st_mode & 0o777 == 0o600


def test_without_a_cluster_the_rest_is_there(capsys, monkeypatch):
    monkeypatch.setattr("setl.cli.inspection.doctor.joined", _refused)
    assert run(["doctor"]) == 0
    printed = capsys.readouterr()
    reported = yaml.safe_load(printed.out)
    assert reported["cluster"] == {"error": f"ZooKeeper: {HIDDEN}"}
    assert "nobody answers" in printed.err
    assert reported["warnings"] == []  # of ZooKeeper on this machine
    assert reported["machine"]["java"]
    optional = reported["machine"]["optional"]
    assert optional["otel"]["for"] == "traces of batches"
    version = optional["otel"]["opentelemetry-sdk"]
    assert version[0].isdigit() or version[0] == "n"


def test_all_extras_are_named_with_all_their_packages():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    del extras["dev"]
    names = {extra: {re.split(r"[^\w-]", p)[0] for p in extras[extra]} for extra in extras}
    assert {extra: set(packages) for extra, (_, packages) in EXTRAS.items()} == names


def _refused(*_):
    from arbiter.errors import Unreachable

    raise Unreachable("nobody answers")


def test_only_harmless_variables_show_their_value():
    given = {"SETL_ROOT": "/x", "SETL_ANYTHING": "y", "JAVA_HOME": "/j", "PATH": "p", "PASS": "q"}
    assert shown_environment(given) == {
        "SETL_ROOT": "/x", "SETL_ANYTHING": "(set)", "JAVA_HOME": "/j",
    }  # fmt: skip
