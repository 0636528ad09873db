"""Foretells the stop at rows whose documents would have other ids than those that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from setl.errors import SetlError
from setl.model.document import DocumentOrigin
from setl.model.logged_bytes import column_as_logged
from setl.model.schema import Kind
from setl.systems.finding import Report
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.load.document_origin import other_ids
from setl.systems.search_index.load.ids import MAX_ID_BYTES
from setl.systems.search_index.preflight.arriving import Arriving
from setl.transform.columns import ColumnPlan
from setl.transform.projection import document_form, ids_made_of, key_indexes

_MAY_BE_EMPTY: Final = frozenset({Kind.TEXT, Kind.BINARY})


def check_id_field(
    client: SearchClient,
    index: str,
    described: Mapping[str, Any],
    arriving: Sequence[Arriving],
    *,
    pipeline: str,
    report: Report,
) -> None:
    """Report rows whose ids are made of something else than is noted in an index.

    Args:
        client: of the cluster.
        index: the index.
        described: what the cluster tells of it.
        arriving: what its documents are made of.
        pipeline: ``channel/pipeline``.
        report: where to report it.

    Raises:
        AnswerError, SetlError: the cluster does not answer as it should.
    """
    for rows in arriving:
        ids = _ids(rows)
        fault = ids and other_ids(client, index, described, pipeline, ids)
        if fault:
            # Of a pipeline that is behind, such rows may still be on their way.
            report.error(fault.message, fault.hint, code="other-ids", risk=True)


def report_odd_ids(arriving: Sequence[Arriving], report: Report) -> None:
    """Say which rows no document can be made of, since their key is no id: too long, or empty."""
    for rows in arriving:
        route, schema = rows.route, rows.schema
        if route.nests(schema.schema, schema.table):
            continue
        with suppress(SetlError):  # which other checks report
            form = document_form(schema, route)
            if form is None:
                continue
            columns = [schema.columns[i] for i in key_indexes(schema, route.key)]
            key = [columns[i] for i in form.values]
            names = ", ".join(column.name for column in key)
            if not any(form.texts) and key[0].kind in _MAY_BE_EMPTY:
                report.ok(
                    f"a row of {schema.name} whose {names} is empty text would stop the pipeline,"
                    f' since a document\'s id cannot be empty; with `id: "k{{{names}}}"` in'
                    f" tables[{route.index}] it has one"
                )
            extents = {field.column.name: field.extent.length for field in rows.fields}
            if sum(extents.get(column.name, 0) for column in key) > MAX_ID_BYTES:
                report.ok(
                    f"a row of {schema.name} whose {names} has more than {MAX_ID_BYTES} bytes would"
                    " stop the pipeline, since no document's id is longer; with `faulty_rows:"
                    " dead_letter` it is put aside"
                )


def _ids(rows: Arriving) -> DocumentOrigin | None:
    """What the ids will be made of; None if they are another table's, or nothing is right."""
    route, schema = rows.route, rows.schema
    if route.nests(schema.schema, schema.table):
        return None
    schema = replace(schema, columns=tuple(map(column_as_logged, schema.columns)))
    with suppress(SetlError):  # which other checks report
        document = document_form(schema, route)
        plan = ColumnPlan.build(schema, route)
        return document and ids_made_of(schema, route, document, plan)
    return None
