"""The formats of topics in which each record stands alone."""

from __future__ import annotations

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.channel.fields.kafka_formats import STANDALONE
from setl.codec.record_header import HeaderReader
from setl.lazy_imports import imported


def header_reader(config: KafkaSource) -> HeaderReader | None:
    """What reads the headers of a topic's records; None for DTS, which has transactions.

    Raises:
        NodeNotReadyError: this installation lacks the format.
    """
    if not config.stands_alone:
        return None
    made = imported(STANDALONE[config.format].headers, f"the format {config.format}")
    return made()
