"""The port of a way to run a load, and what is known of a load that runs."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from setl.errors import TransientError
from setl.load.sink import LoadTicket
from setl.run.runners.tasks import TaskReport
from setl.run.runners.work import LoadWork
from setl.transform.work import TransformPlan


class Phase(Enum):
    """What the tasks of a load do now."""

    NONE = "none"
    TRANSFORM = "transform"
    LOAD = "load"
    BOTH = "both"


class LoadState:
    """What is known of the load that runs. Set by its thread, `cancelled` by any.

    Attributes:
        phase: what its tasks do.
        cancelled: whether it is to end, and no other is to begin.
        abandoned: whether a load has failed in Spark itself, so that tasks of it may still be
            writing.
    """

    def __init__(self) -> None:
        self.phase = Phase.NONE
        self.cancelled = False
        self.abandoned = False

    @property
    def may_write(self) -> bool:
        """Whether tasks that still run could write."""
        return self.phase in (Phase.LOAD, Phase.BOTH)

    def refuse_if_cancelled(self) -> None:
        """Raise TransientError if the load is cancelled.

        Cancelling ends the Spark jobs that it finds, and the next one is not among them yet.
        """
        if self.cancelled:
            raise TransientError("the load was cancelled")


class LoadRunner(Protocol):
    """One way to run a load. Used by one thread at a time.

    Order: loads are run one after another (I15). Idempotence: a load may be run again. Crash:
    tasks may have written a part.
    """

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """Transform and load; returns what the load tasks report.

        None if it is not the way for this load. Another one has to run it then, whatever was
        written already.

        Args:
            plan: how to transform.
            work: what to load.
            ticket: on whose behalf.
            tasks: how many tasks are worth it, at least 1.

        Raises:
            Exception: Spark's own, if the job itself has failed.
        """
        ...
