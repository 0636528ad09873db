"""What tests of a run, and of the tables that it loads, share."""

import pytest

from setl.run.table_loads import loading as table_loading

from .scripted_run import Bench


@pytest.fixture
def begun():
    """Makes runs with scripted parts, and ends them."""
    benches = []

    def begin(entries, **changes):
        bench = Bench(entries, **changes)
        benches.append(bench)
        return bench

    yield begin
    for bench in benches:
        bench.run.abort()
        if bench.thread.ident:
            bench.thread.join(60)


@pytest.fixture
def small_ranges(monkeypatch):
    """Few rows make a range, so that small tables have several."""
    monkeypatch.setattr(table_loading, "_LEAST_ROWS", 500)
