"""A first configuration is written, whole and right as it is."""

import json

import pytest
import yaml

from setl.cli.main import run


@pytest.mark.parametrize(
    ("kind", "name"),
    [("two-sites", "shop.yaml"), ("search", "shop-search.yaml"), ("relay", "shop-relay.yaml")],
)
def test_what_is_written_passes_the_check(kind, name, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "new" / "folder"
    assert run(["init", str(folder), "--channel", kind]) == 0
    assert name in capsys.readouterr().out
    text = (folder / name).read_text()
    assert "deploy/" not in text
    assert "$schema=channel.schema.json" in text
    assert json.loads((folder / "channel.schema.json").read_text())["title"] == "setl channel"
    assert yaml.safe_load((folder / "node.yaml").read_text())["root"] == "/setl"
    for variable in ("SHOP_A_PASSWORD", "SHOP_B_PASSWORD", "SHOP_KAFKA_PASSWORD"):
        monkeypatch.setenv(variable, "x")
    assert run(["check", "--offline", str(folder / name)]) == 0
    assert run(["relay", "--config", str(folder / "node.yaml"), "--print-config"]) == 0


def test_a_unit_names_this_installation(tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    monkeypatch.setattr("sys.executable", str(python))
    assert run(["init", str(tmp_path / "first"), "--systemd"]) == 0
    assert "ExecStart=/opt/setl/bin/setl %i" in (tmp_path / "first/setl@.service").read_text()
    python.with_name("setl").touch()
    folder = tmp_path / "etc"
    assert run(["init", str(folder), "--systemd"]) == 0
    unit = (folder / "setl@.service").read_text()
    assert f"ExecStart={python.parent}/setl %i --config {folder}/node.yaml\n" in unit
    assert f"EnvironmentFile=-{folder}/secrets.env\n" in unit
    assert (folder / "secrets.env").stat().st_mode & 0o777 == 0o600
    assert (folder / "setl.sysusers.conf").is_file()


def test_nothing_is_written_over(tmp_path, capsys):
    (tmp_path / "shop.yaml").write_text("mine")
    assert run(["init", str(tmp_path)]) == 1
    assert "shop.yaml already; --force writes over it" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["shop.yaml"]
    assert (tmp_path / "shop.yaml").read_text() == "mine"
    assert run(["init", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "shop.yaml").read_text() != "mine"


def test_a_further_channel_leaves_the_configuration_of_nodes_alone(tmp_path, capsys):
    assert run(["init", str(tmp_path)]) == 0
    (tmp_path / "node.yaml").write_text("mine")
    capsys.readouterr()
    assert run(["init", str(tmp_path), "--channel", "search"]) == 0
    assert "node.yaml was there, and stays as it is" in capsys.readouterr().out
    assert (tmp_path / "shop-search.yaml").is_file()
    assert (tmp_path / "node.yaml").read_text() == "mine"
    assert run(["init", str(tmp_path), "--channel", "search", "--force"]) == 0
    assert (tmp_path / "node.yaml").read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--to", "mysql://u@db2"), "--to needs --from"),
        (("--from", "mysql://u@db1/s", "--channel", "search"), "leave --channel out"),
        (("--from", "elasticsearch://s"), "from which setl cannot read changes"),
        (("--from", "mysql://u:hunter2@db1/s"), "has a password in it"),
        (("--from", "mysql://u@db1/s"), "the environment variable S_SOURCE_PASSWORD is not set"),
    ],
)
def test_what_it_cannot_look_at(arguments, what, tmp_path, capsys):
    assert run(["init", str(tmp_path), *arguments]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert "hunter2" not in said
    assert list(tmp_path.iterdir()) == []
