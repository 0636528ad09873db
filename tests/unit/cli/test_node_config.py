"""A node's configuration: file, environment, command line; all mistakes at once."""

import pytest
import yaml

from setl import resources
from setl.channel.text.problems import ChannelFileError
from setl.cli.main import run
from setl.cli.nodes.config import NodeConfig, read_config

WRONG = """\
htp: 0.0.0.0:80
http: here
log_level: LOUD
session_timeout: 0
spark_conf: {spark.driver.memory: 2}
"""


def test_all_mistakes_are_reported_at_once(tmp_path):
    file = tmp_path / "node.yaml"
    file.write_text(WRONG)
    environment = {"SETL_LOG_FORMAT": "xml", "SETL_HTTP": "0.0.0.0:99999", "SETL_LOG_LEVEL": "info"}
    with pytest.raises(ChannelFileError) as caught:
        read_config(file, environment)
    assert [str(problem) for problem in caught.value.problems] == [
        "htp: is an unknown key; did you mean `http`? (line 1)",
        "http: must be HOST:PORT, such as 0.0.0.0:8080, not `here` (line 2)",
        "log_level: must be `DEBUG`, `INFO`, `WARNING` or `ERROR`, not `LOUD` (line 3)",
        "session_timeout: must be at least 1, not 0 (line 4)",
        "spark_conf.spark.driver.memory: must be text (put it in quotes), not 2 (line 5)",
        "SETL_HTTP: must be HOST:PORT, such as 0.0.0.0:8080, not `0.0.0.0:99999`",
        "SETL_LOG_FORMAT: must be `text` or `json`, not `xml`",
    ]


@pytest.mark.parametrize("text", ["", "- a list\n", "not: [closed\n"])
def test_what_is_no_configuration(tmp_path, text, capsys):
    file = tmp_path / "node.yaml"
    file.write_text(text)
    assert run(["node", "--config", str(file), "--print-config"]) == 2
    reported = capsys.readouterr().err
    assert "node.yaml has 1 mistake" in reported
    assert "channel" not in reported


def printed(capsys, *arguments, status=0):
    assert run([*arguments, "--print-config"]) == status
    lines = capsys.readouterr().out.splitlines()
    return {line.partition(":")[0]: tuple(line.partition(": ")[2].split(" # ")) for line in lines}


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    tmp_path, monkeypatch, capsys
):
    file = tmp_path / "node.yaml"
    file.write_text("id: f\nzookeeper: f:1\nroot: /f\nspark_conf: {a: '1', b: '2'}\n")
    monkeypatch.setenv("SETL_ZOOKEEPER", "e:1")
    monkeypatch.setenv("SETL_ROOT", "/e")
    monkeypatch.setenv("SETL_HTTP_TOKEN", "hunter2")
    shown = printed(capsys, "node", "--config", str(file), "--root", "/c")
    said = {name: tuple(part.strip() for part in parts) for name, parts in shown.items()}
    assert said["id"] == ("f", "configuration file")
    assert said["zookeeper"] == ("e:1", "environment")
    assert said["root"] == ("/c", "command line")
    assert said["session_timeout"] == ("10.0", "default")
    assert said["spark_conf"] == ("{a: '1', b: '2'}", "configuration file")
    assert said["# secrets in the environment"] == ("SETL_HTTP_TOKEN",)


def test_what_is_printed_is_a_configuration_file(tmp_path, capsys):
    assert run(["node", "--print-config", "--spark-conf", "a=1", "--log-json"]) == 0
    file = tmp_path / "printed.yaml"
    file.write_text(capsys.readouterr().out)
    values = read_config(file, {})
    assert (values["log_format"], values["spark_conf"]) == ("json", ["a=1"])


def test_what_is_printed_says_that_alarms_are_left_out(tmp_path, capsys):
    """Else whoever goes on with the printed file tells nobody of alarms any more."""
    file = tmp_path / "node.yaml"
    file.write_text("alarms: {webhooks: [{url: 'https://alarms.example.org/hidden'}]}\n")
    assert run(["node", "--print-config", "--config", str(file)]) == 0
    shown = capsys.readouterr().out
    assert f"# `alarms` may hold secrets; take it over from {file}" in shown
    assert "hidden" not in shown
    assert run(["node", "--print-config"]) == 0
    assert "take it over" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "more", "refused"),
    [
        ("http://alarms.example.org/setl", "token: t", True),
        ("http://10.0.0.5:9000", "token: t, secret: s", True),
        ("http://${ALARM_HOST}/setl", "token: '${ALARM_TOKEN}'", True),
        ("${ALARM_URL}", "token: t", True),
        ("https://alarms.example.org/setl", "token: t", False),
        ("http://alarms.example.org/setl", "secret: s", False),  # it signs, and is not sent
        ("http://127.0.0.1:9000/setl", "token: t", False),
        ("http://[::1]:9000", "token: t", False),
        ("http://localhost", "token: t", False),
    ],
)
def test_a_token_for_a_webhook_is_not_sent_in_plain(tmp_path, url, more, refused):
    file = tmp_path / "node.yaml"
    file.write_text(f"alarms:\n  webhooks:\n  - {{url: '{url}', {more}}}\n")
    environment = {
        "ALARM_TOKEN": "hunter2",
        "ALARM_HOST": "alarms.example.org",
        "ALARM_URL": "http://alarms.example.org/hidden",
    }
    if not refused:
        assert read_config(file, environment)["alarms"].webhooks
        return
    with pytest.raises(ChannelFileError) as caught:
        read_config(file, environment)
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith(
        "alarms.webhooks[0].token: needs a `url` with https://, since it would go in plain"
    )
    assert problem.endswith(" (line 3)")
    assert "hunter2" not in problem
    assert "hidden" not in problem


def test_a_relay_takes_the_file_of_a_node(tmp_path, capsys):
    file = tmp_path / "node.yaml"
    file.write_text(resources.read_text(resources.EXAMPLES, "node.yaml"))
    shown = printed(capsys, "relay", "--config", str(file))
    assert "master" not in shown
    assert "configuration file" in shown["zookeeper"][1]


def test_the_commented_file_holds_every_key():
    text = resources.read_text(resources.EXAMPLES, "node.yaml")
    for key in NodeConfig.model_fields:
        assert f"\n{key}: " in text or f"\n# {key}:" in text, key
    loaded = yaml.safe_load(text)
    assert NodeConfig.model_validate(loaded).log_spark == "off"


def test_who_may_come_near_is_checked_in_the_file_and_on_the_command_line(tmp_path, capsys):
    file = tmp_path / "node.yaml"
    file.write_text("probes: here\nbehind: proxy.example\nhosts: a b\n")
    with pytest.raises(ChannelFileError) as caught:
        read_config(file, {"SETL_HTTP_BEHIND": "10.0.0.0/33"})
    wrong = [str(problem).partition(":")[0] for problem in caught.value.problems]
    assert wrong == ["probes", "behind", "hosts", "SETL_HTTP_BEHIND"]
    for name in ("probes", "behind", "hosts"):
        assert run(["node", f"--{name}", "a b"]) == 2
        assert f"--{name}" in capsys.readouterr().err
    said = ["--probes", "127.0.0.1:81", "--behind", "10.1.0.0/16,::1", "--hosts", "a.b,*.c"]
    shown = printed(capsys, "node", *said)
    assert [shown[name][0].strip() for name in ("probes", "behind", "hosts")] == [
        "127.0.0.1:81", "10.1.0.0/16,::1", "a.b,*.c",
    ]  # fmt: skip
