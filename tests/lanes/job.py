"""One program that runs beside others: started, looked after, ended."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from setl_embedded.process import ServerProcess, spawn
from tests.lanes.summary import Results

_NO_TESTS = 5  # pytest's exit status
_ENDS = {0, 1, _NO_TESTS}
_PATIENCE_S = 40.0


class Job:
    """A program with a log, and for a lane with a record of its tests.

    Attributes:
        name: what people call it.
        log: the file with all that it printed.
        results: what its tests came to so far; nothing for other programs.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, record: Path | None
    ) -> None:
        self.name = name
        self.results = Results()
        self._command = [shutil.which(command[0]) or command[0], *command[1:]]
        self._folder = folder
        self.log = folder / "output.log"
        self._record = record
        self._read = 0
        self._process: ServerProcess | None = None
        self._begun = 0.0
        self.seconds = 0.0

    def start(self, root: Path) -> None:
        """Start it in a folder; it ends with this process, however that ends."""
        self._begun = time.monotonic()
        self._process = spawn(self.name, self._command, log=self.log, cwd=root)

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._process is not None

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.running

    @property
    def status(self) -> int | None:
        """Its exit status, None before the end; negative for a signal."""
        return self._process.status if self._process is not None else None

    def look(self) -> list[str]:
        """Take in what its record says; returns the failures that are new."""
        self.seconds = time.monotonic() - self._begun
        before = len(self.results.failures)
        if self._record is not None and self._record.exists():
            with self._record.open() as file:
                file.seek(self._read)
                while (line := file.readline()).endswith("\n"):
                    self.results.add(line)
                    self._read = file.tell()
        return self.results.failures[before:]

    @property
    def good(self) -> bool:
        """Whether it ended as it should and nothing failed."""
        if self._record is None:
            return self.status == 0
        return self.status in _ENDS and self.results.good

    def problem(self) -> str:
        """Why it is not good, in a few words."""
        if self._record is None or self.status in _ENDS:
            return "" if self._record is not None else f"exit status {self.status}"
        return f"pytest ended with status {self.status}"

    def end(self) -> None:
        """Interrupt it, and wait a while, so that it can end its servers; then kill it."""
        if self._process is None or not self.running:
            return
        try:
            os.kill(self._process.pid, signal.SIGINT)
        except ProcessLookupError:
            return

    def make_sure(self, deadline: float) -> None:
        """Wait until it has ended, and kill it when it is late."""
        while self.running and time.monotonic() < deadline:
            time.sleep(0.1)
        if self._process is not None and self.running:
            self._process.kill()


def end_all(jobs: Sequence[Job]) -> None:
    """End jobs together."""
    for job in jobs:
        job.end()
    deadline = time.monotonic() + _PATIENCE_S
    for job in jobs:
        job.make_sure(deadline)
        job.look()
