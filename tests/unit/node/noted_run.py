"""A run that does nothing but note what it is told."""

import threading
from types import SimpleNamespace
from typing import Any

from setl.errors import TransientError
from setl.model.leadership import Leadership
from setl.run.measured.figures import RunState
from setl.run.stalls.observer import Observed, Views
from tests.unit.select.fakes import reads


class NotedRun:
    """See `setl.run.run.PipelineRun`. Runs until it is stopped."""

    def __init__(self, epoch, progress, ident=("shop", "there")):
        self.epoch = epoch
        self.progress = progress
        self.ident = ident
        self.reported = []
        self.ends = threading.Event()
        self.failure = None
        self.rolled_back = threading.Event()

    @property
    def abandoned(self):
        return "abort" in self.reported or isinstance(self.failure, TransientError)

    @property
    def observed(self):
        select: Any = SimpleNamespace(status=reads)
        channel, pipeline = self.ident
        return Observed(
            Leadership(channel, pipeline, "n1", self.epoch), self.progress, select, None,
            self.ends.is_set, Views(),
        )  # fmt: skip

    def run(self):
        self.progress.enter(RunState.RUNNING)
        self.ends.wait(60)
        if self.failure:
            raise self.failure

    def stop(self):
        self.reported.append("stop")
        self.ends.set()

    def abort(self):
        self.reported.append("abort")
        self.ends.set()

    def suspend(self):
        self.reported.append("suspend")

    def resume(self):
        self.reported.append("resume")

    def rollback(self):
        self.reported.append("rollback")
        return self.rolled_back
