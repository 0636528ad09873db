"""Long work that is begun from the console: comparing and repairing, in a process of its own.

It is the command of the same name. It has memory and a Spark session of its own, so that what is
compared takes nothing from what is loaded; and it ends with the node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from setl.clock import Clock
from setl.node.console import units

MOST_AT_ONCE = 1
KEPT = 20
_LONGEST_ERROR = 4000
_PROGRAM = """
import os, signal, sys, threading

def end_with_the_node():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end_with_the_node, daemon=True).start()
from setl.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of long work.

    Attributes:
        number: tells it from others of this node.
        on: the pipeline.
        title: what it does.
        state: ``waits``, ``under way``, ``done`` or ``failed``.
        began: seconds since 1970 UTC.
        words: how far it is, or what came of it.
        rows: what was compared, a mapping for each target.
        error: why it failed.
    """

    number: int
    on: str
    title: str
    state: str
    began: float
    words: str = ""
    rows: Sequence[Mapping[str, Any]] = ()
    error: str = ""


class Jobs:
    """The work that was begun from this node; one piece at a time, from any thread."""

    def __init__(
        self,
        clock: Clock,
        environment: Mapping[str, str],
        program: Sequence[str] = (sys.executable, "-c", _PROGRAM),
    ) -> None:
        """Nothing is begun.

        Args:
            clock: for the time it takes.
            environment: of the process: what channel files refer to, and where ZooKeeper is.
            program: runs the command line.
        """
        self._clock = clock
        self._environment = environment
        self._program = program
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(MOST_AT_ONCE)
        self._jobs: dict[int, Job] = {}
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._number = 0
        self._ending = False

    def of(self, on: str) -> list[Job]:
        """The work on a pipeline, newest first, with how long it has taken so far."""
        with self._lock:
            mine = [job for job in self._jobs.values() if job.on == on]
        now = self._clock.now()
        return [
            replace(job, words=f"for {units.duration(now - job.began)}")
            if job.state == "under way"
            else job
            for job in reversed(mine)
        ][:3]

    def begin(
        self, on: str, title: str, arguments: Sequence[str], ended: Callable[[Job], None]
    ) -> Job:
        """Begin a piece of work; it waits for its turn.

        Args:
            on: the pipeline.
            title: what it does.
            arguments: of the command line, without ``setl``.
            ended: is told how it ended, from another thread.
        """
        with self._lock:
            self._number += 1
            job = Job(self._number, on, title, "waits", self._clock.now())
            self._jobs[job.number] = job
            over = [n for n, each in self._jobs.items() if each.state in ("done", "failed")]
            for number in over[: max(0, len(self._jobs) - KEPT)]:
                del self._jobs[number]
        thread = threading.Thread(
            target=self._run, args=(job, list(arguments), ended), name="console-job", daemon=True
        )
        thread.start()
        return job

    @property
    def waiting(self) -> int:
        """How many pieces are not over."""
        with self._lock:
            return sum(job.state in ("waits", "under way") for job in self._jobs.values())

    def stop(self) -> None:
        """End what runs; returns at once."""
        with self._lock:
            self._ending = True
            for process in self._processes.values():
                process.terminate()

    def _run(self, job: Job, arguments: list[str], ended: Callable[[Job], None]) -> None:
        with self._turn:
            if not self._ending:
                job = replace(job, state="under way", began=self._clock.now())
                self._keep(job)
                job = self._done(job, arguments)
            else:
                job = replace(job, state="failed", error="the node has left")
        self._keep(job)
        ended(job)

    def _done(self, job: Job, arguments: list[str]) -> Job:
        # The node holds the other end, which closes when it ends, by SIGKILL too.
        ears, mouth = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program; names were looked up
                [*self._program, *arguments],
                env=dict(self._environment),
                stdin=ears,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            os.close(mouth)
            return replace(job, state="failed", error=str(error))
        finally:
            os.close(ears)
        with self._lock:
            self._processes[job.number] = process
            if self._ending:
                process.terminate()
        out, err = process.communicate()
        os.close(mouth)
        with self._lock:
            del self._processes[job.number]
        took = f"in {units.duration(self._clock.now() - job.began)}"
        rows = _rows(out)
        if rows:
            differ = sum(int(row.get("differences") or 0) for row in rows)
            found = f"{units.count(differ)} rows differ" if differ else "all equal"
            return replace(job, state="done", words=f"{found}, {took}", rows=rows)
        if process.returncode == 0:
            return replace(job, state="done", words=took)
        return replace(job, state="failed", words=took, error=_last_lines(err))

    def _keep(self, job: Job) -> None:
        with self._lock:
            if job.number in self._jobs:
                self._jobs[job.number] = job


def _rows(text: str) -> list[Mapping[str, Any]]:
    try:
        value: object = json.loads(text)
    except ValueError:
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-12:])[-_LONGEST_ERROR:] or "it ended without a word"


def environment_of(environment: Mapping[str, str], zookeeper: str, root: str) -> dict[str, str]:
    """The environment of a command that works on the same cluster as this node."""
    return {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        **environment,
        "SETL_ZOOKEEPER": zookeeper,
        "SETL_ROOT": root,
    }
