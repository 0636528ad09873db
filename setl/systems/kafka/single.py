"""Topics that a consumer group can share without losing order: those with one partition."""

from __future__ import annotations

from setl.errors import ConfigurationError


def check_single(partitions: set[int]) -> None:
    """See that a topic has one partition, as those of DTS.

    Raises:
        ConfigurationError: it has more, or there is no such topic.
    """
    if not partitions:
        raise ConfigurationError(
            "the brokers have no such topic",
            hint="Check `topic` of the source, and what the account may see",
        )
    if len(partitions) > 1:
        raise ConfigurationError(
            f"the topic has {len(partitions)} partitions, and `mode: subscribe` can read topics"
            " with one only",
            hint="Use `mode: assign` with `partitions`",
        )
