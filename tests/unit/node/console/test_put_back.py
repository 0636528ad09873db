"""A cut-over that was put back says no more that the application may write to the target."""

from dataclasses import replace

import pytest

from arbiter.values import OperatorAction
from setl.node.console.actions.jobs import Job
from setl.node.console.under_way import without_put_back
from tests.unit.node.http_node import THERE

ON = str(THERE)
DONE = Job(1, ON, "Cut over", "done", 1_000.0, "in 49 s", lines=("the application may write",))
ABORT = OperatorAction("bert", "cutover --abort", ON, 1_100.0, "done", 1_101.0)


def test_whoever_looks_is_reported_that_it_was_put_back_and_by_whom():
    (job,) = without_put_back([ABORT], [DONE])
    assert job == replace(DONE, lines=("It was put back at 1970-01-01 00:18:20 UTC by bert",))
    again = replace(DONE, began=1_200.0)
    assert without_put_back([ABORT], [again, DONE]) == [again, job], "the next one stands"


@pytest.mark.parametrize(
    "other",
    [
        replace(ABORT, outcome="not done: the source does not answer"),
        replace(ABORT, outcome="ended before it was done"),
        replace(ABORT, outcome="", ended=0.0),
        replace(ABORT, on="shop/back"),
        replace(ABORT, what="cutover"),
    ],
)
def test_nothing_else_ends_it(other):
    assert without_put_back([other], [DONE]) == [DONE]


@pytest.mark.parametrize("job", [replace(DONE, state="failed"), replace(DONE, title="Verify")])
def test_other_work_stays_as_it_is(job):
    assert without_put_back([ABORT], [job]) == [job]
