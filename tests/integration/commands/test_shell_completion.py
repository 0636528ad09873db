"""Real shells complete the names of channels that are in ZooKeeper, as somebody types them."""

import os
import pty
import shutil
import signal
import sys
from pathlib import Path

import pytest

from arbiter.zookeeper import ZooKeeperArbiter
from tests.integration.pipelines import fresh_name
from tests.waiting import eventually

pytestmark = pytest.mark.servers

BEGINNING_OF_LINE = "\x01"
SET_UP = {
    "bash": ("--norc", "--noprofile", "-i"),
    "zsh": ("--no-rcs", "-i"),
    "fish": ("--private", "--no-config", "-i"),
}
SCRIPTS = {
    "bash": 'eval "$(setl completion bash)"',
    "zsh": 'bindkey -e; autoload -U compinit; compinit -u; eval "$(setl completion zsh)"',
    "fish": "setl completion fish | source",
}


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str]):
        shell = shutil.which(name)
        assert shell, f"{name} is not installed; deploy/install dev does it"
        own: dict[str, str] = {
            "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder),
            "TERM": "xterm", "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        }  # fmt: skip
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.execve(shell, [shell, *SET_UP[name]], dict(environment, **own))
        os.set_blocking(self._terminal, False)
        self.shown = ""

    def type(self, keys):
        os.write(self._terminal, keys.encode())

    def shows(self, text):
        """Whether the screen has shown this by now."""
        while True:
            try:
                part = os.read(self._terminal, 65536)
            except (BlockingIOError, OSError):
                break
            self.shown += part.decode(errors="replace")
        assert text in self.shown, self.shown[-2000:]
        return True

    def end(self):
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)


@pytest.fixture(scope="module")
def channels(zookeeper):
    """The environment of a cluster with two channels."""
    root = f"/{fresh_name()}"
    arbiter = ZooKeeperArbiter(zookeeper.hosts, root=root, session_timeout=10)
    arbiter.start()
    for name in ("shopping", "sports"):
        arbiter.channels.put(name, {"channel": name, "pipelines": []})
    arbiter.close()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("SETL_")}
    return {**plain, "SETL_ZOOKEEPER": zookeeper.hosts, "SETL_ROOT": root}


@pytest.mark.parametrize("name", SET_UP)
def test_a_channel_is_completed(name, channels, tmp_path):
    shell = Shell(name, tmp_path, channels)
    try:
        shell.type(f"{SCRIPTS[name]}; echo rea''dy\n")
        eventually(lambda: shell.shows("ready"), 60)
        # What stands there when the key has done its work is printed, not run.
        shell.type(f"setl sho\t sh\t{BEGINNING_OF_LINE}echo 'it is: '\n")
        eventually(lambda: shell.shows("it is: setl show shopping"), 60)
    finally:
        shell.end()
