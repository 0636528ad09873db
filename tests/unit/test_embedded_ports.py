import socket
import subprocess
import sys

import pytest

from setl_embedded import ports
from setl_embedded.errors import EmbeddedError


def test_ports_differ_and_are_below_the_range_of_outgoing_connections():
    given = [ports.free_port() for _ in range(50)]
    assert len(set(given)) == 50
    assert all(port < 32_768 for port in given)


def test_a_port_in_use_is_not_given(monkeypatch):
    with socket.socket() as busy:
        busy.bind((ports.HOST, 0))
        busy.listen()
        port = busy.getsockname()[1]
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_LAST", port)
        with pytest.raises(EmbeddedError, match=f"between {port} and {port}"):
            ports.free_port()


def test_a_port_given_to_another_process_is_not_given(monkeypatch):
    program = (
        "import sys; from setl_embedded import ports; print(ports.free_port(), flush=True);"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        port = int(other.stdout.readline())
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_LAST", port)
        with pytest.raises(EmbeddedError):
            ports.free_port()
        other.stdin.close()
        other.wait(60)
        assert ports.free_port() == port  # its reservation ended with it
