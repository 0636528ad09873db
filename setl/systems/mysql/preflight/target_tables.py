"""Checks that target tables exist and take the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from setl.channel.routes.routing import selected_columns
from setl.counting import count
from setl.errors import ConfigurationError
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.creation.reading import Planner
from setl.systems.mysql.engines import WITHOUT_TRANSACTIONS, refusal
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.preflight.column_fit import misfit
from setl.systems.mysql.preflight.generated_columns import check_filled, check_sessions
from setl.systems.mysql.preflight.new_tables import (
    Flow,
    report_creation,
    shape_of,
    statements_of,
)
from setl.systems.mysql.preflight.privileges import MissingPrivileges, denied
from setl.systems.mysql.preflight.source_tables import source_key
from setl.systems.mysql.preflight.target_triggers import (
    Among,
    TargetTriggers,
    check_triggers_seen,
    named,
)
from setl.systems.mysql.preflight.unique_keys import UniqueKeys, check_unique_keys
from setl.systems.mysql.preflight.unreadable_columns import check_masked
from setl.systems.mysql.server import Outcome, Server
from setl.systems.mysql.table_facts import ColumnFacts, TableText, read_columns
from setl.systems.pipeline_check import SourceTable

_TAKES = ("target table takes the rows", "target tables take the rows")

WRITING: tuple[str, ...] = ("SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass(slots=True)
class TargetTables:
    """Checks the target tables of one pipeline.

    Attributes:
        source: the source server, None if it cannot be asked.
        target: the target server.
        report: where findings go.
        triggers: the target's triggers.
    """

    source: Server | None
    target: Server
    report: Report
    triggers: TargetTriggers
    _lacking: MissingPrivileges = field(init=False)
    _planner: Planner | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._lacking = MissingPrivileges(self.target)
        if self.source is not None:
            self._planner = Planner(self.source, self.target)

    def check(
        self,
        tables: Sequence[SourceTable],
        exact: Sequence[tuple[str, str]] = (),
        *,
        unseen: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Report what is wrong with them.

        Args:
            tables: the mapped tables of the source, as far as they are known.
            exact: further targets, of which the source tables are not known.
            unseen: targets of tables that the source does not show to the account. Only whether
                it may write them is of interest, so that nobody has to grant in two rounds.

        Raises:
            SetlError: the server does not answer.
        """
        before = len(self.report.findings)
        flows: dict[tuple[str, str], list[Flow]] = {name: [] for name in exact}
        for table in tables:
            for route in table.routes:
                flows.setdefault(route.target, []).append(
                    Flow(table.schema, route, table.computed_by(route))
                )
        mapped = named([*flows, *unseen])
        for (schema, table), arriving in flows.items():
            table_report = self.report.at(f"{schema}.{table}")
            with table_report.failing():
                self._check_table(schema, table, arriving, mapped, table_report)
        check_triggers_seen(self.target, {schema for schema, _ in (*flows, *unseen)}, self.report)
        for schema, table in unseen:
            if (schema, table) not in flows:
                self._lacking.add(schema, table, self._denied(schema, table))
        self._lacking.report(self.report)
        if flows and all(f.level == "ok" for f in self.report.findings[before:]):
            self.report.ok(count(len(flows), *_TAKES))

    def _check_table(
        self,
        schema: str,
        table: str,
        flows: Sequence[Flow],
        mapped: Among,
        report: Report,
    ) -> None:
        described = read_table(self.target.connection, schema, table)
        if described is None:
            if self._planner is not None and flows and flows[0].route.create:
                report_creation(self._planner, flows[0], report)
                self._check_others(flows, report)
            else:
                self._report_missing(schema, table, flows, report)
            return
        self._lacking.add(schema, table, self._denied(schema, table, described))
        facts = read_columns(self.target, schema, table)
        filled: set[str] = set()
        for flow in flows:
            self._check_flow(flow, described, facts, report)
            filled |= {t.lower() for _, t in selected_columns(flow.route, flow.source.names)}
            filled |= {t.lower() for t in flow.route.expressions}
            if flow.route.processor:
                filled |= set(facts)  # which columns it adds is only known from its rows
        routes = [flow.route for flow in flows]
        check_sessions(self.target, described, routes, report, source=self.source)
        if flows:
            self._check_unfilled(schema, table, facts, filled, report)
        elif not described.key:
            report.error(
                "the target table has no primary key, so rows cannot be found in it",
                code="target-key",
            )
        decided = any(route.conflict is not None for route in routes)
        self._check_engine(schema, table, report)
        # With a conflict policy any trigger that may change a row is reported, see there.
        changeable = () if decided else filled
        self.triggers.check((schema, table), changeable, mapped, report)
        check_masked(self.target, schema, table, report)

    def _check_engine(self, schema: str, table: str, report: Report) -> None:
        """Report a table without transactions, or a view."""
        for *_, engine in self.target.rows(WITHOUT_TRANSACTIONS, (schema, table)):
            report.error(*refusal(schema, table, engine), code="engine")

    def _report_missing(
        self, schema: str, table: str, flows: Sequence[Flow], report: Report
    ) -> None:
        if not self._may_see(schema, table):
            # Whether it is there is not told to an account that may not see it.
            self._lacking.add(schema, table, WRITING)
            if not flows:
                return
        what, hint = "the target table does not exist, or the account may not see it", list[str]()
        if flows and self._planner is not None and flows[0].known:
            try:
                flow = flows[0]
                plan = self._planner.plan(flow.source, flow.route, flow.computed)
                hint += [*statements_of(self._planner, plan), *(f"Note: {n}" for n in plan.notes)]
            except ConfigurationError as error:
                hint.append(f"It cannot be as the source's: {error.message}. {error.hint}")
        elif flows:
            names = [t for _, t in selected_columns(flows[0].route, flows[0].source.names)]
            columns = ", ".join([*names, *flows[0].route.expressions])
            hint.append(f"Create it with the columns {columns} and the same primary key")
        report.error(what, *hint, code="no-target-table")

    def _denied(self, schema: str, table: str, described: RowSchema | None = None) -> Sequence[str]:
        """What the account lacks to write a table; all of it where it may not see the table."""
        if described is None and not self._may_see(schema, table):
            return WRITING
        found = described or read_table(self.target.connection, schema, table)
        if found is None:
            return ()
        return denied(self.target, schema, table, WRITING, found.columns[0].name)

    def _may_see(self, schema: str, table: str) -> bool:
        trial = f"SELECT 1 FROM {qualified(schema, table)} LIMIT 0"
        return self.target.attempt(trial) is not Outcome.DENIED

    def _check_others(self, flows: Sequence[Flow], report: Report) -> None:
        """Report rows of further tables that do not fit the one that the first is to make."""
        first = flows[0]
        if self.source is None or not flows[1:]:
            return
        given = read_columns(self.source, first.source.schema, first.source.table)
        described = shape_of(first)
        facts = {
            to.lower(): replace(given[first.source.names[i].lower()], name=to, generated=False)
            for i, to in selected_columns(first.route, first.source.names)
        }
        for column in first.computed:
            facts[column.name.lower()] = ColumnFacts(column.name, "", "")
        for flow in flows[1:]:
            self._check_flow(flow, described, facts, report)

    def _check_flow(
        self, flow: Flow, described: RowSchema, facts: dict[str, ColumnFacts], report: Report
    ) -> None:
        selected = selected_columns(flow.route, flow.source.names)
        name = qualified(described.schema, described.table)
        given: dict[str, ColumnFacts] = {}
        text: TableText | None = None
        computed: list[str] = []
        if self.source is not None:
            given = read_columns(self.source, flow.source.schema, flow.source.table)
            text = TableText.read(self.source, flow.source.schema, flow.source.table)
        for i, target in selected:
            source = given.get(flow.source.names[i].lower())
            there = facts.get(target.lower())
            definition = text.definition(flow.source.names[i], target) if text else ""
            if there is None:
                hint = [f"ALTER TABLE {name} ADD COLUMN {definition};"] if definition else []
                report.error(
                    f"the target table has no column {target}", *hint, code="no-target-column"
                )
            elif source is not None and not there.generated:
                _check_column(source, there, name, definition, report)
                computed += [source.name] if source.generated else []
            elif source is not None and not source.generated:
                report.error(
                    f"the column {target} is generated at the target, so the source's values do"
                    " not get there",
                    f"Make it a plain column, or leave it out: exclude: [{source.name}]",
                    code="generated-column",
                )
        for target in flow.route.expressions:
            if target.lower() not in facts:
                report.error(
                    f"the target table has no column {target}",
                    f"Add it, with a type for: {flow.route.expressions[target]}",
                    code="no-target-column",
                )
        if self.source is not None:
            check_filled(self.source, computed, flow.route, report)
        before = len(report.findings)
        _check_key(flow, selected, described, facts, report)
        if self.source is not None and len(report.findings) == before:
            check_unique_keys(
                UniqueKeys.read(self.source, flow.source),
                UniqueKeys.read(self.target, described),
                flow.route,
                text,
                report,
            )

    def _check_unfilled(
        self,
        schema: str,
        table: str,
        facts: dict[str, ColumnFacts],
        filled: set[str],
        report: Report,
    ) -> None:
        for lowered, column in facts.items():
            if lowered not in filled and column.required:
                report.error(
                    f"the column {column.name} gets no value, takes no NULL and has no default",
                    f"ALTER TABLE {qualified(schema, table)} MODIFY COLUMN {quote(column.name)}"
                    f" {column.column_type} NULL;",
                    code="column-without-value",
                )


def _check_column(
    source: ColumnFacts, target: ColumnFacts, table: str, definition: str, report: Report
) -> None:
    hint = [f"ALTER TABLE {table} MODIFY COLUMN {definition};"] if definition else []
    if reason := misfit(source, target):
        report.error(f"the column {target.name} {reason}", *hint, code="column-fit")
    elif source.nullable and not target.nullable:
        report.error(
            f"the column {target.name} takes no NULL, the source's {source.name} does",
            *hint,
            code="column-null",
        )


def _check_key(
    flow: Flow,
    selected: Sequence[tuple[int, str]],
    described: RowSchema,
    facts: Mapping[str, ColumnFacts],
    report: Report,
) -> None:
    by_source = {i: target.lower() for i, target in reversed(selected)}
    wanted = {by_source[i] for i in source_key(flow.source, flow.route) if i in by_source}
    keys = [
        {described.columns[i].name.lower() for i in key}
        for key in (described.key, *described.unique)
        if key
    ]
    if not wanted or wanted in keys:
        return
    names = ", ".join(quote(n) for n in dict.fromkeys(by_source.values()) if n in wanted)
    shown = names.replace("`", "")
    table = qualified(described.schema, described.table)
    own = {described.columns[i].name.lower() for i in described.key}
    if flow.route.key and not own & {target.lower() for _, target in selected}:
        report.warning(
            f"no unique key of the target table has just {shown}, by which its rows are found: each"
            " row is deleted and inserted, and without an index the whole table is "
            "read for it",
            f"ALTER TABLE {table} ADD UNIQUE KEY ({names});",
            code="key-slow",
        )
        return
    if not described.key:
        report.error(
            f"the target table has no key over {shown}, by which rows are found",
            f"ALTER TABLE {table} ADD PRIMARY KEY ({names});",
            code="target-key",
        )
        return
    there = ", ".join(described.columns[i].name for i in described.key)
    # A key of the target's own, such as a counter, need not go, and often cannot.
    beside = not own & {target.lower() for _, target in selected}
    change = "ADD UNIQUE KEY" if beside else "DROP PRIMARY KEY, ADD PRIMARY KEY"
    nullable = [quote(n) for n in sorted(wanted) if beside and facts[n].nullable]
    report.error(
        f"the target table's key is ({there}), the source's is ({shown})",
        *([f"Make {', '.join(nullable)} NOT NULL at the target"] if nullable else []),
        f"ALTER TABLE {table} {change} ({names});",
        code="target-key",
    )
