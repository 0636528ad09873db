"""Traces of batches: as values, and as spans that OpenTelemetry's SDK exports."""

import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from setl.errors import ConfigurationError, TransientError
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.run.tracing.choice import tracer_of
from setl.run.tracing.course import Course
from setl.run.tracing.open_telemetry import OpenTelemetryTracer
from tests.clocks import SetClock

LEADS = Leadership("shop", "ab", "n1", 7)
STAGES = ["select", "extract", "transform", "load"]
WALL = 1_000_000.0  # what the wall clock is ahead of the other


class Noted:
    def __init__(self):
        self.traces = []

    def export(self, traces):
        self.traces += traces

    def close(self):
        pass


def batch(number, opened, closed):
    position = Checkpoint(BinlogPosition("binlog.000001", number * 100))
    return Batch(number, 7, [], position, 40, 4000, opened=opened, closed=closed)


def passed(tracer, clock=None, wrote=WALL + 101.3):
    """Two batches pass through the stages: closed at 100, extracted by 101, loaded by 102."""
    clock = clock or SetClock(100.0, WALL)
    course = Course(tracer, LEADS, clock)
    course.begins([batch(1, 99.0, 99.5), batch(2, 99.5, 99.9)])
    clock.time += 1
    course.extracted()
    course.loads()
    clock.time += 1
    course.loaded(Loaded(rows=80, began=wrote))
    clock.time += 0.25
    course.acknowledged()
    return course


def test_a_batch_passes_through_four_stages():
    noted = Noted()
    passed(noted)
    first, second = noted.traces
    assert [span.stage for span in first.stages] == STAGES
    assert (first.begun, first.ended) == (WALL + 99.0, WALL + 102.25)
    assert first.stages[0] == ("select", WALL + 99.0, WALL + 99.5)
    assert first.stages[1:] == second.stages[1:], "they are loaded together"
    assert [tuple(span) for span in first.stages[1:]] == [
        ("extract", WALL + 100, WALL + 101),
        ("transform", WALL + 101, WALL + 101.3),
        ("load", WALL + 101.3, WALL + 102),
    ]
    assert (first.batch, second.batch, second.together) == (1, 2, 2)


@pytest.mark.parametrize(("wrote", "transform"), [(WALL, 0.0), (WALL + 500, 1.0), (0.0, 1.0)])
def test_the_clock_of_another_machine_is_stored_within_the_job(wrote, transform):
    noted = Noted()
    passed(noted, wrote=wrote)
    assert noted.traces[0].stages[2].ended - noted.traces[0].stages[2].begun == transform


def test_a_batch_that_is_rolled_back_says_why_once():
    noted, clock = Noted(), SetClock(100.0, WALL)
    course = Course(noted, LEADS, clock)
    course.begins([batch(1, 99.0, 99.5)])
    course.extracted()
    course.loads()
    clock.time += 3
    course.failed("a deadlock")
    course.failed("again")
    (trace,) = noted.traces
    assert trace.error == "a deadlock"
    assert [span.stage for span in trace.stages] == ["select", "extract", "load"]


def test_without_a_tracer_nothing_is_noted():
    course = passed(None)
    course.failed("whatever")
    assert not course._spans


def test_spans_are_children_of_their_batch_with_its_attributes():
    exported = InMemorySpanExporter()
    tracer = OpenTelemetryTracer("n1", exported)
    passed(tracer)
    tracer._provider.force_flush()
    spans: Any = exported.get_finished_spans()
    roots = [span for span in spans if span.name == "batch"]
    assert len(spans) == 10
    assert [root.attributes["setl.batch"] for root in roots] == [1, 2]
    assert len({root.context.trace_id for root in roots}) == 2, "each batch is a trace of its own"
    for root in roots:
        assert root.parent is None
        children = [s for s in spans if s.parent and s.parent.span_id == root.context.span_id]
        assert [child.name for child in children] == STAGES
        for child in children:
            assert {"channel", "pipeline", "nid", "epoch", "batch", "position"} == {
                name.removeprefix("setl.") for name in child.attributes
            }
            assert root.start_time <= child.start_time <= child.end_time <= root.end_time
    assert roots[0].attributes["setl.position"] == "binlog.000001:100"
    assert roots[0].attributes["setl.epoch"] == 7
    assert roots[0].resource.attributes["service.instance.id"] == "n1"
    assert not roots[0].status.description
    tracer.close()


def test_a_failed_batch_is_a_span_with_an_error():
    exported = InMemorySpanExporter()
    tracer = OpenTelemetryTracer("n1", exported)
    course = Course(tracer, LEADS, SetClock(100.0, WALL))
    course.begins([batch(1, 99.0, 99.5)])
    course.failed(str(TransientError("a deadlock")))
    tracer._provider.force_flush()
    root: Any = exported.get_finished_spans()[-1]
    assert (root.name, root.status.status_code) == ("batch", StatusCode.ERROR)
    assert "a deadlock" in root.status.description
    tracer.close()


class Collector:
    """Takes OTLP over HTTP, as a collector does."""

    def __init__(self):
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.path, ExportTraceServiceRequest.FromString(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format, *args):  # noqa: A002 - the name of what it overrides
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_a_collector_gets_them_over_otlp(monkeypatch):
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    tracer = tracer_of("n1")
    passed(tracer)
    tracer.close()
    collector.server.shutdown()
    path, _ = collector.received[0]
    assert path == "/v1/traces"
    spans = [
        span.name
        for _, request in collector.received
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert sorted(spans) == sorted([*STAGES, "batch"] * 2)


class Deaf(SpanExporter):
    hears = False

    def export(self, spans):
        if not self.hears:
            raise OSError("nobody is there")
        return SpanExportResult.SUCCESS

    def shutdown(self):
        pass


def test_a_collector_that_is_gone_is_reported_once_and_holds_up_nobody(caplog):
    caplog.set_level(logging.INFO)
    exporter = Deaf()
    tracer = OpenTelemetryTracer("n1", exporter)
    for _ in range(3):
        passed(tracer)
        tracer._provider.force_flush()
    exporter.hears = True
    passed(tracer)
    tracer._provider.force_flush()
    reported = [r.message for r in caplog.records if r.name.startswith("setl")]
    assert reported == ["traces cannot be sent", "traces are sent again"]
    tracer.close()


def test_without_the_sdk_the_hint_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "setl.run.tracing.open_telemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError) as error:
        tracer_of("n1")
    assert "setl[otel]" in error.value.hint


def test_a_node_without_traces_imports_nothing_of_it():
    code = (
        "import sys, setl.cli.nodes.process, setl.node.engines.spark\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
