"""What all servers of the stack have in common: their life from preparation to the end."""

from __future__ import annotations

import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from setl_embedded.errors import EmbeddedError
from setl_embedded.process import ServerProcess, spawn

_POLL_S = 0.05


class Server(ABC):
    """One server process on fixed ports with a private folder.

    It may be started, ended in whatever way and started again; ports and data stay. As a
    context manager it is started on entry and stopped on exit.

    Attributes:
        name: what errors and log files call it.
        folder: its data and its log; made when it is first started.
    """

    start_timeout: float = 60.0
    """Seconds from start to the first right answer; generous, for busy machines."""

    def __init__(self, folder: Path | str, name: str) -> None:
        self.folder = Path(folder).absolute()
        self.name = name
        self._process: ServerProcess | None = None

    @property
    def log(self) -> Path:
        """The file with everything the server printed."""
        return self.folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            EmbeddedError: it was never started.
        """
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether its process lives, answering or not."""
        return self._process is not None and self._process.running

    def start(self) -> Self:
        """Start it and wait until it answers.

        Raises:
            EmbeddedError: a program is missing, or it ended or did not answer in time.
        """
        self.launch()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def launch(self) -> None:
        """Start the process without waiting for it; nothing if it is running."""
        if self.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._prepare()
        self._process = spawn(self.name, self._command(), log=self.log, cwd=self.folder)

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the server answers as it should.

        Raises:
            EmbeddedError: it ended, or did not answer within `timeout` seconds.
        """
        limit = self.start_timeout if timeout is None else timeout
        process = self._started()
        deadline = time.monotonic() + limit
        while True:
            if not process.running:
                raise process.failure("ended instead of starting")
            if self.answers():
                return
            if time.monotonic() >= deadline:
                raise process.failure(f"does not answer after {limit:.0f} s")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it in good order, by force if that takes too long; nothing if it is not running."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End it at once, as a crash would; nothing if it is not running."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> Self:
        """Stop it and start it again on the same ports and data."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing is answered."""
        self._started().freeze()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._started().signal(signal.SIGCONT)

    @abstractmethod
    def answers(self) -> bool:
        """Whether it serves requests now; one short try, no waiting."""

    @abstractmethod
    def _command(self) -> list[str]:
        """The program's full path and its arguments."""

    def _prepare(self) -> None:  # noqa: B027 - most servers need nothing
        """Whatever has to exist before the process starts; called before every start."""

    def _started(self) -> ServerProcess:
        if self._process is None:
            raise EmbeddedError(f"{self.name} was not started")
        return self._process

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.running else "not running"
        return f"<{type(self).__name__} {self.name}: {state}, {self.folder}>"
