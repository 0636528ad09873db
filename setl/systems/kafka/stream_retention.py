"""For how long a topic keeps the records from a position on."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.clock import SystemClock
from setl.model.position import KafkaPosition
from setl.systems.expiry import StreamRetention
from setl.systems.kafka.client import admin_settings
from setl.systems.kafka.partition import expired
from setl.systems.kafka.settings import source_settings
from setl.systems.kafka.source.access import PartitionAccess

_TIMEOUT: Final = 5.0

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())
_log.propagate = False  # a topic that does not tell is no fault


def topic_retention(config: KafkaSource, position: KafkaPosition) -> StreamRetention:
    """For how long the brokers keep what follows a position.

    They count from when they got a record, which is some time after its commit; so it may be kept
    a little longer than this says.

    Raises:
        SetlError: the brokers do not answer, or refuse the account.
    """
    access = PartitionAccess(config, _TIMEOUT, SystemClock())
    with access.asking() as reader:
        bounds = reader.bounds(config.partition)
    now = time.time()
    if not bounds.first <= position.offset <= bounds.end:
        return StreamRetention(lost=expired(position.offset, bounds).brief, now=now)
    written = float(position.timestamp) if position.timestamp else None
    if position.offset >= bounds.end:
        written = None
    return StreamRetention(
        written=written, retention=_retention(source_settings(config), config.topic), now=now
    )


def topic_setting(settings: Mapping[str, Any], topic: str, name: str) -> str:
    """A setting of a topic, "" if it has none or does not tell."""
    try:
        admin = AdminClient(admin_settings(settings), logger=_log)
        asked = admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=_TIMEOUT
        )
        (entries,) = (answer.result() for answer in asked.values())
        entry = entries.get(name)
        return str(entry.value or "") if entry is not None else ""
    except (KafkaException, ValueError):
        return ""


def _retention(settings: Mapping[str, Any], topic: str) -> float | None:
    """Seconds for which the topic keeps records; None if it keeps all, or does not tell."""
    value = topic_setting(settings, topic, "retention.ms")
    milliseconds = int(value) if value.isdigit() else -1
    return milliseconds / 1000 if milliseconds >= 0 else None
