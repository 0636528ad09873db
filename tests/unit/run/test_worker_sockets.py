"""Where the sockets between the JVM and Python processes are."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

from setl.run.spark.worker_sockets import worker_sockets


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


STARTED = """
import sys
from pathlib import Path
from setl.run.spark.worker_sockets import worker_sockets
print(worker_sockets(Path(sys.argv[1]))["spark.python.unix.domain.socket.dir"], flush=True)
sys.stdin.read()
"""


def old(folder: Path) -> Path:
    """The folder as if it had been made an hour ago."""
    os.utime(folder, (folder.stat().st_atime - 3600, folder.stat().st_mtime - 3600))
    return folder


def test_a_folder_is_removed_when_its_process_was_killed_and_no_sooner() -> None:
    parent = Path("/tmp", f"s{os.getpid()}")  # pytest's own is too long for sockets
    parent.mkdir()
    (parent / "setl-stack-of-others").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        folder = old(Path(process.stdout.readline().strip()))
        (folder / "some.sock").touch()
        old(folder)
        worker_sockets(parent)
        assert folder.exists()
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        old(folder)
        worker_sockets(parent)
        assert not folder.exists()
        assert old(parent / "setl-stack-of-others").exists()
    finally:
        process.kill()
        process.wait(10)
        shutil.rmtree(parent)
