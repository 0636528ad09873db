"""Commands of other packages are found, and one that cannot be loaded spoils nothing else."""

from importlib.metadata import EntryPoint

import click
import pytest
from click.testing import CliRunner

from setl.cli import plugins


@click.command(help="Says hello.")
def hello():
    click.echo("hello")


@click.command()
def own():
    click.echo("own")


not_a_command = 7


@pytest.fixture
def declared(monkeypatch):
    """What is declared, and how often anybody asked."""
    asked = []
    points = {
        "hello": f"{__name__}:hello",
        "own": f"{__name__}:hello",
        "broken": "no_such_package_anywhere:command",
        "odd": f"{__name__}:not_a_command",
    }

    def entry_points(group, name=None):
        asked.append(name)
        return [
            EntryPoint(key, value, group) for key, value in points.items() if name in (None, key)
        ]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    monkeypatch.setitem(
        __import__("sys").modules, __name__, __import__("types").SimpleNamespace(**globals())
    )
    return asked


@pytest.fixture
def group():
    group = plugins.ExtensibleGroup("setl")
    group.add_command(own)
    return group


def invoke(group, *arguments):
    return CliRunner().invoke(group, arguments)


def test_a_declared_command_runs(group, declared):
    assert invoke(group, "hello").output == "hello\n"


def test_own_commands_win_and_ask_nobody(group, declared):
    assert invoke(group, "own").output == "own\n"
    assert declared == []


def test_help_names_all_of_them(group, declared):
    done = invoke(group, "--help")
    assert done.exit_code == 0
    assert "Says hello." in done.output
    assert "Cannot be loaded" in done.output


@pytest.mark.parametrize("name", ["broken", "odd"])
def test_a_broken_one_says_so(group, declared, name):
    done = invoke(group, name, "--anything", "else")
    assert done.exit_code == 1
    assert f"the command '{name}'" in done.output
    assert "cannot be loaded" in done.output


def test_an_unknown_command_is_unknown(group, declared):
    assert "No such command" in invoke(group, "nonsense").output
