"""Makes tables before the first row, with a column for each of the source's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa

from setl.channel.routes.routing import selected_columns
from setl.errors import SetlError, TargetReplacedError
from setl.load.creation import Describe, Description, LoadEnd, NewTable
from setl.load.sink import LoadTicket
from setl.model.schema import Column
from setl.systems.delta.commit import VersionTakenError, created
from setl.systems.delta.fence import names_in
from setl.systems.delta.files import exact_columns
from setl.systems.delta.location import Location, Name
from setl.systems.delta.names import refuse_names
from setl.systems.delta.types import made_type

STATISTICS: Final = "delta.dataSkippingStatsColumns"


class DeltaCreation:
    """The `setl.load.creation.TableCreation` of Delta tables.

    A leader that is not one any more creates nothing that its successor would not: a table without
    rows, to which it cannot write.
    """

    def __init__(self, location: Location) -> None:
        """Connect to nothing yet."""
        self._location = location

    def create(
        self,
        ticket: LoadTicket,
        tables: Sequence[NewTable],
        describe: Describe,
        latest: Callable[[], LoadEnd] | None = None,  # noqa: ARG002
        will_reload: Callable[[Name], bool] = lambda _: False,
    ) -> Sequence[str]:
        """See `TableCreation.create`; the first table of a target shapes it."""
        missing: dict[Name, NewTable] = {}
        for table in tables:
            name = table.route.target
            if name not in missing and self._location.of_table(name).open() is None:
                missing[name] = table
        known = names_in(self._location.of_pipeline(ticket.pipeline_key)) if missing else ()
        lost = [
            name
            for name, table in missing.items()
            if name in known and not (table.loaded or will_reload(name))
        ]
        if lost:
            raise _gone(lost, ticket)
        made: list[str] = []
        for name, table in missing.items():
            described = describe(table)
            if described is not None:
                try:
                    made.append(self._create(name, table, described))
                except SetlError as error:
                    raise error.at(pipeline=ticket.pipeline_key, table=".".join(name)) from None
        return made

    def complete(self, ticket: LoadTicket) -> Sequence[str]:  # noqa: ARG002
        """See `TableCreation.complete`; a table is whole from the start."""
        return ()

    def _create(self, name: Name, table: NewTable, described: Description) -> str:
        folder = self._location.of_table(name)
        columns = list(target_columns(table, described))
        refuse_names(column.name for column in columns)
        schema = pa.schema([pa.field(c.name, made_type(c)) for c in columns])
        with suppress(VersionTakenError):  # somebody else was faster
            created(folder, schema, configuration=statistics_of(schema))
        return f"Delta table {folder.uri} for {'.'.join(table.name)}"


def target_columns(table: NewTable, described: Description) -> Iterator[Column]:
    """The columns under their names in the table."""
    schema = described.schema
    for i, name in selected_columns(table.route, schema.names):
        yield replace(schema.columns[i], name=name)
    yield from described.computed


def statistics_of(schema: pa.Schema) -> dict[str, str]:
    """The property that keeps others from noting least and greatest values that are not exact.

    delta-rs, which people optimize tables with, writes wrong ones for long decimals. Readers would
    overlook rows.
    """
    exact = [f"`{name}`" for name in exact_columns(schema) if "`" not in name]
    if exact:
        return {STATISTICS: ",".join(exact)}
    return {"delta.dataSkippingNumIndexedCols": "0"}


def _gone(lost: Sequence[Name], ticket: LoadTicket) -> TargetReplacedError:
    key, channel = ticket.pipeline_key, ticket.leadership.channel
    return TargetReplacedError(
        "gone from the target, where this pipeline had written to it before:"
        f" {', '.join(map('.'.join, lost))}. Rows do not come again by themselves",
        hint=f"`setl load {key} --no-wait` loads tables again; name all that go there, or none."
        f" Then `setl start {channel}`",
        pipeline=key,
    )
