"""Whether a Spark cluster has executors for this node, can run its tasks, and keeps its session.

Tasks import this file, as one of its functions runs in them: it must need nothing that is not sent
along with them, see `setl.run.spark.own_code`.
"""

from __future__ import annotations

import logging
import platform
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata, util
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext

from setl.errors import ConfigurationError
from setl.log import fields
from setl.run.spark.errors import spark_error
from setl.run.spark.session import SparkGone, parallelism

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_SAY_SECONDS = 30.0
_LOOK_SECONDS = 1.0

# What tasks import, and the distribution that brings it.
_LIBRARIES = {
    "elasticsearch": "elasticsearch",
    "fastavro": "fastavro",
    "numpy": "numpy",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "pymysql": "PyMySQL",
    "tenacity": "tenacity",
    "yaml": "PyYAML",
}
_PYTHON_IS_WRONG = re.compile(
    r"Cannot run program[^\n]*|\[PYTHON_VERSION_MISMATCH\][^\n]*|ModuleNotFoundError: [^\n]*"
    r"|Python worker failed to connect back[^\n]*"
)
_HINT = (
    "Every worker needs Python of this node's version with setl's libraries (setl itself is sent):"
    " install them under the path in PYSPARK_PYTHON, or send them with --archives"
)


class _Seen(NamedTuple):
    host: str
    python: str
    versions: dict[str, str | None]


def wait_for_executors(
    context: SparkContext,
    stopping: Callable[[], bool],
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until the cluster gives this application an executor; says so while it does not.

    Args:
        context: of the session.
        stopping: whether to give up.
        sleep: waits so many seconds.
        monotonic: a clock.

    Returns:
        Whether there is one; False if it was told to give up.
    """
    logged_at = monotonic()
    while not stopping():
        with suppress(Py4JError):  # of a context that has ended, which is watched for elsewhere
            if executors(context):
                return True
        if monotonic() - logged_at >= _SAY_SECONDS:
            logged_at = monotonic()
            _log.warning(
                "Spark gives this node no executors",
                extra=fields(
                    master=context.master,
                    hint="Other applications may hold all cores, other nodes of setl among them:"
                    " set spark.cores.max, so that every node gets some. Or no worker has the"
                    " memory of spark.executor.memory free",
                ),
            )
        sleep(_POLL_SECONDS)
    return False


def executors(context: SparkContext) -> int:
    """Processes that run tasks, beside the driver."""
    tracker = cast("Any", context)._jsc.sc().statusTracker()  # noqa: SLF001 - not in Python's
    return max(0, len(tracker.getExecutorInfos()) - 1)


def check_executors(context: SparkContext) -> None:
    """Make sure that tasks can run on the executors that there are.

    Raises:
        ConfigurationError: they have no Python that is the right one, or it lacks libraries.
        SetlError: Spark itself failed.
    """
    tasks = 2 * parallelism(context)
    try:
        seen = context.parallelize(range(tasks), tasks).map(_look).collect()
    except Exception as error:
        wrong = _PYTHON_IS_WRONG.search(str(error))
        if wrong is None:
            raise spark_error(error, cancelled=False) from error
        raise ConfigurationError(
            f"Spark's workers cannot run setl's tasks: {wrong.group(0).strip()}", hint=_HINT
        ) from error
    own = _look().versions
    for worker in {each.host: each for each in seen}.values():
        missing = [name for name, version in worker.versions.items() if version is None]
        if missing:
            raise ConfigurationError(
                f"the Python of Spark's worker on {worker.host} lacks {', '.join(missing)}",
                hint=_HINT,
            )
        others = {n: v for n, v in worker.versions.items() if v != own[n]}
        if others:
            _log.warning(
                "a Spark worker has other versions of libraries than this node",
                extra=fields(
                    host=worker.host,
                    worker=", ".join(f"{n} {v}" for n, v in others.items()),
                    driver=", ".join(f"{n} {own[n]}" for n in others),
                ),
            )


def _look(_: object = None) -> _Seen:
    """What this process can import. Runs in tasks too."""
    versions: dict[str, str | None] = {}
    for module, distribution in _LIBRARIES.items():
        found = util.find_spec(module) is not None
        try:
            versions[distribution] = metadata.version(distribution) if found else None
        except metadata.PackageNotFoundError:
            versions[distribution] = "of unknown version"
    return _Seen(socket.gethostname(), platform.python_version(), versions)


class ContextWatch:
    """Waits for the end of a session whose JVM lives on, in a thread of its own.

    A cluster may remove an application: an operator kills it, its executors fail again and
    again, no master answers when it starts. Spark's scheduler may fail. The JVM lives on then and
    refuses every job. And it may hang: then `answered` grows old.

    Attributes:
        answered: monotonic time at which the JVM answered last; None before it did.
    """

    def __init__(self, context: SparkContext, gone: Callable[[SparkGone], None]) -> None:
        """Watch nothing yet.

        Args:
            context: of the session.
            gone: called once, from the watching thread, when the session has ended; not after
                `stop`. Must not block.
        """
        self.answered: float | None = None
        self._context = context
        self._gone = gone
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spark-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, before the session is ended on purpose."""
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                ended = bool(cast("Any", self._context)._jsc.sc().isStopped())  # noqa: SLF001
            except (Py4JError, OSError, AttributeError):
                continue  # the JVM has ended, which `JvmWatch` sees
            self.answered = time.monotonic()
            if ended and not self._stopping.is_set():
                self._gone(
                    SparkGone(
                        "Spark has ended this node's session",
                        hint="The node has to be started again; Spark's log (`log_spark: error`),"
                        " or on a cluster the master's log and pages, say why the application"
                        " ended",
                    )
                )
                return
