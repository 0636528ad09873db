"""The formats in which a relay writes records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from setl.clock import Clock
from setl.codec.dts.record_writer import DtsRecordWriter
from setl.codec.dts.table_form import DtsTableForms
from setl.relay.canal import CanalSerializer
from setl.relay.debezium import DebeziumSerializer
from setl.relay.dts import DtsSerializer
from setl.relay.ports import RelayedTables
from setl.relay.serializer import Serializer


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How records are written.

    Attributes:
        name: of the format.
        prefix: what Debezium calls the server.
        schemas: whether each record of Debezium's has its schema.
        decimals: how these have a DECIMAL.
        schema_changes: whether there is a record of each schema change; of DTS there always is.
    """

    name: Literal["dts", "debezium", "canal"] = "dts"
    prefix: str = ""
    schemas: bool = False
    decimals: Literal["precise", "string"] = "precise"
    schema_changes: bool = False

    @property
    def has_own_tables(self) -> bool:
        """Whether rows of setl's own tables are written, on which its subscribers act."""
        return self.name == "dts"


def serializer_of(form: RecordFormat, tables: RelayedTables, clock: Clock) -> Serializer:
    """What writes a stream in a format; nothing is known of tables yet.

    Raises:
        SetlError: the source does not answer.
    """
    version = tables.server_version()
    if form.name == "debezium":
        return DebeziumSerializer(
            form.prefix,
            clock,
            mariadb="mariadb" in version.lower(),
            schemas=form.schemas,
            exact_decimals=form.decimals == "string",
            schema_changes=form.schema_changes,
        )
    if form.name == "canal":
        return CanalSerializer(clock, schema_changes=form.schema_changes)
    return DtsSerializer(DtsRecordWriter(version), DtsTableForms(tables.unique_keys), clock)
