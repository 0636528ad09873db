"""Instructions for one job's tasks, as a local property of the job, which Spark hands to each.

So a calculation that is made once can be run again and again. What the driver tells the JVM to make
one takes it a time, call by call.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from pyspark import SparkContext, TaskContext

from setl.errors import DataError
from setl.load.sink import LoadTicket
from setl.model.change import Row
from setl.transform.work import TransformPlan

_PROPERTY: Final = "setl.load"
_EVENT_LOG: Final = "spark.eventLog.enabled"


class Instructions(NamedTuple):
    """What the tasks of one load have to do.

    Attributes:
        applied_through: see `TransformPlan`.
        excluded: see `TransformPlan`.
        ticket: on whose behalf.
        plain: pickled work items that need no Spark SQL; empty without any.
        ready: see `LoadWork.ready`.
        insert_partitions: pickled work items, for each table of a prepared query.
    """

    applied_through: int
    excluded: Mapping[tuple[int, Row, int], DataError]
    ticket: LoadTicket
    plain: bytes
    ready: list[bytes]
    insert_partitions: Sequence[bytes] = ()

    def plan(self, prepared: TransformPlan) -> TransformPlan:
        """The load's plan, given the part that was there when the calculation was made."""
        own = replace(prepared, applied_through=self.applied_through, excluded=self.excluded)
        return own.ending_at(self.ticket.position)


@lru_cache(maxsize=1)
def takes_rows(context: SparkContext) -> bool:
    """Whether rows may stand in a property: not where Spark writes them to its event log.

    Asked once for each context, best before it is needed: PySpark copies all settings of the JVM
    for it, some hundred calls. Pipelines that are taken over together would wait for each other.
    """
    return context.getConf().get(_EVENT_LOG, "false") != "true"


@contextmanager
def instructing(context: SparkContext, instructions: Instructions) -> Generator[None]:
    """Hand instructions to the tasks of the jobs that this thread runs meanwhile."""
    text = b64encode(pickle.dumps(instructions, protocol=5)).decode("ascii")
    context.setLocalProperty(_PROPERTY, text)
    try:
        yield
    finally:
        # Else every further job of this thread would carry it.
        context.setLocalProperty(_PROPERTY, None)  # pyright: ignore[reportArgumentType]


def instructions_of_job() -> Instructions:
    """In a task: its job's instructions."""
    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(_PROPERTY)
    if text is None:
        raise RuntimeError("a task that is run again and again has no instructions")
    return pickle.loads(b64decode(text))  # noqa: S301 - made by our own driver
