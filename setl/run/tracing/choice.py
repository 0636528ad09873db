"""Which tracer a node has."""

from __future__ import annotations

from setl.errors import ConfigurationError
from setl.run.tracing.trace import Tracer


def tracer_of(nid: str) -> Tracer:
    """A tracer that sends spans of OpenTelemetry; its SDK is imported only now.

    Raises:
        ConfigurationError: the SDK is not installed.
    """
    try:
        from setl.run.tracing.open_telemetry import OpenTelemetryTracer  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            f"traces need OpenTelemetry, and {error.name} is not installed",
            hint="pip install 'setl[otel]', or leave --traces out",
        ) from error
    return OpenTelemetryTracer(nid)
