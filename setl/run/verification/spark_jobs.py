"""The Spark jobs that standing verification runs where servers cannot compare by themselves."""

from __future__ import annotations

import logging

from py4j.protocol import Py4JError

from setl.log import fields
from setl.model.leadership import Leadership
from setl.transform.spark_on_demand import SparkOnDemand

_log = logging.getLogger(__name__)


class VerificationJobs:
    """Names the jobs of the thread that verifies, so that they share Spark's tasks fairly."""

    def __init__(self, spark: SparkOnDemand, leadership: Leadership) -> None:
        """Nothing runs yet.

        Args:
            spark: where jobs run.
            leadership: on whose behalf. Another one's jobs go on when this one's are cancelled.
        """
        self._context = spark.context
        self._pool = f"setl verify {leadership.key}"
        self._group = f"{self._pool} {leadership.epoch}"

    def begin(self) -> None:
        """Jobs of this thread belong to the group and the pool from now on."""
        # Never interrupt: see `setl.run.loads.job.LoadJob`.
        self._context.setJobGroup(self._group, "standing verification", interruptOnCancel=False)
        self._context.setLocalProperty("spark.scheduler.pool", self._pool)

    def cancel(self) -> None:
        """Cancel what runs; may block while Spark does not answer, so call it from a thread."""
        try:
            self._context.cancelJobGroup(self._group)
        except (Py4JError, OSError) as error:
            # Nothing runs in a JVM that is gone.
            _log.info("verification not cancelled", extra=fields(error=repr(error)))
