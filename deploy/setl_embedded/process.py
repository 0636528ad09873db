"""A child process with a log file, which stops when told and never outlives its parent."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from setl_embedded.errors import EmbeddedError

_LAUNCH = Path(__file__).with_name("launch.py")
_TAIL_BYTES = 4000

_Start = Callable[[], subprocess.Popen[bytes]]


class ServerProcess:
    """A running program: its pid, its log, and the ways to end it.

    Attributes:
        name: what errors call it.
        log: the file that takes its standard output and error, appended to over restarts.
    """

    def __init__(self, name: str, child: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._child = child

    @property
    def pid(self) -> int:
        """The process id, which is its process group's id too."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet; a paused one counts as running."""
        return self._child.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs; negative for the signal that ended it."""
        return self._child.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and whatever it started; nothing if it has ended."""
        if self.running:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return

    def freeze(self, timeout: float = 15.0) -> None:
        """Send SIGSTOP, and wait until no thread of the process runs any more.

        A thread on another core may answer a request before the signal reaches it.

        Raises:
            EmbeddedError: threads still run after `timeout` seconds.
        """
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + timeout
        while self.running and not all(
            map(_stands_still, Path(f"/proc/{self.pid}/task").iterdir())
        ):
            if time.monotonic() > deadline:
                raise EmbeddedError(f"process {self.pid} goes on after SIGSTOP")
            time.sleep(0.005)

    def stop(self, timeout: float = 15.0) -> bool:
        """Ask it to end, and end it by force if it has not after `timeout` seconds.

        Returns:
            Whether it ended by itself.
        """
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a paused process sees SIGTERM only once it goes on
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """End it with SIGKILL and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._child.wait(30)

    def tail(self) -> str:
        """The last lines of the log, for an error message."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read().decode(errors="replace").strip()

    def failure(self, what: str) -> EmbeddedError:
        """An error about this process, with its exit status and the end of its log."""
        status = self._child.poll()
        ended = "" if status is None else f", exit status {status}"
        return EmbeddedError(f"{self.name} {what}{ended}; end of {self.log}:\n{self.tail()}")


def spawn(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
) -> ServerProcess:
    """Start a program in a process group of its own, tied to the life of this process.

    Args:
        name: what errors call it.
        command: the program's full path and its arguments.
        log: file for its output; appended to.
        cwd: its working directory.
        environment: variables it gets in addition to those of this process.
    """
    launcher = [sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), *command]

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                launcher,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    return ServerProcess(name, _Spawner.of_this_process().run(start), log)


class _Spawner:
    """The one thread that starts children.

    Linux sends the parent-death signal when the *thread* that started the child ends, so a
    server started from a short-lived pool thread would be killed as soon as that is done.
    """

    _lock = threading.Lock()
    _current: _Spawner | None = None

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._jobs: queue.SimpleQueue[tuple[_Start, Future[subprocess.Popen[bytes]]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._work, name="embedded-spawner", daemon=True).start()

    @classmethod
    def of_this_process(cls) -> _Spawner:
        """The spawner; a new one after a fork, since threads do not survive it."""
        with cls._lock:
            if cls._current is None or cls._current.owner != os.getpid():
                cls._current = cls()
            return cls._current

    def run(self, start: _Start) -> subprocess.Popen[bytes]:
        done: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((start, done))
        return done.result()

    def _work(self) -> None:
        while True:
            start, done = self._jobs.get()
            try:
                done.set_result(start())
            except OSError as error:
                done.set_exception(error)


def _stands_still(task: Path) -> bool:
    """Whether a thread is stopped, or gone."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] in "TtZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
