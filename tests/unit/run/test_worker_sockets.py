"""Where the sockets between the JVM and Python processes are."""

from __future__ import annotations

import stat
from pathlib import Path

from setl.run.worker_sockets import worker_sockets


def test_sockets_are_where_nobody_else_can_enter() -> None:
    settings = worker_sockets(Path("/tmp"))
    folder = Path(settings["spark.python.unix.domain.socket.dir"])
    assert settings["spark.python.unix.domain.socket.enabled"] == "true"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_where_a_path_would_be_too_long_there_are_none(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    assert worker_sockets(deep) == {}
    assert not list(deep.iterdir())
