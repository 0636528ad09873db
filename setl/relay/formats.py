"""The formats in which a relay writes records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from setl.channel.fields.kafka_formats import DTS, STANDALONE
from setl.clock import Clock
from setl.codec.dts.record_writer import DtsRecordWriter
from setl.codec.dts.table_form import DtsTableForms
from setl.lazy_imports import imported
from setl.relay.dts import DtsSerializer
from setl.relay.ports import RelayedTables
from setl.relay.serializer import Serializer


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How records are written.

    Attributes:
        name: of the format.
        topic: where they are written.
        schema_changes: whether there is a record of each schema change; of DTS there always is.
        options: the values of the format's own fields, see
            `setl.channel.fields.kafka_formats.StandaloneFormat`.
    """

    name: str = DTS
    topic: str = ""
    schema_changes: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def has_own_tables(self) -> bool:
        """Whether rows of setl's own tables are written, on which its subscribers act."""
        return self.name == DTS


def serializer_of(form: RecordFormat, tables: RelayedTables, clock: Clock) -> Serializer:
    """What writes a stream in a format; nothing is known of tables yet.

    Raises:
        NodeNotReadyError: this installation lacks the format.
        SetlError: the source does not answer.
    """
    made = serializer_maker(form.name)
    version = tables.server_version()
    if made is None:
        return DtsSerializer(DtsRecordWriter(version), DtsTableForms(tables.unique_keys), clock)
    return made(form, version, clock)


def serializer_maker(name: str) -> Callable[[RecordFormat, str, Clock], Serializer] | None:
    """What makes the serializer for a server's version; None for DTS, which asks the source more.

    Raises:
        NodeNotReadyError: this installation lacks the format.
    """
    if name == DTS:
        return None
    return imported(STANDALONE[name].serializer, f"the format {name}")
