"""The formats of topics in which each record stands alone."""

from __future__ import annotations

from typing import Final

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.codec.canal.reading.header import CanalHeaderReader
from setl.codec.debezium.reading.header import DebeziumHeaderReader
from setl.codec.record_header import HeaderReader
from setl.errors import ConfigurationError

_READERS: Final[dict[str, type[HeaderReader]]] = {
    "debezium": DebeziumHeaderReader,
    "canal": CanalHeaderReader,
}


def header_reader(config: KafkaSource) -> HeaderReader | None:
    """What reads the headers of a topic's records; None for DTS, which has transactions."""
    if not config.stands_alone:
        return None
    reader = _READERS.get(config.format)
    if reader is None:
        raise ConfigurationError(f"topics of the format {config.format} cannot be read")
    return reader()
