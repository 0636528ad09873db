"""Workers that have nothing to do are kept, until that is no longer wanted."""

import sys
import threading
from typing import Any, cast

from setl.run.runners.warming import KeepWarm
from tests.waiting import eventually


class Context:
    """Counts jobs; fails the first of them."""

    defaultParallelism = 2  # noqa: N815 - Spark's name

    def __init__(self):
        self.jobs = 0
        self.step: Any = None

    def parallelize(self, items, slices):
        assert len(items) == slices == self.defaultParallelism
        return self

    def map(self, step):
        self.step = step
        return self

    def count(self):
        self.jobs += 1
        if self.jobs == 1:
            raise ConnectionRefusedError("no JVM")


def test_it_goes_on_after_an_error_and_ends_when_reported():
    context = Context()
    queries: list[int] = []
    keeper = KeepWarm(cast("Any", context), lambda: lambda: queries.append(1), every=0.01)
    keeper.start(queries=True)
    eventually(lambda: context.jobs > 3)
    eventually(lambda: len(queries) > 1)
    keeper.stop()
    keeper._thread.join(60)
    assert not keeper._thread.is_alive()
    seen = context.jobs
    threading.Event().wait(0.05)
    assert context.jobs == seen


def test_queries_are_made_warm_when_they_are_first_needed():
    context, made, queries = Context(), [], []

    def prepare():
        made.append(1)
        if len(made) == 1:
            raise ConnectionRefusedError("no JVM")
        return lambda: queries.append(1)

    keeper = KeepWarm(cast("Any", context), prepare, every=0.02)
    keeper.start()
    eventually(lambda: context.jobs > 3)
    assert not made
    keeper.with_queries()
    eventually(lambda: len(queries) > 1)
    keeper.stop()
    keeper._thread.join(60)
    assert len(made) == 2, "once more after it failed"


def test_it_does_not_wait_for_its_time_then():
    context, queries = Context(), []
    context.jobs = 1  # so that none fails
    keeper = KeepWarm(cast("Any", context), lambda: lambda: queries.append(1), every=3600.0)
    keeper.start()
    keeper.with_queries()
    eventually(lambda: queries)
    keeper.stop()
    keeper._thread.join(60)


def test_modules_that_loads_need_are_imported_here_and_in_workers(tmp_path, monkeypatch):
    (tmp_path / "needed_by_loads.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    context = Context()
    context.jobs = 1  # so that none fails
    keeper = KeepWarm(cast("Any", context), lambda: lambda: None, every=3600.0)
    keeper.start()
    keeper.with_modules(["needed_by_loads", "not_installed_here"])
    eventually(lambda: "needed_by_loads" in sys.modules)
    keeper.stop()
    keeper._thread.join(60)
    monkeypatch.delitem(sys.modules, "needed_by_loads")
    context.step(0)  # as a worker does
    assert "needed_by_loads" in sys.modules
    monkeypatch.delitem(sys.modules, "needed_by_loads")
