"""Checks that tables with a conflict policy allow it."""

from __future__ import annotations

from collections.abc import Sequence

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Route, Router, selected_columns
from setl.model.conflict import COMPARABLE, ConflictPolicy
from setl.model.schema import Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.preflight.system_tables import SystemTable, check_system_tables
from setl.systems.mysql.preflight.target_tables import WRITING
from setl.systems.mysql.server import Server
from setl.systems.mysql.table_facts import ColumnFacts, read_columns
from setl.systems.pipeline_check import SourceTable

_TABLES = (
    SystemTable("setl_conflict", WRITING, "takes what is decided about conflicts"),
    SystemTable("setl_recent", WRITING, "keeps what the other site has not passed yet"),
    SystemTable("setl_passed", WRITING, "says how far the other site has come"),
    SystemTable("setl_applied", WRITING, "says how far rows of both sites are applied"),
)
_TWO_FORMS = frozenset({"uuid", "inet4", "inet6"})  # of MariaDB
_NO_ROOM = "Or take the conflict policy away, and give each site rows of its own"


def check_contested_tables(
    source: Server | None,
    target: Server,
    pipeline: Pipeline,
    back: Pipeline | None,
    *,
    tables: Sequence[SourceTable],
    report: Report,
) -> None:
    """Report what is wrong with the tables of a pipeline that have a conflict policy.

    Args:
        source: the source server, None if it cannot be asked.
        target: the target server.
        pipeline: the pipeline.
        back: the pipeline of the other direction, None if there is none.
        tables: the mapped tables of the source, as far as they are known.
        report: where to put it.

    Raises:
        SetlError: a server stopped answering.
    """
    if not Router(pipeline).decides:
        return
    scopes = dict.fromkeys(WRITING, "retl.*")
    check_system_tables(target, report, _TABLES, scopes)
    if back is None:
        report.error(
            "a conflict policy needs a pipeline of the channel in the other direction",
            "Add one, or take the policies away",
            code="conflict-one-way",
        )
        return
    way_back = Router(back)
    for table in tables:
        for route in table.routes:
            if route.conflict is not None:
                table_report = report.at(".".join(route.target))
                with table_report.failing():
                    _check_way_back(table.schema, route, route.conflict, way_back, table_report)
                    there = read_table(target.connection, *route.target)
                    if there is not None:
                        _check_triggers(target, route, table_report)
                        _check_key(there, table_report)
                        _check_key(table.schema, table_report)
                        _check_newest(table.schema, route, route.conflict, table_report)
                        if source is not None:
                            _check_columns(source, target, table.schema, route, table_report)


def _check_way_back(
    schema: RowSchema, route: Route, policy: ConflictPolicy, way_back: Router, report: Report
) -> None:
    back = way_back.route(*route.target)
    if route.expressions or route.where:
        report.error(
            "the mapping computes values, and both sites must hold the same rows",
            f"Let columns pass as they are in tables[{route.index}]",
            code="conflict-computes",
        )
    if len(back) != 1 or back[0].target != (schema.schema, schema.table):
        report.error(
            f"what is written there does not come back to {schema.name} and nowhere else",
            "Map the table in the other pipeline, once, to where it comes from",
            code="conflict-mapping",
        )
        return
    there = dict(selected_columns(route, schema.names))
    names = list(there.values())
    returning = {names[i].lower(): name.lower() for i, name in selected_columns(back[0], names)}
    for i, name in there.items():
        if returning.get(name.lower()) != schema.names[i].lower():
            report.error(
                f"the column {name} does not come back as {schema.names[i]}",
                "Let the same columns pass in both directions",
                code="conflict-mapping",
            )
    other = back[0].conflict
    newest = {schema.names[i].lower(): name.lower() for i, name in there.items()}
    wanted = newest.get(policy.newest.lower(), "") if policy.newest else ""
    if other is None or other.newest.lower() != wanted:
        report.error(
            f"the policy is `{policy.name}` here, and `{other.name if other else 'source'}` in the"
            " other direction",
            "Give the table the same policy in both pipelines",
            code="conflict-differs",
        )


def _check_triggers(target: Server, route: Route, report: Report) -> None:
    """A row is the same at both sites only if it stays as it is written."""
    names = target.rows(
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s"
        " AND EVENT_OBJECT_TABLE = %s AND ACTION_TIMING = 'BEFORE'"
        " AND EVENT_MANIPULATION <> 'DELETE' ORDER BY 1",
        route.target,
    )
    if names:
        report.error(
            f"triggers ({', '.join(str(n[0]) for n in names)}) run before rows are written, those"
            " of setl, too. If they change values, the two sites end different",
            "Drop them, and set the values in the application",
            _NO_ROOM,
            code="conflict-triggers",
            risk=True,
        )


def _check_key(described: RowSchema, report: Report) -> None:
    for unique in described.unique:
        names = ", ".join(described.columns[i].name for i in unique)
        report.error(
            f"{described.name} has a unique key over {names}: both sites can give out the same"
            " value, which no choice between two rows of one key undoes",
            "Drop the unique key at both sites, or make it a plain index",
            _NO_ROOM,
            code="conflict-unique-key",
        )
    for column in (described.columns[i] for i in described.key):
        if column.kind is Kind.FLOAT or (column.kind is Kind.TEXT and not column.binary_order):
            report.error(
                f"the key column {column.name} of {described.name} takes different values for the"
                " same, so that rows of the two sites cannot be distinguished",
                "Use numbers, bytes or CHAR with a binary collation as key",
                _NO_ROOM,
                code="conflict-key",
            )


def _check_newest(schema: RowSchema, route: Route, policy: ConflictPolicy, report: Report) -> None:
    if not policy.newest:
        return
    at = schema.folded.get(policy.newest.lower(), -1)
    if at < 0:
        report.error(
            f"tables[{route.index}].conflict names a column {policy.newest}, which {schema.name}"
            " does not have",
            f"The columns are {', '.join(schema.names)}",
            code="conflict-column",
        )
    elif schema.columns[at].kind not in COMPARABLE:
        report.error(
            f"the column {policy.newest} does not say which row is newer",
            "Name a date, a time or a number under `newest`",
            code="conflict-column",
        )
    elif at not in {i for i, _ in selected_columns(route, schema.names)}:
        report.error(
            f"the column {policy.newest}, which says how new a row is, does not reach the target",
            f"Let it pass: see include, exclude and columns in tables[{route.index}]",
            code="conflict-column",
        )


def _check_columns(
    source: Server, target: Server, schema: RowSchema, route: Route, report: Report
) -> None:
    """Rows are compared value by value, so a value must look the same at both sites."""
    here = read_columns(source, schema.schema, schema.table)
    there = read_columns(target, *route.target)
    policy = route.conflict
    for i, name in selected_columns(route, schema.names):
        one, other = here.get(schema.names[i].lower()), there.get(name.lower())
        if one is None or other is None:
            continue
        if one.data_type in _TWO_FORMS:
            report.error(
                f"the column {name} is {one.column_type}, whose values stand in the binlog in"
                " another form than a SELECT gives them, so that equal values do not look equal",
                "Use BINARY or CHAR at both sites",
                _NO_ROOM,
                code="conflict-types",
            )
        elif not other.generated and _form(one) != _form(other):
            report.error(
                f"the column {name} is {other.column_type} at the target and {one.column_type} at"
                " the source, so that equal values do not look equal",
                "Give it the same type at both sites",
                code="conflict-types",
            )
        if policy and schema.names[i].lower() == policy.newest.lower() and one.nullable:
            report.warning(
                f"the column {policy.newest}, which says how new a row is, can be NULL, which is"
                " older than everything",
                "Make it NOT NULL",
                code="conflict-null",
            )


def _form(column: ColumnFacts) -> tuple[object, ...]:
    """What the text of a value depends on."""
    kind = "text" if column.data_type.endswith(("char", "text")) else column.data_type
    fixed = column.length if column.data_type in {"char", "binary"} else 0
    scale = column.scale if column.data_type == "decimal" else 0
    return kind, fixed, scale, column.fraction
