"""Checks that the tables of `from` exist, and that their rows have keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.channel.routes.routed_table import RoutedTable
from setl.channel.routes.routing import Route, Router, selected_columns
from setl.codec.binlog.tables.hidden import looks_hidden
from setl.codec.charset import DOUBLED
from setl.counting import count
from setl.errors import SetlError
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.catalog import folds_names, is_versioned_by_numbers, list_tables, read_table
from setl.systems.mysql.foreign_keys import check_cascades
from setl.systems.mysql.identifiers import qualified
from setl.systems.mysql.preflight.checked_keys import KeysOfCheck
from setl.systems.mysql.preflight.generated_columns import check_generated
from setl.systems.mysql.preflight.keyless_tables import check_keyless, check_keyless_load
from setl.systems.mysql.preflight.privileges import MissingPrivileges, denied
from setl.systems.mysql.preflight.unreadable_columns import check_masked, check_old_times
from setl.systems.mysql.reading.nested_tables import describe_documents
from setl.systems.mysql.server import Outcome, Server
from setl.systems.mysql.values.row_values import has_two_digits
from setl.systems.pipeline_check import PipelineCheck, SourceTable

_RIGHT = ("mapped table is as it must be", "mapped tables are as they must be")


def check_source_tables(
    server: Server, router: Router, report: Report, check: PipelineCheck
) -> list[SourceTable]:
    """Report what is wrong with the mapped tables; returns those that are right, by name.

    Raises:
        SetlError: the server does not answer.
    """
    before = len(report.findings)
    there = list_tables(server.connection)
    lacking = MissingPrivileges(server)
    found: list[SourceTable] = []
    mapped: set[int] = set()
    for schema, table in there:
        table_report = report.at(f"{schema}.{table}")
        with table_report.failing():
            if _claims(router, schema, table, mapped):
                lacking.add(schema, table, denied(server, schema, table, ["SELECT"]))
                if is_versioned_by_numbers(server.connection, schema, table):
                    table_report.error(
                        "the table is system-versioned by transaction numbers, and such rows are"
                        " logged as statements",
                        "Version it by TIMESTAMP(6), or leave it out of `tables`",
                        code="system-versioned",
                    )
                    continue
                check_masked(server, schema, table, table_report)
                check_old_times(server, schema, table, table_report)
                columns = read_table(server.connection, schema, table)
                # Nested rows pass through no mapping; the documents' table speaks for them.
                routes = [r for r in router.route(schema, table) if not r.nests(schema, table)]
                for route in routes:
                    if route.documents is not None:
                        columns = describe_documents(server.connection, route.documents).schema
                if columns is not None:
                    check_generated(server, columns, routes, table_report)
                    check_keyless_load(server, check, columns, routes, table_report)
                    computed: dict[int, Sequence[Column]] = {}
                    right = [r for r in routes if _fits(columns, r, table_report, check, computed)]
                    found.append(SourceTable(columns, tuple(right), computed))
    for entry in router.entries:
        if entry.index not in mapped:
            _report_unmatched(server, entry, there, lacking, report)
    lacking.report(report)
    wait_for_end = KeysOfCheck(check, router, there).why_not
    check_cascades(server, [t.schema for t in found], report, wait_for_end)
    if all(f.level == "ok" for f in report.findings[before:]):
        report.ok(count(len(found), *_RIGHT))
    return found


def _claims(router: Router, schema: str, table: str, mapped: set[int]) -> bool:
    """Whether a table is mapped; notes the entries that count for it."""
    try:
        counting = {route.index for route in router.route(schema, table)}
    except SetlError:
        # It has no valid target. It is mapped all the same, by any entry that matches.
        mapped.update(e.index for e in router.entries if e.pattern.match(schema, table) is not None)
        raise
    mapped.update(counting)
    return bool(counting)


def _report_unmatched(
    server: Server,
    entry: RoutedTable,
    there: Sequence[tuple[str, str]],
    lacking: MissingPrivileges,
    report: Report,
) -> None:
    exact = entry.pattern.exact
    if exact is None:
        matches = sum(entry.pattern.match(*name) is not None for name in there)
        if not matches:
            _report_no_match(server, entry, there, report)
        else:
            report.warning(
                f"tables[{entry.index}] ({entry.mapping.from_}) never counts: other entries come"
                f" first for all {matches} tables that it matches",
                "Move it up, or remove it",
                code="entry-unused",
            )
        return
    spelt = _spelt_otherwise(entry, there)
    if spelt and folds_names(server.connection):
        report.at(".".join(exact)).error(
            f"the server calls this table {spelt}: it folds the case of names"
            " (lower_case_table_names), and so does its binlog",
            f"Write `from: {spelt}` in tables[{entry.index}]",
            code="name-case",
        )
        return
    name = qualified(*exact)
    outcome = server.attempt(f"SELECT 1 FROM {name} LIMIT 0")
    if outcome is Outcome.DENIED:
        lacking.add(*exact, ["SELECT"])
    elif outcome is Outcome.MISSING:
        report.at(".".join(exact)).error(
            "the table does not exist",
            f"Correct `from` in tables[{entry.index}] (case matters), or create the table",
            code="no-table",
        )
    else:
        report.at(".".join(exact)).error(
            "this is a view or a sequence, which has no rows in the binlog",
            f"Name the tables behind it in tables[{entry.index}]",
            code="no-base-table",
        )


def _spelt_otherwise(entry: RoutedTable, there: Sequence[tuple[str, str]]) -> str:
    """The first table that an entry would match if case did not matter, "" for none."""
    return next((".".join(n) for n in there if entry.pattern.matches_but_for_case(*n)), "")


def _report_no_match(
    server: Server, entry: RoutedTable, there: Sequence[tuple[str, str]], report: Report
) -> None:
    schema = entry.pattern.schema.literal
    visible = {str(row[0]) for row in server.rows("SHOW DATABASES")}
    what = f"tables[{entry.index}] ({entry.mapping.from_}) matches no table"
    if spelt := _spelt_otherwise(entry, there):
        report.warning(
            f"{what}: case matters, and there is {spelt}",
            "Correct the case in `from`",
            code="no-table",
        )
        return
    if schema is None or schema in visible:
        report.warning(what, "Correct `from`, or create the tables", code="no-table")
    else:
        report.warning(
            f"{what}: there is no schema {schema}, or the account may not see it",
            server.grant(["SELECT"], server.scope_of(schema)),
            code="no-schema",
        )


def _fits(
    schema: RowSchema,
    route: Route,
    report: Report,
    check: PipelineCheck,
    computed: dict[int, Sequence[Column]],
) -> bool:
    """Whether the mapping fits the table's columns; reports what does not.

    Notes in `computed` the columns that expressions fill.
    """
    before = len(report.findings)
    table_report = f"tables[{route.index}]"
    for name in filter(looks_hidden, schema.names):
        report.error(
            f"a column has the name {name}, which MariaDB gives to columns that it hides",
            "Rename it, or leave the table out",
            code="hidden-column-name",
        )
    for what in unknown_columns(schema, route):
        report.error(what, f"The columns are {', '.join(schema.names)}", code="no-column")
    key = source_key(schema, route)
    if not key:
        if not route.key:
            check_keyless(check, schema, route, report)
    else:
        selected = {i for i, _ in selected_columns(route, schema.names)}
        for lost in (schema.names[i] for i in key if i not in selected):
            report.error(
                f"the key column {lost} does not reach the target, where rows are found by it",
                f"Let {lost} pass: see include, exclude and columns in {table_report}",
                code="key-lost",
            )
    if route.key and key and not _is_unique(schema, key):
        report.warning(
            f"no unique key has just the columns {', '.join(route.key)}: rows that agree in them"
            " become one row in the target",
            f"Add a unique key, or name other columns under `key` in {table_report}",
            code="key-not-unique",
        )
    compared = key or range(len(schema.columns))
    for name in (schema.names[i] for i in compared if has_two_digits(schema.columns[i])):
        report.error(
            f"the key column {name} is a YEAR(2), to which the server compares 1901 and 2001 as one"
            " year, and 0000 and 2000",
            f"ALTER TABLE {schema.name} MODIFY {name} YEAR(4) on the source, and on the target",
            code="key-year-2",
        )
    _check_encodings(schema, key, report)
    if key:
        _check_document(schema, route, key, report)
    expressions = check.expressions
    evaluated = route.expressions or route.where or route.processor
    if len(report.findings) == before and expressions and evaluated:
        try:
            computed[route.index] = expressions(route, schema) or ()
        except SetlError as error:
            report.error(
                f"{table_report}: {error.message}",
                *([error.hint] if error.hint else []),
                code="expression",
            )
    nullable = [schema.columns[i] for i in key if route.key and _may_be_null(schema.columns[i])]
    if nullable:
        report.warning(
            f"{', '.join(c.name for c in nullable)}, named under `key`, may be NULL: a row with"
            " NULL there cannot be distinguished, and is refused",
            f"Make it NOT NULL, or name other columns under `key` in {table_report}",
            code="key-null",
        )
    return not any(f.level == "error" for f in report.findings[before:])


def _check_encodings(schema: RowSchema, key: Sequence[int], report: Report) -> None:
    """Keys of character sets with two encodings of some characters."""
    for column in (schema.columns[i] for i in key):
        held = column.capacity
        if column.kind is not Kind.TEXT or held is None or held.charset not in DOUBLED:
            continue
        report.warning(
            f"the key column {column.name} is {held.charset}, which has two encodings of some"
            " characters: a row with the one that the server does not choose is refused, unless the"
            " target's column has the same character set",
            f"ALTER TABLE {schema.name} MODIFY {column.name} … CHARACTER SET utf8mb4, if there are"
            " such rows",
            code="key-encodings",
        )


def _check_document(schema: RowSchema, route: Route, key: Sequence[int], report: Report) -> None:
    """Report whether ids and routing of documents can be made of the table's rows."""
    with report.failing():
        route.document([schema.names[i] for i in key])
    selected = {schema.names[i].lower() for i, _ in selected_columns(route, schema.names)}
    routing = route.routing
    if routing is not None and routing.lower() in schema.folded and routing.lower() not in selected:
        report.error(
            f"the column {routing}, by which documents are routed, does not reach the target",
            f"Let it pass: see include, exclude and columns in tables[{route.index}]",
            code="routing-lost",
        )


def unknown_columns(schema: RowSchema, route: Route) -> Iterator[str]:
    """Column names in a mapping that the table does not have, as sentences."""
    known = {name.lower() for name in schema.names}
    table_report = f"tables[{route.index}]"
    named = [
        *((f"{table_report}.include", name) for name in route.include or ()),
        *((f"{table_report}.exclude", name) for name in route.exclude),
        *((f"{table_report}.columns.{target}", name) for target, name in route.renames.items()),
        *((f"{table_report}.key", name) for name in route.key),
        *((f"{table_report}.routing", name) for name in (route.routing,) if name is not None),
    ]
    for path, name in named:
        if name.lower() not in known:
            yield f"{path} names a column {name}, which the table does not have"


def source_key(schema: RowSchema, route: Route) -> tuple[int, ...]:
    """Indexes of the columns that identify a row; empty if there is no key or it is wrong."""
    if not route.key:
        return schema.key
    positions = {name.lower(): i for i, name in enumerate(schema.names)}
    found = [positions.get(name.lower(), -1) for name in route.key]
    return () if -1 in found else tuple(found)


def _may_be_null(column: Column) -> bool:
    return column.capacity is not None and column.capacity.nullable


def _is_unique(schema: RowSchema, key: Sequence[int]) -> bool:
    return any(set(unique) == set(key) for unique in (schema.key, *schema.unique))
