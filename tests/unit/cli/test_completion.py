"""Shells complete commands, and names of the cluster; without one they are silent."""

import time

import pytest
from click.shell_completion import ShellComplete

from setl.cli.main import cli, run


def completed(shop, *words, connect="shop"):
    obj = shop.connect if connect == "shop" else None
    completing = ShellComplete(cli, {"obj": obj}, "setl", "_SETL_COMPLETE")
    *arguments, incomplete = words
    return [item.value for item in completing.get_completions(list(arguments), incomplete)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell, capsys):
    assert run(["completion", shell]) == 0
    assert "_SETL_COMPLETE" in capsys.readouterr().out


def test_commands_are_completed(shop):
    assert completed(shop, "sta") == ["start", "status"]
    assert completed(shop, "deadletter", "") == ["drop", "list", "retry", "show"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("status", "shop"), ["shop", "shop/ab", "shop/ba"]),
        (("start", "s"), ["shop"]),
        (("verify", "shop", "o"), ["other"]),
        (("history", ""), ["other", "other/x", "shop", "shop/ab", "shop/ba"]),
        (("signal", "restart", "shop/b"), ["shop/ba"]),
        (("wait", "sh"), ["shop", "shop/ab", "shop/ba"]),
        (("switchover", "shop/ab", "--to", ""), ["n1", "n2"]),
    ],
)
def test_names_come_from_the_cluster(shop, words, names):
    shop.put("other", pipelines=["x"])
    shop.node("n1", http=False)
    shop.node("n2", http=False)
    assert completed(shop, *words) == names


def test_without_a_cluster_nothing_is_offered_nor_said(shop, monkeypatch, capfd):
    monkeypatch.setenv("SETL_ZOOKEEPER", "127.0.0.1:1")
    began = time.monotonic()
    assert completed(shop, "status", "", connect="") == []
    assert time.monotonic() - began < 30
    assert capfd.readouterr().out == ""
