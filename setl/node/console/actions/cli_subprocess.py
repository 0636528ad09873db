"""Runs commands of setl beside a node: in processes of their own, which end with it.

They end as if somebody had pressed Ctrl-C, so a cut-over under way is put back.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from setl.errors import SetlError
from setl.operate.progress_lines import VARIABLE

_PROGRAM = """
import os, signal, sys, threading

def end_with_the_node():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)

heard = []

def interrupt(number, frame):
    # Once: what is being put back is not broken off when the node has gone, too.
    heard.append(number)
    if len(heard) == 1:
        raise KeyboardInterrupt

def report_again(dropped):
    # Python drops what is raised while it collects an object or ends an import.
    sys.__unraisablehook__(dropped)
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        heard.clear()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()

# As Ctrl-C: what a command has begun is put back.
signal.signal(signal.SIGTERM, interrupt)
sys.unraisablehook = report_again
threading.Thread(target=end_with_the_node, daemon=True).start()
from setl.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


class Output(NamedTuple):
    """What a command has left: its exit status, and what it has printed."""

    code: int
    out: str
    err: str


class _Listener:
    """Takes in what a process prints, so that it never waits for a reader."""

    def __init__(
        self, stream: IO[str] | None, said: Callable[[str], None] = lambda _: None
    ) -> None:
        self._stream, self._said = stream, said
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._work, name="console-listener", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """All of it; waits until the process and those that it began have nothing more to say."""
        self._thread.join()
        return "".join(self._lines)

    def _work(self) -> None:
        if self._stream is not None:
            with self._stream as lines:
                for line in lines:
                    self._lines.append(line)
                    self._said(line.rstrip())


class CliSubprocess:
    """Runs commands on the same cluster as this node; from any thread."""

    def __init__(
        self,
        environment: Mapping[str, str],
        program: Sequence[str] = (sys.executable, "-P", "-c", _PROGRAM),
    ) -> None:
        """Nothing runs.

        Args:
            environment: of the processes, see `environment_of`.
            program: runs the command line.
        """
        self._environment = environment
        self._program = program
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._ending = False

    def output(
        self,
        arguments: Sequence[str],
        limit: float | None = None,
        said: Callable[[str], None] = lambda _: None,
    ) -> Output:
        """Run a command and wait for its end.

        Args:
            arguments: those of the command line, without ``setl``.
            limit: seconds that it may take, None indefinitely.
            said: takes each line of its standard error as it comes, from another thread.

        Raises:
            SetlError: it cannot be started, or took longer.
        """
        # The node holds the other end, which closes when it ends, by SIGKILL too.
        read_fd, write_fd = os.pipe()
        try:
            process = self._begun(arguments, read_fd)
        except OSError as error:
            os.close(write_fd)
            raise SetlError(f"setl cannot be started by the node: {error}") from error
        finally:
            os.close(read_fd)
        out, err = _Listener(process.stdout), _Listener(process.stderr, said)
        try:
            process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise SetlError(f"`setl {arguments[0]}` took longer than {limit:g} s") from None
        finally:
            os.close(write_fd)
            with self._lock:
                self._processes.discard(process)
        return Output(process.returncode, out.text(), err.text())

    def stop(self) -> None:
        """End what runs, and begin nothing any more; returns at once."""
        with self._lock:
            self._ending = True
            for process in self._processes:
                process.terminate()

    def _begun(self, arguments: Sequence[str], read_fd: int) -> subprocess.Popen[str]:
        with self._lock:
            if self._ending:
                raise OSError("the node is leaving")
            process = subprocess.Popen(  # noqa: S603 - our own program
                [*self._program, *arguments],
                env=dict(self._environment),
                stdin=read_fd,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            self._processes.add(process)
            return process


def environment_of(environment: Mapping[str, str], zookeeper: str, root: str) -> dict[str, str]:
    """The environment of a command that works on the same cluster as this node."""
    inherited = ("PATH", "HOME", "LANG", "JAVA_HOME")
    return {
        **{name: value for name, value in os.environ.items() if name in inherited},
        **environment,
        "SETL_ZOOKEEPER": zookeeper,
        "SETL_ROOT": root,
        VARIABLE: "1",
    }
