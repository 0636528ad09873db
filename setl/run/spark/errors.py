"""What kind of error it is when a Spark job fails."""

from __future__ import annotations

import errno
import re

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from setl.errors import DataError, FatalError, NodeFullError, SetlError, TransientError
from setl.run.spark.session import SparkGone, jvm_exit, spark_gone
from setl.transform.worker_errors import worker_error

# A JVM that is killed closes its connections before it counts as ended, on a busy machine by
# a second or two.
_JVM_END_SECONDS = 5.0
# Spark gives SQLSTATE class 22 ("data exception") to what an expression cannot do with a value,
# and P0001 to what it refuses with raise_error().
_LOST = re.compile(r"Lost task [^\n]*?\(TID \d+\) \((\S+) executor (\S+)\): ExecutorLostFailure")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_MAKE_ROOM = (
    "Free space where SPARK_LOCAL_DIRS, `spark.local.dir` or else the folder for temporary files is"
)
_REFUSED = re.compile(r"\[[A-Z_.]+\][^\n]*SQLSTATE: (?:22\w{3}|P0001)")


def spark_error(error: Exception, *, cancelled: bool) -> SetlError:
    """The kind of error that an exception of a Spark job is.

    A Python traceback is a defect in a task, since tasks return their errors.

    Args:
        error: the exception.
        cancelled: whether the job was cancelled.
    """
    # First, since the text of an error from Java is fetched from the JVM.
    ended = jvm_exit(_JVM_END_SECONDS if _cut_off(error) else 0)
    if ended is not None:
        return spark_gone(ended)
    if cancelled:
        return TransientError("the load was cancelled")
    return _typed(str(error))


def start_error(error: Exception) -> FatalError:
    """The error for a session that could not be started or warmed, whatever Spark raised.

    A start is not tried again in the same process: see `SparkGone`.
    """
    exited = "JAVA_GATEWAY_EXITED" in str(error) if isinstance(error, PySparkException) else False
    ended = jvm_exit(_JVM_END_SECONDS if exited or _cut_off(error) else 0)
    if ended is not None:
        return spark_gone(ended)
    if exited or isinstance(error, FileNotFoundError):
        return SparkGone(
            "the Spark session's JVM ended before it was ready",
            hint="Start the node again. What the JVM wrote is in the log. The usual causes: Java is"
            " missing (JAVA_HOME), it does not know an option, or memory ran out",
        )
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return FatalError(f"the Spark session could not be started: {error}", hint=_MAKE_ROOM)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return FatalError(
        f"the Spark session could not be started: {lines[0][:500]}",
        hint="See --master and --spark-conf, and the log",
    )


def _typed(text: str) -> SetlError:
    """The error that Spark tells of in a text."""
    refused = _REFUSED.search(text)
    if refused is not None:
        return DataError(
            f"an expression cannot be evaluated: {refused.group(0)}",
            hint="Correct the expression in the channel file, for example with try_cast",
        )
    full = _FULL.search(text)
    if full is not None:
        return NodeFullError(
            f"Spark cannot write to its disk: {full[0]}",
            hint=f"{_MAKE_ROOM}. Another node takes over meanwhile, if there is one",
        )
    if "Python worker exited unexpectedly" in text:
        return TransientError(
            "a Python worker of Spark ended in the middle of a task",
            hint="If it happens again: memory that ran out is the usual cause",
        )
    lost = _LOST.search(text)
    if lost is not None:
        return TransientError(
            f"Spark lost executor {lost[2]} on {lost[1]} in the middle of a load",
            hint="The load is done again on the others. The executor's own log, in its worker's"
            " folder or `yarn logs` or `kubectl logs`, says why it ended; memory is the usual"
            " cause",
        )
    return worker_error(text) or TransientError(f"the Spark job failed: {_cause(text)}")


def _cause(text: str) -> str:
    """What stands last in a chain of Java's exceptions: the others only passed it on."""
    return text.rpartition("\nCaused by: ")[2].strip()[:500]


def _cut_off(error: Exception) -> bool:
    """Whether this is how it looks from Python when the JVM goes away."""
    if isinstance(error, Py4JJavaError):
        return False
    return isinstance(error, (Py4JError, OSError, EOFError))
