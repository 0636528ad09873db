"""Traces as spans of OpenTelemetry. The one module that imports its SDK.

The SDK sends from a thread of its own. What cannot be sent in time is dropped: the pipeline never
waits for it. Its variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_SAMPLER`` and others)
say where spans go and how many.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from setl import __version__
from setl.log import fields
from setl.run.tracing.trace import BatchTrace

_log = logging.getLogger(__name__)

_LAST_MILLISECONDS = 3_000  # for what is left at the end


class OpenTelemetryTracer:
    """See `setl.run.tracing.trace.Tracer`."""

    def __init__(self, nid: str, exporter: SpanExporter | None = None) -> None:
        """Begin to send.

        Args:
            nid: the node.
            exporter: what sends; None for OTLP over HTTP, as the SDK's variables say.
        """
        resource = Resource.create({
            "service.name": "setl",
            "service.version": __version__,
            "service.instance.id": nid,
        })  # fmt: skip
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        sent = _LoggedExporter(exporter or OTLPSpanExporter())
        self._provider.add_span_processor(BatchSpanProcessor(sent))
        self._tracer = self._provider.get_tracer("setl", __version__)

    def export(self, traces: Sequence[BatchTrace]) -> None:
        """See `Tracer.export`."""
        for trace in traces:
            self._export(trace)

    def _export(self, trace: BatchTrace) -> None:
        leadership = trace.leadership
        attributes: dict[str, str | int] = {
            "setl.channel": leadership.channel,
            "setl.pipeline": leadership.pipeline,
            "setl.nid": leadership.nid,
            "setl.epoch": leadership.epoch,
            "setl.batch": trace.batch,
            "setl.position": trace.position,
        }
        whole = self._tracer.start_span(
            "batch",
            Context(),
            attributes={
                **attributes,
                "setl.rows": trace.rows,
                "setl.bytes": trace.size,
                "setl.batches_together": trace.together,
            },
            start_time=_nanoseconds(trace.begun),
        )
        for span in trace.stages:
            child = self._tracer.start_span(
                span.stage,
                set_span_in_context(whole, Context()),
                attributes=attributes,
                start_time=_nanoseconds(span.begun),
            )
            child.end(_nanoseconds(span.ended))
        if trace.error:
            whole.set_status(Status(StatusCode.ERROR, trace.error))
        whole.end(_nanoseconds(trace.ended))

    def close(self) -> None:
        """See `Tracer.close`."""
        self._provider.force_flush(_LAST_MILLISECONDS)
        self._provider.shutdown()


class _LoggedExporter(SpanExporter):
    """Says in the log when spans cannot be sent, and when they can again; not each time."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See `SpanExporter.export`."""
        error = ""
        try:
            result = self._exporter.export(spans)
        except Exception as failure:  # noqa: BLE001 - whatever an exporter raises, it is no more than this
            result, error = SpanExportResult.FAILURE, repr(failure)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._fails:
            _log.warning("traces cannot be sent", extra=fields(error=error or None))
        elif self._fails and not failed:
            _log.info("traces are sent again")
        self._fails = failed
        return result

    def shutdown(self) -> None:
        """See `SpanExporter.shutdown`."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See `SpanExporter.force_flush`."""
        return self._exporter.force_flush(timeout_millis)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
