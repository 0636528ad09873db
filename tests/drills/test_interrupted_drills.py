"""`setl drill` that somebody ends from outside, as a supervisor does."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.waiting import eventually

LIMIT = 60


@pytest.mark.servers
@pytest.mark.timeout(4 * LIMIT)
def test_its_servers_end_with_it(tmp_path):
    setl = Path(sys.executable).with_name("setl")
    command = (setl, "drill", "oracle", "--adapters", "--minutes", "9", "--folder", tmp_path)
    drill = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path)
    try:
        servers = eventually(lambda: _both_servers(psutil.Process(drill.pid)), LIMIT)
        drill.terminate()
        assert drill.wait(LIMIT) == 130
    finally:
        drill.kill()
    eventually(lambda: not [server for server in servers if server.is_running()], LIMIT)


def _both_servers(drill):
    """Source and replica, once they take connections; installing one starts others before it."""
    listening = []
    for child in drill.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.net_connections("tcp"):
                listening.append(child)
    return listening if len(listening) >= 2 else []
