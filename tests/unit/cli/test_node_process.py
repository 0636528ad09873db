"""What keeps a node from starting is told in one line; and what ends it in order."""

import socket
import subprocess
import sys

import pytest

from setl.cli.main import run


def test_an_http_port_that_is_taken(capsys, monkeypatch):
    monkeypatch.delenv("SETL_HTTP_TOKEN", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["relay", "--http", f"127.0.0.1:{port}", "--zookeeper", "127.0.0.1:1"]) == 2
    read_only, line = capsys.readouterr().err.splitlines()
    assert "SETL_HTTP_TOKEN is not set" in read_only
    assert line.startswith(f"Error: the HTTP interface cannot be at 127.0.0.1:{port}: Address alr")
    assert "--http" in line


_SIGNALLED = """
import os, signal, sys, threading
from types import SimpleNamespace
import setl.node.process
from setl.cli.nodes.process import run_process

class Node:
    def __init__(self, *_, **__):
        self.stopping = threading.Event()

    def stop(self):
        self.stopping.set()

    def run(self):
        os.kill(os.getpid(), signal.{number})
        print("drained" if self.stopping.wait(0.2) else "stays")

setl.node.process.NodeProcess = Node
signal.signal(signal.SIGHUP, signal.{before})
run_process(SimpleNamespace(), SimpleNamespace())
"""


@pytest.mark.parametrize(
    ("number", "before", "said"),
    [
        ("SIGTERM", "SIG_DFL", "drained"),
        ("SIGHUP", "SIG_DFL", "drained"),  # its terminal was closed
        ("SIGHUP", "SIG_IGN", "stays"),  # and it was started with nohup
    ],
)
def test_what_ends_a_node_in_order(number, before, said):
    program = _SIGNALLED.format(number=number, before=before)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=280, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr
