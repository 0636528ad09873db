"""What keeps a node from starting is told in one line."""

import socket

from setl.cli.main import run


def test_an_http_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["relay", "--http", f"127.0.0.1:{port}", "--zookeeper", "127.0.0.1:1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Error: the HTTP interface cannot be at 127.0.0.1:{port}: Address alr")
    assert "--http" in line
