"""The indexes of a target: what setl will create, and whether what is there fits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final, cast

from setl.systems.finding import Report
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.errors import AnswerError
from setl.systems.search_index.field_fit import misfit
from setl.systems.search_index.field_names import faulty_names, hint
from setl.systems.search_index.mapping import (
    GC_DELETES,
    GC_DELETES_SECONDS,
    field_of,
    mapped_field,
    mapping_lines,
    takes_new_fields,
)
from setl.systems.search_index.preflight.arriving import Arriving, Field
from setl.systems.search_index.preflight.ids import check_id_field, report_odd_ids

_DEFAULT_GC_DELETES = "60s"
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "micros": 1e-6, "nanos": 1e-9}
_BLOCKS = ("write", "read_only", "read_only_allow_delete")

_DEFAULT_FIELD_LIMIT = 1000
_NO_PIPELINE = "_none"

_SURE: Final = {"index": {"translog": {"durability": "request"}}}


def check_index(
    client: SearchClient, index: str, arriving: Sequence[Arriving], pipeline: str, report: Report
) -> None:
    """Report what setl will create, or what is wrong with an index that is there.

    Args:
        client: of the cluster.
        index: the index, or an alias.
        arriving: what its documents are made of; empty if that is not known.
        pipeline: whose they are, ``channel/pipeline``.
        report: where to put it.

    Raises:
        AnswerError, SetlError: the cluster does not answer as it should.
    """
    table_report = report.at(f"index {index}")
    check_names(arriving, table_report)
    report_odd_ids(arriving, table_report)
    if not client.exists(index):
        _check_missing(client, index, arriving, table_report)
        return
    # The name may be an alias, which can stand for several indexes.
    found: dict[str, Any] = client.describe(index)
    if len(found) > 1:
        table_report.error(
            f"the alias stands for {len(found)} indexes: {', '.join(sorted(found))}",
            "Let it stand for one, or name an index in `to`",
            code="alias-of-many",
        )
    for name, described in found.items():
        settings: dict[str, Any] = described.get("settings", {}).get("index", {})
        _check_blocks(name, settings, table_report)
        _check_gc_deletes(name, settings, table_report)
        check_durability(name, settings, table_report)
        _check_ingest(settings, table_report)
        _check_alias(index, described, table_report)
        check_id_field(client, name, described, arriving, pipeline=pipeline, report=table_report)
        mapping: dict[str, Any] = described.get("mappings", {})
        added = _check_mapping(name, mapping, settings, arriving, table_report)
        if added:
            _ok(table_report, f"setl will add fields for {', '.join(added)}", {"properties": added})


def _check_missing(
    client: SearchClient, index: str, arriving: Sequence[Arriving], report: Report
) -> None:
    template, unseen = _template(client, index)
    settings: dict[str, Any] = template.get("settings", {}).get("index", {})
    mapping: dict[str, Any] = deepcopy(template.get("mappings", {}))
    added = _check_mapping(index, mapping, settings, arriving, report)
    mapping["properties"] = {**mapping.get("properties", {}), **added}
    if "gc_deletes" in settings:
        _check_gc_deletes(index, settings, report)
    check_durability(index, settings, report)
    _check_ingest(settings, report)
    shown = {**settings, "gc_deletes": settings.get("gc_deletes", GC_DELETES)}
    reported = ", ".join(f"{k} {_short(v)}" for k, v in sorted(shown.items()))
    by = " as index templates of the cluster say" if template else ""
    what = f"setl will create the index{by} ({reported}), with this mapping"
    if not arriving:
        what = f"setl will create the index{by}, with a field for each column"
    if arriving:
        _ok(report, what + unseen, mapping)
    else:
        report.ok(what + unseen)


def _template(client: SearchClient, index: str) -> tuple[dict[str, Any], str]:
    """What index templates give to an index, and a note if that cannot be seen."""
    try:
        return client.template_of(index), ""
    except AnswerError as error:
        if error.status not in {400, 403, 404, 405}:
            raise
        return {}, " (whether an index template applies cannot be seen by this account)"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def check_names(arriving: Sequence[Arriving], report: Report) -> None:
    """Report columns whose names an index cannot have."""
    for rows in arriving:
        names = [field.column.name for field in rows.fields]
        for fault in faulty_names(names):
            report.error(
                f"{fault.name!r} of {rows.schema.name} {fault.reason}",
                hint(fault.name, rows.route.index),
                code="field-name",
            )


def _check_mapping(
    index: str,
    mapping: dict[str, Any],
    settings: dict[str, Any],
    arriving: Sequence[Arriving],
    report: Report,
) -> dict[str, Any]:
    """Compare fields with what arrives; returns the fields that setl will add."""
    properties: dict[str, Any] = mapping.get("properties", {})
    added: dict[str, Any] = {}
    lacking: dict[str, Any] = {}
    may_add = takes_new_fields(mapping)
    for rows in arriving:
        for field in rows.fields:
            name = field.column.name
            there = mapped_field(properties, name) or added.get(name)
            if there is None:
                there = field_of(field.column, rows.route.geometry)
                (added if may_add else lacking)[name] = there
            _check_field(index, field, there, rows, report)
        _check_routing(mapping, rows, report)
    if lacking:
        _report_missing_fields(index, mapping, lacking, report)
    _check_source(mapping, settings, report)
    _check_count({**properties, **added}, settings, index, report)
    return added


def _check_field(
    index: str, field: Field, there: dict[str, Any], rows: Arriving, report: Report
) -> None:
    column = field.column
    found = misfit(column, there, field.extent, rows.route.geometry)
    if found is None:
        return
    what = f"the field {column.name} {found.reason} ({column.kind.value} of {rows.schema.name})"
    fix_hint = (
        "Map it otherwise in a new index, or convert it with `columns`, or leave it out, in"
        f" tables[{rows.route.index}]"
    )
    if field.signed_unknown and there.get("type") == "long":
        wanted = {"mappings": {"properties": {column.name: {"type": "unsigned_long"}}}}
        what = (
            f"the field {column.name} would be long, since a subscription does not say that the"
            f" column of {rows.schema.name} is unsigned; numbers from 2**63 on would be refused"
        )
        fix_hint = (
            f"Create the index before the first row arrives: PUT /{index} {json.dumps(wanted)}"
        )
    (report.error if found.refused else report.warning)(what, fix_hint, code="field-type")


def _check_routing(mapping: dict[str, Any], rows: Arriving, report: Report) -> None:
    if mapping.get("_routing", {}).get("required") and rows.route.routing is None:
        report.error(
            "the index requires a routing, and the mapping has none",
            f"Name a column under `routing` in tables[{rows.route.index}]",
            code="index-routing",
        )


def _report_missing_fields(
    index: str, mapping: dict[str, Any], lacking: dict[str, Any], report: Report
) -> None:
    dynamic = str(mapping.get("dynamic")).lower()
    what = f"the index has no field for {', '.join(lacking)}, and takes none (dynamic: {dynamic})"
    fix_hint = (
        f"PUT /{index}/_mapping {json.dumps({'properties': lacking})}, or leave the columns out"
    )
    if dynamic == "strict":
        report.error(f"{what}: documents are refused", fix_hint, code="field-refuses")
    else:
        report.warning(
            f"{what}: the values are kept, but cannot be searched",
            fix_hint,
            code="field-not-searchable",
        )


def _check_source(mapping: dict[str, Any], settings: dict[str, Any], report: Report) -> None:
    source: dict[str, Any] = mapping.get("_source", {})
    mode = settings.get("mapping", {}).get("source", {}).get("mode", source.get("mode"))
    if mode == "synthetic":
        report.warning(
            "the index makes documents up from its fields (synthetic _source), which lose digits,"
            " order and fractions of seconds",
            "Use an index with a stored _source",
            code="synthetic-source",
        )
    elif source.get("enabled") is False or source.get("includes") or source.get("excludes"):
        report.warning(
            "the index does not keep all of its documents (_source), so they cannot be verified",
            "Use an index with a complete _source",
            code="source-disabled",
        )


def _check_count(
    properties: dict[str, Any], settings: dict[str, Any], index: str, report: Report
) -> None:
    limit = settings.get("mapping", {}).get("total_fields", {}).get("limit", _DEFAULT_FIELD_LIMIT)
    count = _count(properties)
    if count > int(limit):
        wanted = json.dumps({"index": {"mapping": {"total_fields": {"limit": count + 100}}}})
        report.error(
            f"the index would have {count} fields, more than its limit of {limit}",
            f"PUT /{index}/_settings {wanted}, or in an index template; or leave columns out",
            code="too-many-fields",
        )


def _count(properties: dict[str, Any]) -> int:
    return sum(
        1 + _count(field.get("properties", {})) + len(field.get("fields", {}))
        for field in properties.values()
    )


def _check_blocks(name: str, settings: dict[str, Any], report: Report) -> None:
    blocks: dict[str, Any] = settings.get("blocks", {})
    held = [b for b in _BLOCKS if str(blocks.get(b)).lower() == "true"]
    if held:
        unset = ", ".join(f'"index.blocks.{b}": null' for b in held)
        report.error(
            f"the index is blocked for writing ({', '.join(held)})",
            f"PUT /{name}/_settings {{{unset}}}, once there is space on the disks",
            code="index-blocked",
        )


def _check_gc_deletes(name: str, settings: dict[str, Any], report: Report) -> None:
    written = str(settings.get("gc_deletes", _DEFAULT_GC_DELETES))
    stored = seconds(written)
    if stored is None or stored >= GC_DELETES_SECONDS:
        return
    wanted = json.dumps({"index": {"gc_deletes": GC_DELETES}})
    report.warning(
        f"the index forgets the versions of deleted documents after {written} (index.gc_deletes);"
        " a node that was frozen for longer and then sends what it had in hand could bring a"
        " deleted document back",
        f"PUT /{name}/_settings {wanted}",
        code="index-forgets-deletes",
    )


def _check_ingest(settings: dict[str, Any], report: Report) -> None:
    """Warn of what changes documents on their way into the index."""
    for name in ("default_pipeline", "final_pipeline"):
        pipeline = settings.get(name, _NO_PIPELINE)
        if pipeline != _NO_PIPELINE:
            report.warning(
                f"documents pass through the ingest pipeline {pipeline} (index.{name}): what it"
                " drops or changes is not as at the source, and a document that it sends elsewhere"
                " is never deleted",
                "See that it only adds fields, or take it out of the index's settings",
                code="ingest-pipeline",
            )


def _check_alias(index: str, described: dict[str, Any], report: Report) -> None:
    """Warn of an alias through which not all documents are seen."""
    alias: dict[str, Any] = described.get("aliases", {}).get(index, {})
    if alias.get("filter"):
        report.warning(
            "the alias has a filter: a comparison does not see the documents that it leaves out,"
            " and takes their rows for missing; nor does a TRUNCATE under `ddl: pass`, which leaves"
            " them there",
            "Name an alias without a filter, or the index",
            code="alias-filter",
        )


def seconds(written: str) -> float | None:
    """A time value as clusters write it, such as ``60s``, in seconds; None if it is none."""
    found = re.fullmatch(r"(-?\d+)(\w*)", written.strip())
    if found is None:
        return None
    unit = _UNITS.get(found.group(2).lower() or "ms")
    return None if unit is None else int(found.group(1)) * unit


def _ok(report: Report, what: str, mapping: dict[str, Any]) -> None:
    report.ok(what, mapping=mapping, lines=mapping_lines(mapping))


def check_durability(name: str, settings: dict[str, Any], report: Report) -> None:
    """Report an index that loses documents of which the checkpoint says that they are written.

    The checkpoint is never in the index, so they are not written again.

    Args:
        name: of the index.
        settings: what stands below ``index`` in its settings.
        report: where to put it.
    """
    translog = settings.get("translog")
    found = cast("dict[str, Any]", translog) if isinstance(translog, dict) else {}
    durability = found.get("durability", settings.get("translog.durability"))
    if str(durability).lower() == "async":
        report.warning(
            "index.translog.durability is async: if a server of the cluster fails, the last"
            " documents that it has taken may be lost, and are not written again; compare with"
            " `setl verify`",
            f"PUT /{name}/_settings {json.dumps(_SURE)}",
            code="documents-not-flushed",
        )
