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


def nothing_to_create() -> ConfigurationError:
    """The target is no `setl.systems.port.CreatingTarget`, and `create: true` asks for tables."""
    return ConfigurationError(
        "this target has no tables that could be created",
        hint="Leave `create` out of the channel file",
    )


def no_dead_letters() -> ConfigurationError:
    """The target has no place for faulty rows."""
    return ConfigurationError(
        "this target keeps no dead letters", hint="Leave `faulty_rows` out of the channel file"
    )
