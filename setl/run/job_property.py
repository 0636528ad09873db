"""Instructions for one job's tasks, as a local property of the job, which Spark hands to each.

So a calculation that is made once can be run again and again. What the driver tells the JVM to make
one takes it a time, call by call.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession

_PROPERTY: Final = "setl.load"
_EVENT_LOG: Final = "spark.eventLog.enabled"


def takes_rows(spark: SparkSession) -> bool:
    """Whether rows may stand in a property: not where Spark writes them to its event log."""
    return spark.conf.get(_EVENT_LOG, "false") != "true"


@contextmanager
def instructing(context: SparkContext, instructions: object) -> Generator[None]:
    """Hand picklable instructions to the tasks of the jobs that this thread runs meanwhile."""
    text = b64encode(pickle.dumps(instructions, protocol=5)).decode("ascii")
    context.setLocalProperty(_PROPERTY, text)
    try:
        yield
    finally:
        # Else every further job of this thread would carry it.
        context.setLocalProperty(_PROPERTY, None)  # pyright: ignore[reportArgumentType]


def instructions_of_job() -> Any:
    """In a task: its job's instructions."""
    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(_PROPERTY)
    if text is None:
        raise RuntimeError("a task that is run again and again has no instructions")
    return pickle.loads(b64decode(text))  # noqa: S301 - made by our own driver
