"""A consumer for the source of a pipeline, as its channel file describes it."""

from __future__ import annotations

from typing import Any

from setl.channel.file import DtsSource
from setl.errors import SetlError
from setl.systems.kafka import client
from setl.systems.kafka.client import FEW, translate
from setl.systems.kafka.settings import kafka_settings

__all__ = ["connect", "translate"]


def connect(source: DtsSource, timeout: float, *, few: bool = False) -> Any:
    """A consumer without an assignment; see `setl.systems.kafka.client.connect`.

    Args:
        source: brokers, account and further settings.
        timeout: seconds to wait for any answer of a broker.
        few: whether only single records will be read.
    """
    settings = kafka_settings(source)
    try:
        return client.connect({**FEW, **settings} if few else settings, timeout)
    except SetlError as error:
        raise error.at(brokers=",".join(source.brokers), topic=source.topic) from error.__cause__
