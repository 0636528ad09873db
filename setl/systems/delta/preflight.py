"""Checks of a target of Delta tables, before a channel starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from setl.channel.fields.delta_endpoint import DeltaTarget
from setl.channel.routes.routing import Route, selected_columns
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.delta.creation import STATISTICS
from setl.systems.delta.files import asked_columns, described_columns, schema_of
from setl.systems.delta.location import Location, deltalake
from setl.systems.delta.names import NAME_HINT, faulty_names
from setl.systems.delta.suitable import why_unsuitable
from setl.systems.delta.types import delta_name, made_type, takes
from setl.systems.finding import Report
from setl.systems.pipeline_check import PipelineCheck, SourceTable
from setl.transform.projection import key_indexes

_CALENDAR = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})


def check_delta_target(config: DeltaTarget, check: PipelineCheck, report: Report) -> None:
    """Report everything about the tables that rows go to.

    Raises:
        SetlError: deltalake is missing, or the storage does not answer.
    """
    deltalake()
    location = Location.of(config)
    if location.local:
        _check_folder(Path(location.root), report)
    if check.pipeline.stores_dead_letters:
        report.error(
            "Delta tables keep no dead letters",
            "Leave `faulty_rows` out of the channel file",
            code="no-dead-letters",
        )
    for table in check.tables:
        for route in table.routes:
            at = report.at(".".join(route.target))
            with at.failing():
                _check_route(location, config, table, route, at)


def _check_folder(root: Path, report: Report) -> None:
    above = next((p for p in (root, *root.parents) if p.exists()), root)
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        report.error(
            f"{root} cannot be written to", "Let the account write there", code="not-writable"
        )
    else:
        report.ok(
            f"{root} can be written to here; it must be the same folder on nodes and executors"
        )


def _check_route(
    location: Location, config: DeltaTarget, table: SourceTable, route: Route, report: Report
) -> None:
    columns = list(_columns(table, route))
    faulty = faulty_names(column.name for column in columns)
    if faulty:
        report.error(
            f"{', '.join(map(repr, faulty))} cannot be the name of a column of a Delta table",
            NAME_HINT,
            code="column-name",
        )
    _check_key(table.schema, route, report)
    folder = location.of_table(route.target)
    there = folder.open()
    if there is None:
        if not route.create:
            report.error(
                f"there is no Delta table in {folder.uri}",
                f"Write `create: true` in tables[{route.index}], or create it",
                code="no-table",
            )
            return
        made = [f"{column.name} {delta_name(made_type(column))}" for column in columns]
        report.ok(f"setl will create the Delta table {folder.uri}", lines=made)
        schema = pa.schema([pa.field(c.name, made_type(c)) for c in columns])
    else:
        schema = schema_of(there)
        if why := why_unsuitable(there):
            report.error(
                f"setl does not write to this Delta table: {why}",
                "Give the rows another table with `to`, and have it made with `create: true`",
                code="table-form",
            )
        if asked_columns(there) and not described_columns(there):
            report.warning(
                "the properties of the table ask for statistics of columns whose values are not"
                " exact in a log, and setl writes none: each load looks at the keys in all files",
                f"Have the table made with `create: true`, or set {STATISTICS} to integer and date"
                " columns, the key's among them",
                code="no-statistics",
            )
    _check_columns(schema, columns, route, report)
    dates = [column.name for column in columns if column.kind in _CALENDAR]
    if dates and config.zero_dates == "refuse":
        report.ok(
            f"a date in {', '.join(dates)} that no calendar has, such as 0000-00-00, would stop the"
            " pipeline; with `zero_dates: as_null` it is NULL"
        )


def _check_key(schema: RowSchema, route: Route, report: Report) -> None:
    key = [schema.columns[i] for i in key_indexes(schema, route.key)]
    if not key:
        report.error(
            "rows of a table without a key cannot be told from each other in a Delta table",
            "Give the table a primary key, or name columns that are unique and never NULL under"
            f" `key` in tables[{route.index}]",
            code="no-key",
        )
    for column in key:
        if column.kind is Kind.FLOAT:
            report.error(
                f"the key column {column.name} is a floating-point number, of which 0.0 and -0.0"
                " are one key",
                f"Name other columns under `key` in tables[{route.index}]",
                code="float-key",
            )


def _check_columns(
    schema: pa.Schema, columns: Sequence[Column], route: Route, report: Report
) -> None:
    own = {field.name.lower(): field for field in schema}
    for column in columns:
        field = own.get(column.name.lower())
        if field is None:
            report.error(
                f"the Delta table has no column {column.name}",
                f"Add it, or leave it out (`exclude`) in tables[{route.index}]",
                code="no-column",
            )
        elif not takes(field.type, column):
            report.error(
                f"column {field.name} is {delta_name(field.type)}, which does not hold all values"
                f" of {column.name} ({column.kind.value})",
                f"Map it otherwise, or leave it out (`exclude`) in tables[{route.index}]",
                code="column-type",
            )


def _columns(table: SourceTable, route: Route) -> Iterator[Column]:
    for i, name in selected_columns(route, table.schema.names):
        yield replace(table.schema.columns[i], name=name)
    yield from table.computed_by(route)
