"""What the JVM of a Spark session, and the processes below it, write: as lines of setl's own log.

A JVM inherits the terminal, and writes there as it likes: warnings of Java itself before anything
can be set, Spark's log, what user code prints in Python workers. Here all of it comes through a
pipe instead. Lines of Spark's log keep their level. A line that tells of the JVM's end is an error.
What Java says at each start is for debugging only, and so is the traceback of a Python worker that
nobody listens to any more: Spark ended its task, or did not wait for it, and says so itself. All
other lines are information: they may be of a user's own code.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

SPARK: Final = "spark"
"""The logger of Spark's own log."""

OUTPUT: Final = "spark.output"
"""The logger of everything else that is written."""

_MAX_LINES = 40
_OF_SPARK = re.compile(r"spark (FATAL|ERROR|WARN|INFO|DEBUG|TRACE) (.*)")
_LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}
_END = re.compile(
    r"OutOfMemoryError|A fatal error has been detected|^Error: |Error occurred during"
)
_NOISE = re.compile(
    r"WARNING: |Using Spark's default log4j|Setting default log level|To adjust logging level"
    r"|Picked up \w*JAVA\w*|\[\d+\.\d+s\]\[|OpenJDK 64-Bit Server VM warning|Java HotSpot"
)
_TRACEBACK = ("Traceback (most recent call last):", "PySpark daemon failed to flush the output")
_OF_DAEMON = re.compile(r'^  File ".*pyspark/daemon\.py"')
_NOT_LISTENING = re.compile(r"(BrokenPipe|ConnectionReset)Error\b")
_MOST_HELD = 200


class JvmOutput:
    """Reads a pipe that a JVM writes to, in a thread of its own, until its last writer is gone."""

    def __init__(self) -> None:
        """Open the pipe and begin to read."""
        reading, self._writing = os.pipe()
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._held: list[str] = []  # of a traceback, until its last line says what it is about
        self._thread = threading.Thread(
            target=self._read, args=(reading,), name="jvm-output", daemon=True
        )
        self._thread.start()

    @contextmanager
    def writing(self) -> Generator[int]:
        """The end to write to, a file descriptor; open for this process within the block."""
        try:
            yield self._writing
        finally:
            os.close(self._writing)

    def last_lines(self) -> str:
        """The last lines, for the error that a JVM which does not start becomes; "" for none.

        Waits a moment for the end, since whoever writes has ended already.
        """
        self._thread.join(1.0)
        return "\n".join(line for line in self._lines if not _NOISE.match(line))

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._forward(line.rstrip())
            self._release()

    def _forward(self, line: str) -> None:
        if not line:
            return
        self._lines.append(line)
        found = _OF_SPARK.match(line)
        if found:
            text = found[2].replace("\\r", "").replace("\\n", "\n").rstrip()
            logging.getLogger(SPARK).log(_LEVELS[found[1]], "%s", text)
        elif self._held or line.startswith(_TRACEBACK):
            self._held.append(line)
            ends = not line.startswith((" ", *_TRACEBACK))
            if ends or len(self._held) >= _MOST_HELD:
                self._release()
        else:
            logging.getLogger(OUTPUT).log(level_of(line), "%s", line)

    def _release(self) -> None:
        """Log the traceback that was held back, at the level that its end is worth."""
        held, self._held = self._held, []
        nobody_listens = (
            held and _NOT_LISTENING.match(held[-1]) and any(map(_OF_DAEMON.match, held))
        )
        for line in held:
            level = logging.DEBUG if nobody_listens else level_of(line)
            logging.getLogger(OUTPUT).log(level, "%s", line)


def level_of(line: str) -> int:
    """The level of a line that is not of Spark's log."""
    if _END.search(line):
        return logging.ERROR
    return logging.DEBUG if _NOISE.match(line) else logging.INFO
