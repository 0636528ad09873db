"""`setl apply` never stores over a file that whoever applies has not seen."""

import json

import pytest
import yaml

from arbiter.channels import Channels
from arbiter.errors import Unreachable
from arbiter.values import ChannelState
from setl.cli.channels import stored
from setl.cli.terminal import confirmation
from setl.operate.applying import revision_of
from setl.operate.starting import Readiness
from tests.unit.cli.cluster_in_memory import definition

OURS = definition(window=7)
THEIRS = definition(window=9)


@pytest.fixture
def file(tmp_path, shop):
    """A file that differs from the stored one; shop is stopped."""
    shop.state(ChannelState.STOP)
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(OURS))
    return file


def saved(shop):
    return shop.arbiter.channels.one("shop").definition


def outcomes(shop):
    return [action.outcome for action in shop.arbiter.actions.all()]


@pytest.fixture
def at_a_terminal(monkeypatch):
    """What somebody is asked; the answer is yes, unless a test says otherwise."""
    asked = []
    for module in (stored, confirmation):
        monkeypatch.setattr(module, "has_terminal", lambda: True)
    monkeypatch.setattr(confirmation.click, "confirm", lambda text, err: not asked.append(text))
    return asked


def test_what_was_planned_is_applied_as_long_as_it_holds(shop, file, capsys):
    assert shop.run("plan", str(file), "--offline") == 0
    base = revision_of(shop.arbiter.channels.one("shop"))
    assert f"revision {base}; `setl apply {file} --base {base}`" in capsys.readouterr().out
    assert shop.run("plan", str(file), "--offline", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["base"] == base
    shop.arbiter.channels.put("shop", THEIRS)
    assert shop.run("apply", str(file), "--base", base) == 1
    found = revision_of(shop.arbiter.channels.one("shop"))
    reported = capsys.readouterr().err
    assert (
        f"the stored file of channel shop is revision {found}, and the new one was made" in reported
    )
    assert f"from revision {base}; nothing was stored" in reported
    assert f"`setl plan {file}`" in reported
    assert "`setl history --actions shop`" in reported
    assert saved(shop) == THEIRS
    assert shop.run("apply", str(file), "--base", found) == 0
    new = revision_of(shop.arbiter.channels.one("shop"))
    said = f"channel shop stored as revision {new}, in place of {found}, state STOP"
    assert said in capsys.readouterr().out
    assert outcomes(shop) == [said]


def test_a_revision_is_of_the_file_alone(shop, capsys):
    base = revision_of(shop.arbiter.channels.one("shop"))
    shop.state(ChannelState.PAUSE)
    assert revision_of(shop.arbiter.channels.one("shop")) == base
    turned = dict(reversed(saved(shop).items()))
    assert revision_of(shop.arbiter.channels.put("shop", turned)) == base
    assert shop.run("show", "shop", "--revision") == 0
    assert capsys.readouterr().out == f"{base}\n"
    assert shop.run("show", "shop") == 0
    assert capsys.readouterr().out.splitlines()[0] == f"# revision {base}"


def test_a_revision_does_not_give_a_literal_secret_away(shop):
    found = []
    for password in ("one", "two"):
        file = definition()
        file["pipelines"][0]["target"]["password"] = password
        found.append(revision_of(shop.arbiter.channels.put("shop", file)))
    assert found[0] == found[1] != revision_of(shop.arbiter.channels.put("shop", definition()))


def test_a_new_channel_is_applied_only_where_there_is_none(shop, file, capsys):
    assert shop.run("apply", str(file), "--base", "none") == 1
    assert "there is a channel shop already, of revision" in capsys.readouterr().err
    base = revision_of(shop.arbiter.channels.one("shop"))
    shop.arbiter.channels.remove(shop.arbiter.channels.one("shop"))
    assert shop.run("apply", str(file), "--base", base) == 1
    assert "there is no channel shop (any more)" in capsys.readouterr().err
    assert shop.run("plan", str(file), "--offline") == 0
    assert "--base none` stores the file if there is no channel shop" in capsys.readouterr().out
    assert shop.run("apply", str(file), "--base", "none") == 0
    assert saved(shop) == OURS


def test_what_is_stored_while_servers_are_looked_at_is_not_replaced(
    shop, file, capsys, monkeypatch
):
    shop.state(ChannelState.START)

    def looked_at(*_):
        shop.arbiter.channels.put("shop", THEIRS)
        return Readiness()

    monkeypatch.setattr("setl.operate.starting.readiness_of_file", looked_at)
    assert shop.run("apply", str(file)) == 1
    assert "nothing was stored, so that nobody's changes are lost" in capsys.readouterr().err
    assert saved(shop) == THEIRS
    assert outcomes(shop)[0].startswith("not done: the stored file of channel shop is revision")


def test_what_is_stored_while_somebody_is_asked_is_not_replaced(
    shop, file, capsys, monkeypatch, at_a_terminal
):
    def asked(*_, **__):
        shop.arbiter.channels.put("shop", THEIRS)
        return True

    monkeypatch.setattr(confirmation.click, "confirm", asked)
    assert shop.run("apply", str(file)) == 1
    assert "nothing was stored, so that nobody's changes are lost" in capsys.readouterr().err
    assert saved(shop) == THEIRS


def test_a_literal_secret_that_is_stored_meanwhile_is_not_replaced(
    shop, file, capsys, monkeypatch, at_a_terminal
):
    theirs = definition()
    theirs["pipelines"][0]["target"]["password"] = "two"
    mine = json.loads(json.dumps(theirs))
    mine["pipelines"][0]["target"]["password"] = "one"
    shop.arbiter.channels.put("shop", mine)
    monkeypatch.setattr(
        confirmation.click,
        "confirm",
        lambda *_, **__: shop.arbiter.channels.put("shop", theirs) and True,
    )
    assert shop.run("apply", str(file)) == 1
    assert "a secret that stands in the stored file of channel shop was" in capsys.readouterr().err
    assert saved(shop) == theirs


def test_a_channel_that_is_started_meanwhile_is_not_changed_unlooked_at(
    shop, file, capsys, monkeypatch, at_a_terminal
):
    def started(*_, **__):
        shop.state(ChannelState.START)
        return True

    monkeypatch.setattr(confirmation.click, "confirm", started)
    assert shop.run("apply", str(file)) == 1
    assert "channel shop was started meanwhile, and its servers" in capsys.readouterr().err
    assert saved(shop) == definition()
    shop.state(ChannelState.STOP)
    assert shop.run("apply", str(file), "--no-check") == 0
    assert shop.arbiter.channels.one("shop").state is ChannelState.START
    assert saved(shop) == OURS


def test_of_two_who_store_at_once_one_is_reported(shop, file, capsys, monkeypatch):
    """The write itself is a compare-and-set."""
    store = Channels.store

    def late(self, name, definition, seen):
        monkeypatch.undo()
        shop.arbiter.channels.put("shop", THEIRS)
        return store(self, name, definition, seen)

    monkeypatch.setattr(Channels, "store", late)
    assert shop.run("apply", str(file)) == 1
    assert "nothing was stored, so that nobody's changes are lost" in capsys.readouterr().err
    assert saved(shop) == THEIRS


def test_at_a_terminal_a_person_sees_what_changes_and_is_asked(
    shop, file, capsys, monkeypatch, at_a_terminal
):
    base = revision_of(shop.arbiter.channels.one("shop"))
    monkeypatch.setattr(confirmation.click, "confirm", lambda text, err: at_a_terminal.append(text))
    assert shop.run("apply", str(file)) == 1
    assert at_a_terminal == [f"Store this file as channel shop, in place of revision {base}?"]
    reported = capsys.readouterr()
    assert "ab: window: 16 → 7" in reported.out
    assert "nothing was done" in reported.err
    assert saved(shop) == definition()
    assert not shop.arbiter.actions.all()


@pytest.mark.parametrize("options", [("--yes",), ("--base",)])
def test_who_says_so_is_not_asked(shop, file, at_a_terminal, options):
    base = revision_of(shop.arbiter.channels.one("shop"))
    options = (*options, base) if options == ("--base",) else options
    assert shop.run("apply", str(file), *options) == 0
    assert at_a_terminal == []
    assert saved(shop) == OURS


def test_nobody_is_asked_about_what_changes_nothing(shop, file, capsys, at_a_terminal):
    file.write_text(json.dumps(definition()))
    assert shop.run("apply", str(file)) == 0
    assert at_a_terminal == []
    assert ", which it had already, state STOP" in capsys.readouterr().out
    shop.arbiter.channels.remove(shop.arbiter.channels.one("shop"))
    assert shop.run("apply", str(file)) == 0
    assert at_a_terminal == []


@pytest.mark.parametrize("command", ["apply", "plan"])
def test_a_file_that_was_only_shown_does_not_store_hidden_as_a_password(
    shop, file, capsys, command
):
    ours = definition()
    ours["pipelines"][1]["target"]["password"] = "hunter2"
    shop.arbiter.channels.put("shop", ours)
    capsys.readouterr()
    assert shop.run("show", "shop") == 0
    shown = capsys.readouterr().out
    assert yaml.safe_load(shown)["pipelines"][1]["target"]["password"] == "(hidden)"
    file.write_text(shown)
    assert shop.run(command, str(file)) == 2
    assert "pipelines[1].target.password" in (reported := capsys.readouterr().err)
    assert "(hidden) stands for a secret that is not shown; write ${NAME} instead" in reported
    assert saved(shop) == ours


def test_an_answer_that_did_not_come_is_no_refusal(shop, file, capsys, monkeypatch):
    def silent(*_):
        raise Unreachable("no answer in time")

    monkeypatch.setattr(Channels, "store", silent)
    assert shop.run("apply", str(file)) == 3
    assert outcomes(shop) == ["not done: no answer in time"]


def test_a_channel_that_cannot_be_read_is_stored_again(shop, file, capsys, at_a_terminal):
    shop.cluster.put("/setl/channels/shop", b"\xff")
    assert shop.run("apply", str(file)) == 0
    assert "what the cluster keeps cannot be compared" in capsys.readouterr().out
    assert len(at_a_terminal) == 1
    assert saved(shop) == OURS
