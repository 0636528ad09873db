"""Lists what arrives in each index: tables, routes and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from setl.channel.file import Source
from setl.channel.routes.routing import Route, selected_columns
from setl.model.logged_bytes import column_as_logged
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.server import Server
from setl.systems.mysql.table_facts import ColumnFacts, read_columns
from setl.systems.pipeline_check import SourceTable
from setl.systems.search_index.field_fit import Extent, whole_numbers

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_BYTES_OF_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class Field:
    """A column on its way to a field.

    Attributes:
        column: as documents are made of it, under the field's name.
        extent: what else the source says of it.
        signed_unknown: whether the source's records leave open that it is unsigned, and holds
            numbers beyond what a signed column does.
    """

    column: Column
    extent: Extent
    signed_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Arriving:
    """Rows of one source table on their way to one index."""

    schema: RowSchema
    route: Route
    fields: tuple[Field, ...]


def arriving(
    tables: Sequence[SourceTable], source: Source, server: Server | None
) -> dict[str, list[Arriving]]:
    """What arrives in each index, by its name.

    Raises:
        SetlError: the server does not answer.
    """
    found: dict[str, list[Arriving]] = {}
    for table in tables:
        name = (table.schema.schema, table.schema.table)
        facts = read_columns(server, *name) if server is not None else {}
        for route in table.routes:
            fields = [
                _field(table.schema.columns[i], target, facts, source)
                for i, target in selected_columns(route, table.schema.names)
            ]
            fields += [Field(c, Extent(whole_numbers(c))) for c in table.computed_by(route)]
            rows = Arriving(table.schema, route, tuple(fields))
            found.setdefault(route.target[1], []).append(rows)
    return found


def _field(column: Column, name: str, facts: dict[str, ColumnFacts], source: Source) -> Field:
    fact = facts.get(column.name.lower())
    bits = 0
    if fact is not None:
        bits = fact.precision if column.kind is Kind.BIT else _BITS.get(fact.data_type, 0)
    whole = whole_numbers(column, bits)
    length = fact.length if fact is not None else 0
    if column.kind is not Kind.BINARY:
        length *= _BYTES_OF_A_CHARACTER
    extent = Extent(whole, fact is not None and fact.data_type == "float", length)
    seen = column_as_logged(replace(column, name=name))
    unknown = not source.has_signs and column.unsigned
    if unknown:
        # Records of a subscription give a column's numbers, but not whether it has a sign.
        seen = replace(seen, unsigned=False)
    return Field(seen, extent, unknown and whole is not None and whole[1] > 2**63 - 1)
