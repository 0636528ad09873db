"""A node does not start with a token that strangers guess."""

import pytest

from setl.cli.main import run
from setl.cli.nodes.process import refuse_weak


@pytest.mark.parametrize("command", ["node", "relay"])
@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("open-sesame-471", "fewer than 16 characters"),
        ("x", "fewer than 16 characters"),
        (" ", "fewer than 16 characters"),
        ("change-me", "still that of the example"),
        ("change-me-token-of-the-example", "still that of the example"),
        ("CHANGEME-and-more-and-more", "still that of the example"),
    ],
)
def test_it_is_refused_at_start(monkeypatch, capsys, command, token, why):
    monkeypatch.setenv("SETL_HTTP_TOKEN", token)
    assert run([command, "--zookeeper", "127.0.0.1:1"]) == 2
    reported = capsys.readouterr().err
    assert "SETL_HTTP_TOKEN" in reported
    assert why in reported
    assert "openssl rand -hex 32" in reported
    assert len(token) < 3 or token not in reported


@pytest.mark.parametrize("token", ["", "open-sesame-4711", "a" * 64])
def test_others_are_taken(token):
    refuse_weak(token)
