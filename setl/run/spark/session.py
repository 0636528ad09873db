"""The one long-lived Spark session of a node, and how it is warmed before it is needed."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.captured import install_exception_handler
from pyspark.java_gateway import launch_gateway  # pyright: ignore[reportUnknownVariableType]
from pyspark.sql import SparkSession

from setl.errors import FatalError
from setl.log import fields
from setl.run.spark import worker_daemon
from setl.run.spark.environment import StartOptions
from setl.run.spark.job_property import takes_rows
from setl.run.spark.jvm_folders import make_jvm_folders
from setl.run.spark.jvm_output import JvmOutput
from setl.run.spark.own_code import write_own_code
from setl.run.spark.security import VARIABLE, handed_over, secured, weaknesses
from setl.run.spark.shared_memory import shared_memory
from setl.run.spark.worker_sockets import worker_sockets
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.sql_limits import LIMITS

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_JVM_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What may be chosen about the session.

    Attributes:
        master: where jobs run: ``local[2]``, ``spark://host:7077``, ``yarn``, ``k8s://…``.
        name: the application's name in Spark's own pages.
        conf: further Spark settings; they win over the defaults below, except those that
            correctness depends on.
        py_files: files of Python code that tasks can import: .py, .zip or .egg.
        archives: files that are unpacked where the tasks run, ``FILE#FOLDER`` each; for workers
            that have no Python with the libraries that setl uses.
        python: the workers' Python, "" for the variable PYSPARK_PYTHON; without that, the one
            in the first archive, or the one that runs here.
        log_level: what of Spark's own log becomes lines of this process's log: off, error, warn,
            info, debug.
    """

    master: str = "local[*]"
    name: str = "setl"
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    py_files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    python: str = ""
    log_level: str = "off"

    @property
    def is_local(self) -> bool:
        """Whether tasks run in processes of this machine that this one starts."""
        return self.master.startswith("local")


_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # it would draw over the node's log
    "spark.scheduler.mode": "FAIR",  # a slow pipeline must not hold up a fast one
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",  # re-planning costs more than a batch takes
    "spark.python.worker.reuse": "true",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.legacy.createHiveTableByDefault": "false",
    "spark.task.maxDirectResultSize": "16m",  # shares come to the driver in one answer
    "spark.broadcast.blockSize": "256k",  # cleared for the few KB of each job
    "spark.locality.wait": "0s",  # shares of a load are small: waiting takes longer than sending
}

# Tasks wait for a target most of the time, and Spark takes no slot away from one that waits:
# with as many slots as cores, a few locked rows would hold up every other pipeline.
_TASKS_PER_CORE = 8
_FRACTIONAL_CORES = (4, 3)  # the first Spark that has tasks of less than one core

# Python processes that one executor keeps, with their connections, after many ran at once.
_IDLE_WORKERS = "spark.python.factory.idleWorkerMaxPoolSize"

_ON_CLUSTERS = {
    _IDLE_WORKERS: "32",
    # A machine that is gone says no goodbye. Spark would miss it after two minutes.
    "spark.executor.heartbeatInterval": "5s",
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
}

# The JVM moves bytes between Python processes; there is little to gain from code that is compiled
# a second time, with optimisation, and two cores spend seconds on that after each start. Measured
# over minutes, with Spark SQL expressions too; over days it was not.
_QUICK = "-XX:TieredStopAtLevel=1"

# A JVM that has run out of memory lives on without the thread that did, and jobs hang for ever. One
# that ends is noticed, and others take over.
_ENDS = "-XX:+ExitOnOutOfMemoryError"

# It counts for tools that nobody runs beside a node, and wakes up twenty times a second to do so.
_QUIET = "-XX:-UsePerfData"

_JVM_OPTIONS = "spark.driver.defaultJavaOptions"

_REQUIRED = {
    "spark.speculation": "false",  # a second copy of a load task would write twice (I15)
    # Nor may Spark begin a stage again by itself, in which tasks of the old one may still write.
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.stage.ignoreDecommissionFetchFailure": "false",
    "spark.sql.session.timeZone": "UTC",  # times are UTC text everywhere else
    "spark.sql.ansi.enabled": "true",  # an overflow or a bad cast is an error, never a NULL
    **LIMITS,
}


def start_session(settings: SparkSettings) -> SparkSession:
    """Start (or get) Spark as `start_context`, and the session of this process."""
    return SparkOnDemand(partial(start_context, settings)).session


def start_context(settings: SparkSettings, *, workers: bool = False) -> SparkContext:
    """Start (or get) Spark in this process. Takes about 3 seconds the first time.

    Workers of a cluster are sent setl's own code, see `setl.run.spark.own_code`.

    Args:
        settings: of the session.
        workers: whether tasks will run soon. Then the process from which Spark forks Python
            workers on this machine imports what they need while the session is being made.

    Raises:
        ConfigurationError: a standalone cluster's secret is not given.
        FatalError: the cluster does not take the application.
    """
    given, secret = secured(settings.master, settings.conf, os.environ)
    for weakness in weaknesses(settings.master, settings.conf):
        _log.warning("Spark is less protected than by default: %s", weakness)
    os.environ["PYSPARK_PYTHON"] = worker_python(settings, os.environ.get("PYSPARK_PYTHON", ""))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    conf = dict(_DEFAULTS)
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= _FRACTIONAL_CORES:
        conf["spark.task.cpus"] = str(1 / _TASKS_PER_CORE)
    if settings.is_local:
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf["spark.driver.host"] = "127.0.0.1"
        conf[_IDLE_WORKERS] = str(max(8, 2 * (os.cpu_count() or 1)))
        conf["spark.python.daemon.module"] = worker_daemon.__name__
        conf |= worker_sockets()
    else:
        conf |= _ON_CLUSTERS
        conf["spark.executor.defaultJavaOptions"] = f"{_QUICK} {_ENDS}"
    if settings.archives:
        # YARN has always had a setting of its own for them.
        name = "spark.yarn.dist.archives" if settings.master == "yarn" else "spark.archives"
        conf[name] = ",".join(settings.archives)
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    # Spark puts them before `extraJavaOptions`, which are for whoever starts the node.
    log = f"-Dlog4j2.configurationFile={log4j} -Dsetl.spark.level={settings.log_level}"
    conf[_JVM_OPTIONS] = f"{log} {_QUICK} {_ENDS} {_QUIET}"
    chosen = {"spark.app.name": settings.name, "spark.master": settings.master}
    with handed_over(secret), _own_interrupts():
        at_once = workers and settings.is_local
        context = _context({**chosen, **conf, **given, **_REQUIRED}, workers=at_once)
    if not settings.is_local:
        see_taken(context, settings.master)
    for file in settings.py_files:
        context.addPyFile(file)
    if not settings.is_local:
        # Last, for what is added last is found first: no other setl can take its place. The
        # folder is Spark's own, which the JVM removes when it ends.
        context.addPyFile(str(write_own_code(Path(vars(context)["_temp_dir"]))))
    if workers and settings.is_local:
        _meanwhile(shared_memory.folder)  # rows of a node that was killed go now
    if workers:
        # Not first when many pipelines are taken over. Commands that compare need no answer.
        takes_rows(context)
    return context


def see_taken(context: SparkContext, master: str) -> None:
    """See that the cluster has taken the application of a new session.

    Without it Spark gives the session up and returns it all the same; its first use would fail
    with a text that says nothing.

    Args:
        context: of the session.
        master: of the session.

    Raises:
        FatalError: Spark has given the session up.
    """
    if not cast("Any", context)._jsc.sc().isStopped():  # noqa: SLF001
        return
    raise FatalError(
        f"the Spark cluster {master} does not take this application",
        hint="Spark's log (`log_spark: error`) and the master's say why. The usual causes: it"
        f" cannot be reached; {VARIABLE} is not its secret; its master and workers lack the"
        " `spark.network.crypto.…` settings that setl uses",
    )


def _context(conf: Mapping[str, str], *, workers: bool) -> SparkContext:
    """The context of this process; the JVM that it may start writes to this process's log."""
    if vars(SparkContext).get("_gateway") is None:
        is_local = conf["spark.master"].startswith("local")
        folders = make_jvm_folders(conf, os.environ, local=is_local)
        options = f"{conf[_JVM_OPTIONS]} {folders.option}"
        spark_conf = SparkConf().setAll(list({**conf, _JVM_OPTIONS: options}.items()))
        output = JvmOutput()
        _meanwhile(_import_for_calls)
        try:
            with output.writing() as end, folders.handed_over():
                popen = StartOptions(stdout=end, stderr=end, pass_fds=folders.locks)
                gateway = _out_of_reach(lambda: launch_gateway(spark_conf, popen))
        except Exception:
            _log.error("the JVM of Spark did not start", extra=fields(output=output.last_lines()))
            raise
        context = SparkContext(conf=spark_conf, gateway=gateway)
        if workers:
            _meanwhile(lambda: context.parallelize([b""], 1).map(len).collect())
        # A session would do it, too: errors of jobs look alike with one and without.
        install_exception_handler()
        return context
    return SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))


def _import_for_calls() -> None:
    """Import what the first call to the JVM would: it tells whether an argument is one of NumPy's.

    It also imports pandas, to tell PySpark's own tests whether there is one. That takes 30 MB and
    a quarter of a second of each node, few of which use it; so it finds none.
    """
    without = "pandas" not in sys.modules
    if without:
        sys.modules["pandas"] = None  # pyright: ignore[reportArgumentType] - as Python documents
    try:
        importlib.import_module("pyspark.testing.utils")
    finally:
        if without:
            del sys.modules["pandas"]


def _out_of_reach(do: Callable[[], _T]) -> _T:
    """Do it where no signal interrupts it; the wait for it may be interrupted.

    An interrupted start would take away the folder in which the JVM is about to say how it is
    reached. The JVM would end its main thread over that, and live on for ever without it.
    Otherwise it ends with this process, by the end of its standard input.
    """
    done: Future[_T] = Future()

    def run() -> None:
        try:
            done.set_result(do())
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            done.set_exception(error)

    threading.Thread(target=run, name="spark-start", daemon=True).start()
    return done.result()


def _meanwhile(do: Callable[[], object]) -> None:
    """Do it in a thread, for nothing but time: what fails here fails again where it is needed."""

    def done() -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 - see above
            _log.debug("not made ready meanwhile: %r", error)

    threading.Thread(target=done, name="meanwhile", daemon=True).start()


@contextmanager
def _own_interrupts() -> Generator[None]:
    """Keep this process's answer to SIGINT, in whose place a new session sets one of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def worker_python(settings: SparkSettings, preset: str) -> str:
    """The workers' Python, a path of theirs; relative ones begin in an executor's folder.

    Args:
        settings: of the session.
        preset: what PYSPARK_PYTHON says.
    """
    if settings.python or preset:
        return settings.python or preset
    folders = (archive.partition("#")[2] for archive in settings.archives)
    folder = next(filter(None, folders), "")
    return f"./{folder}/bin/python" if folder and not settings.is_local else sys.executable


def parallelism(context: SparkContext) -> int:
    """How many tasks are worth running at once: the cores that there are at this moment.

    On a cluster they change with its workers. Spark never says less than 2 there.
    """
    return max(1, context.defaultParallelism)


class SparkGone(FatalError):  # noqa: N818 - reads as what it is
    """The JVM of this process's Spark session has ended; the process cannot load any more.

    There is no way back inside the process: what its tasks left behind in the targets is only
    distinguished by a higher epoch, which a new leadership brings. So the node gives up all its
    leaderships and ends, and whoever supervises it starts another.
    """


def jvm_exit(patience: float = 0.0) -> int | None:
    """Exit status of the session's JVM, None while it runs.

    Also None where the JVM is not a child of this process and nothing can be known.

    Args:
        patience: seconds to wait for an end that is under way: connections of a process that
            is killed are closed a moment before it counts as ended.
    """
    process = _jvm()
    if process is None:
        return None
    try:
        return process.wait(patience) if patience > 0 else process.poll()
    except subprocess.TimeoutExpired:
        return None


def spark_gone(status: int) -> SparkGone:
    """The error for a JVM that ended with a status, negative for a signal as in `subprocess`."""
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return SparkGone(
        f"the Spark session's JVM {how}",
        hint="The node has to be started again; memory that ran out is the usual cause, see"
        " the kernel's log and the node's own output",
    )


def _jvm() -> subprocess.Popen[bytes] | None:
    # The process that was started as spark-submit ends up as the JVM itself: its shell scripts
    # replace themselves. There is no public way to it.
    gateway: object = vars(SparkContext).get("_gateway")
    process: object = getattr(gateway, "proc", None)
    if not isinstance(process, subprocess.Popen):
        return None
    return cast("subprocess.Popen[bytes]", process)


class JvmWatch:
    """Waits for the end of the session's JVM, in a thread of its own.

    Without it nobody would notice while the pipelines are idle, and the node would keep
    leaderships that it can do nothing with.
    """

    def __init__(self, gone: Callable[[SparkGone], None]) -> None:
        """Watch nothing yet.

        Args:
            gone: called once, from the watching thread, when the JVM has ended; not after
                `stop`. Must not block.
        """
        self._gone = gone
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="jvm-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch; the session must have been started."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, before the session is ended on purpose."""
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.wait(_JVM_LOOK_SECONDS):
            status = jvm_exit()
            if status is not None:
                if not self._stopping.is_set():
                    self._gone(spark_gone(status))
                return
