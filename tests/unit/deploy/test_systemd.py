"""systemd itself judges the unit: that it can be read, and how much it lets the process do."""

import re
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from setl.cli.main import cli

FOLDER = Path(__file__).parents[3] / "deploy" / "systemd"
UNIT = FOLDER / "setl@.service"
EXPOSURE = 15  # of 100, in systemd's own count; 13 as it is


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def unit(tmp_path):
    """The unit with a command that exists, as the name of a file."""

    def write(text):
        command = tmp_path / "setl"
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
        file = tmp_path / UNIT.name
        file.write_text(text.replace("/opt/setl/bin/setl", str(command)))
        return str(file)

    return write


def verify(file):
    return run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", file)


def test_systemd_has_nothing_to_say_about_the_unit(unit):
    assert verify(unit(UNIT.read_text())) == (0, "")
    status, said = verify(unit(UNIT.read_text().replace("WatchdogSec", "WatchDogSec")))
    assert (status, "WatchDogSec" in said) == (1, True)


def test_it_exposes_little(unit):
    command = ("systemd-analyze", "security", "--offline=yes", "--no-pager")
    limit = f"--threshold={EXPOSURE}"
    assert run(*command, limit, unit(UNIT.read_text()))[0] == 0
    open_unit = re.sub(r"(?m)^(Restrict|SystemCall|Private)\w+=.*\n", "", UNIT.read_text())
    assert run(*command, limit, unit(open_unit))[0] != 0


def test_the_account_is_made(tmp_path):
    (tmp_path / "etc").mkdir()
    status, said = run("systemd-sysusers", f"--root={tmp_path}", str(FOLDER / "setl.sysusers.conf"))
    assert status == 0, said
    (account,) = (tmp_path / "etc" / "passwd").read_text().splitlines()
    name, _, _, _, _, home, shell = account.split(":")
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    parser.read(UNIT)
    service = parser["Service"]
    assert (name, home) == (service["User"], service["WorkingDirectory"])
    assert shell.endswith("nologin")


def test_the_command_is_one_of_setl(tmp_path):
    (line,) = re.findall(r"(?m)^ExecStart=(.*)", UNIT.read_text())
    words = line.split()
    assert words[:2] == ["/opt/setl/bin/setl", "%i"]
    file = tmp_path / "node.yaml"
    file.write_text((FOLDER.parent / "examples" / "node.yaml").read_text())
    for name in re.findall(r"setl@(\w+) is", UNIT.read_text()):
        command = cli.get_command(None, name)  # pyright: ignore[reportArgumentType]
        assert command is not None
        arguments = [word.replace("/etc/setl/node.yaml", str(file)) for word in words[2:]]
        context = command.make_context(name, [*arguments, "--print-config"])
        assert context.params["zookeeper"] == "127.0.0.1:2181"


def test_the_secrets_of_the_example_are_names_that_setl_knows():
    said = (FOLDER.parent.parent / "docs" / "pages").glob("*.md")
    known = "\n".join(page.read_text() for page in said)
    for name in re.findall(r"(?m)^#(SETL_\w+)=", (FOLDER / "secrets.env").read_text()):
        assert f"`{name}`" in known
