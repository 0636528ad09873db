"""What tests of a pipeline's run share."""

import pytest

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
            bench.thread.join(10)
