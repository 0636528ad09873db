"""Only what a node leads is recorded, of a bounded number of pipelines."""

from arbiter.values import PipelineId
from setl.node.console.figures import Recorder
from setl.node.status import NodeStatus, PipelineStatus
from setl.run.measured.figures import Figures


def status(*names, mine=True):
    lines = tuple(
        PipelineStatus("c", name, "n1", 1, mine, "", Figures(lag=2.0, rows_per_second=5.0))
        for name in names
    )
    return NodeStatus("n1", "0", "connected", warm=True, started=0.0, pipelines=lines)


def test_what_another_node_leads_is_not_recorded():
    recorder = Recorder()
    recorder.record(status("a", mine=False), 10.0)
    assert recorder.points(PipelineId("c", "a")) == []
    recorder.record(status("a"), 15.0)
    recorder.record(status("a"), 15.0)  # a clock that stands still, or goes back
    recorder.record(status("a"), 12.0)
    (point,) = recorder.points(PipelineId("c", "a"))
    assert (point.at, point.lag, point.rows) == (15.0, 2.0, 5.0)


def test_the_pipeline_that_was_not_led_for_the_longest_time_is_throttled():
    recorder = Recorder(most=2)
    recorder.record(status("a", "b"), 1.0)
    recorder.record(status("a"), 2.0)
    recorder.record(status("c"), 3.0)
    assert [bool(recorder.points(PipelineId("c", name))) for name in "abc"] == [True, False, True]
