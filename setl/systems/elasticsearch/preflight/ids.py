"""Foretells the stop at rows whose documents would have other ids than those that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from elasticsearch import Elasticsearch

from setl.errors import SetlError
from setl.model.document import MadeOf
from setl.model.logged_bytes import column_as_logged
from setl.systems.elasticsearch.load.made_of import other_ids
from setl.systems.elasticsearch.preflight.arriving import Arriving
from setl.systems.finding import Report
from setl.transform.columns import ColumnPlan
from setl.transform.projection import document_form, ids_made_of


def check_kept_ids(
    client: Elasticsearch,
    index: str,
    described: Mapping[str, Any],
    arriving: Sequence[Arriving],
    *,
    pipeline: str,
    place: Report,
) -> None:
    """Report rows whose ids are made of something else than is noted in an index.

    Args:
        client: of the cluster.
        index: the index.
        described: what the cluster tells of it.
        arriving: what its documents are made of.
        pipeline: ``channel/pipeline``.
        place: where to report it.

    Raises:
        ApiError, TransportError: the cluster does not answer as it should.
    """
    for rows in arriving:
        ids = _ids(rows)
        fault = ids and other_ids(client, index, described, pipeline, ids)
        if fault:
            # Of a pipeline that is behind, such rows may still be on their way.
            place.error(fault.message, fault.hint, code="other-ids", risk=True)


def _ids(rows: Arriving) -> MadeOf | None:
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
