"""The errors of a system that is asked for what it cannot do."""

from __future__ import annotations

from setl.errors import ConfigurationError


def no_log(pipeline: str) -> ConfigurationError:
    """The target takes rows, and no relay's records."""
    return ConfigurationError(
        "not a relay: it does not write a binlog to Kafka",
        hint="`setl node` runs it",
        pipeline=pipeline,
    )
