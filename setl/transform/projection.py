"""Turns what is left of a share into changes of targets: columns mapped, documents formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.channel.routes.routing import Route, selected_columns
from setl.errors import DataError
from setl.model.change import TargetChanges
from setl.model.document import DocumentForm, DocumentOrigin
from setl.model.schema import Column, Kind, RowSchema
from setl.model.unlogged_columns import unlogged_error
from setl.transform.columns import READ_AT_SOURCE, ColumnPlan, key_indexes
from setl.transform.survivors import Survivors

_NUMBERS: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT})
_LABELS: Final = frozenset({Kind.ENUM, Kind.SET})


def project(survivors: Sequence[tuple[Route, RowSchema, Survivors]]) -> list[TargetChanges]:
    """Survivors as changes of their targets, columns mapped; for routes without expressions.

    Raises:
        ConfigurationError: a mapping names a column that the table does not have.
        DataError: a document would lack columns.
    """
    changes: list[TargetChanges] = []
    for route, schema, part in survivors:
        unlogged = tuple(target for _, target in selected_columns(route, schema.unlogged))
        if route.into_index and part.upserts and (part.partial or unlogged):
            raise half_a_document(schema, part, unlogged)
        incomplete = part.partial or bool(schema.unlogged)
        plan = ColumnPlan.build(schema, route, incomplete=incomplete, keyless=part.keyless)
        document = None if part.keyless else document_form(schema, route)
        changes.append(
            TargetChanges(
                target=route.target,
                columns=plan.columns,
                key=plan.key,
                upserts=plan.rows(part.upserts),
                deletes=[*plan.rows(part.deletes)] if part.keyless else part.deletes,
                upsert_versions=part.upsert_versions,
                delete_versions=part.delete_versions,
                group=route.group,
                document=document,
                source=schema.name,
                partial=part.partial,
                ids=document and ids_made_of(schema, route, document, plan),
                mapped_by=route.mapped_by,
                unlogged=unlogged,
                keyless=part.keyless,
            )
        )
    return changes


def document_form(schema: RowSchema, route: Route) -> DocumentForm | None:
    """How rows of a table become documents; None if they go to a table.

    Raises:
        ConfigurationError: the mapping does not fit the table's key.
    """
    return route.document([schema.names[i] for i in key_indexes(schema, route.key)])


def ids_made_of(
    schema: RowSchema, route: Route, form: DocumentForm, plan: ColumnPlan
) -> DocumentOrigin:
    """What the ids of a table's documents are made of.

    Columns have the names of their fields: a key column that is renamed at the source may keep its
    field, and with it the documents. Of its type only counts what changes how a value is written.
    """
    key = [plan.columns[i] for i in plan.key]
    described = _written_as if route.ids_of.distinguishes_types else _named
    columns = ", ".join(described(key[i]) for i in form.values)
    template = f"{route.ids_of.template} of " if route.ids_of.template else ""
    routed = "" if form.routing is None else f", routed by {described(key[form.routing])}"
    entry = route.ids_of.entry
    if route.ids_of.of_each_table:
        entry = f"{schema.name} by {entry}"
    return DocumentOrigin(entry, f"{template}{columns}{routed}")


def _written_as(column: Column) -> str:
    kind = column.kind.value
    if column.kind in _NUMBERS:
        kind = "number"
    elif column.kind in _LABELS:
        kind = Kind.TEXT.value
    elif column.kind is Kind.DECIMAL:
        kind += f" with {column.scale} decimals" if column.scale else ""
    elif column.width:
        # Distinguished in `setl.systems.search_index.load.document_origin` from what earlier
        # releases noted.
        kind += ", any length" if column.width < 0 else f", {column.width} bytes"
    return f"{_named(column)} ({kind})"


def _named(column: Column) -> str:
    return column.name.lower()


def half_a_document(schema: RowSchema, part: Survivors, unlogged: Sequence[str] = ()) -> DataError:
    """The error of a row that mentions some of its columns and is to be a document."""
    row = part.upserts[0]
    key = ", ".join(str(row[i]) for i in part.key)[:200]
    if unlogged:
        error = unlogged_error(schema.name, unlogged)
        error.at(key=key)
        return error
    return DataError(
        f"a record of {schema.name} mentions only the columns {', '.join(schema.names)}, and the"
        " document would lose the others",
        hint="Set binlog_row_image=FULL at the source, or subscribe to all columns. "
        + READ_AT_SOURCE,
        table=schema.name,
        key=key,
    )
