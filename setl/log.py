"""Logs: a stable message and fields, as text for people or JSON for programs.

Call sites pass fields with ``extra={"setl": {...}}`` through `fields`; the message itself
never varies, so that it can be searched for and counted.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_log = logging.getLogger(__name__)


def fields(**values: object) -> dict[str, Any]:
    """Fields of a log line, for the `extra` argument of a logging call."""
    return {"setl": {k: v for k, v in values.items() if v is not None}}


class TextFormatter(logging.Formatter):
    """A line of ``time level message field=value …``."""

    converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback follows on further lines if there is one."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        text = f"{stamp}.{int(record.msecs):03d}Z {record.levelname:<7} {record.getMessage()}"
        values: dict[str, Any] = getattr(record, "setl", {})
        for name, value in values.items():
            shown = str(value)
            text += f" {name}={_quoted(shown)}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


def _quoted(value: str) -> str:
    # Rows' values come by in errors: one must not begin a line, nor give a terminal commands.
    return json.dumps(value) if " " in value or not value.isprintable() else value


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, tracebacks inside it."""
        line: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "setl", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs tracebacks of what it raises as well, with the root logger instead of its own."""
    return not (record.name == "root" and Path(record.pathname).parent.name == "py4j")


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
"""The levels that can be chosen, the most talkative first."""

# They report as errors what the adapters above them handle.
_LIBRARIES = (
    "kazoo", "kafka", "py4j", "pyspark", "elastic_transport", "elasticsearch", "opensearch",
    "botocore", "urllib3", "uvicorn", "asyncio", "opentelemetry",
)  # fmt: skip


def configure(*, level: str = "INFO", as_json: bool = False) -> None:
    """Send the log of this process to standard error.

    Libraries are only heard at level DEBUG, and then what they warn of; for Spark's own log see
    `setl.run.spark.jvm_output`.

    Args:
        level: the lowest level that is logged, one of `LEVELS`.
        as_json: whether each line is a JSON object, or text for people.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    handler.addFilter(_is_not_of_py4j)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    _log_defects()
    for name in _LIBRARIES:
        heard = logging.WARNING if level == "DEBUG" else logging.CRITICAL
        logging.getLogger(name).setLevel(heard)


def is_json() -> bool:
    """Whether lines of this process are JSON objects, so that nothing else may be among them."""
    return any(isinstance(each.formatter, JsonFormatter) for each in logging.getLogger().handlers)


def _log_defects() -> None:
    """What Python writes to standard error by itself becomes lines of the log."""

    def unhandled(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        _log.critical("ended by an unexpected error", exc_info=(kind, error, trace))

    def in_thread(hook: threading.ExceptHookArgs) -> None:
        if hook.exc_value is not None and not isinstance(hook.exc_value, SystemExit):
            _log.critical(
                "a thread ended by an unexpected error",
                exc_info=(hook.exc_type, hook.exc_value, hook.exc_traceback),
                extra=fields(thread=hook.thread.name if hook.thread else None),
            )

    sys.excepthook = unhandled
    threading.excepthook = in_thread


def configure_command() -> None:
    """Let a command that a person waits for say only what setl itself warns of.

    The variable SETL_LOG_LEVEL asks for more.
    """
    level = os.environ.get("SETL_LOG_LEVEL", "").upper()
    configure(level=level if level in LEVELS else "WARNING")
