"""A stored channel comes back as a file, and no password with it."""

import json

import yaml

from tests.unit.cli.cluster_in_memory import definition


def with_secrets():
    file = definition()
    file["pipelines"][0]["source"]["password"] = "${SHOP_PASSWORD}"
    file["pipelines"][0]["target"]["password"] = "hunter2"
    file["pipelines"][1]["target"]["password"] = "${OTHER:-hunter2}"
    return file


def test_what_was_applied_is_shown(shop, capsys):
    shop.arbiter.channels.put("shop", with_secrets())
    assert shop.run("show", "shop") == 0
    text = capsys.readouterr().out
    shown = yaml.safe_load(text)
    assert shown["pipelines"][0]["source"]["password"] == "${SHOP_PASSWORD}"
    assert shown["pipelines"][0]["target"]["password"] == "(hidden)"
    assert "hunter2" not in text
    assert list(shown) == ["channel", "pipelines"]
    shown["pipelines"][0]["target"]["password"] = "hunter2"
    shown["pipelines"][1]["target"]["password"] = "${OTHER:-hunter2}"
    assert shown == with_secrets()
    assert shop.run("show", "shop", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["channel"] == "shop"


def test_an_unknown_channel(shop, capsys):
    assert shop.run("show", "nonsense") == 2
    assert "there is no channel 'nonsense'; known: shop" in capsys.readouterr().err
