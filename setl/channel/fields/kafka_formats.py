"""The formats of topics in which each record is a change of its own, beside DTS's.

Where each one is stands here by name. It is imported when a channel asks for it, so that the
others do without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

DTS: Final = "dts"
"""The format that setl itself speaks: it has transactions, and so marks."""


@dataclass(frozen=True, slots=True)
class StandaloneFormat:
    """A format: where it is, as ``module:name``, and what it adds to a channel file.

    Attributes:
        headers: makes its `setl.codec.record_header.HeaderReader`.
        rows: makes its `setl.codec.row_codec.RowCodec`, of the values of `source_fields`.
        serializer: makes its `setl.relay.serializer.Serializer`, see `setl.relay.formats`.
        source_fields: fields of a source that mean something to it alone, each with its value
            where a relay of setl has written the topic.
        target_fields: fields of a target that mean something to it alone.
        read_with: what these must be for setl to read what a relay has written.
        schema_changes: whether a relay writes them if its channel file leaves it open.
    """

    headers: str
    rows: str
    serializer: str
    source_fields: Mapping[str, str] = field(default_factory=dict[str, str])
    target_fields: tuple[str, ...] = ()
    read_with: Mapping[str, object] = field(default_factory=dict[str, object])
    schema_changes: bool = False


STANDALONE: Final[Mapping[str, StandaloneFormat]] = MappingProxyType({
    "debezium": StandaloneFormat(
        headers="setl.codec.debezium.reading.header:DebeziumHeaderReader",
        rows="setl.codec.debezium.reading.rows:DebeziumRowCodec",
        serializer="setl.relay.debezium:debezium_serializer",
        target_fields=("prefix", "schemas", "decimals"),
        read_with={"schemas": True},
    ),
    "canal": StandaloneFormat(
        headers="setl.codec.canal.reading.header:CanalHeaderReader",
        rows="setl.codec.canal.reading.rows:CanalRowCodec",
        serializer="setl.relay.canal:canal_serializer",
        source_fields={"time_zone": "UTC"},
        schema_changes=True,
    ),
})  # fmt: skip
"""Each by what stands as `format` in a channel file."""

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[(DTS, *STANDALONE)]
