"""Says which target tables setl would create, and how; or how a person creates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from setl.channel.routes.routing import Route, selected_columns
from setl.model.schema import Column, RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.creation.plan import TablePlan
from setl.systems.mysql.creation.reading import Planner
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.preflight.generated_columns import check_filled
from setl.systems.mysql.preflight.privileges import denied
from setl.systems.mysql.server import Outcome, Server

_GENERATED: Final = " GENERATED ALWAYS AS "  # as `setl.systems.mysql.creation.columns` writes it
# The server judges privileges before it sees that there is no such table.
_NO_TABLE: Final = "_setl_no_such_table"
_TRIALS: Final = {
    "ALTER": "ALTER TABLE {table} ADD COLUMN a INT",
    "CREATE": "CREATE TABLE {table} (a INT, a INT)",
    "INDEX": "CREATE INDEX a ON {table} (a)",
}


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows of one source table on their way to one target table.

    Attributes:
        source: the source's table.
        route: how they go.
        computed: the columns that the route's expressions fill, as far as they are known.
    """

    source: RowSchema
    route: Route
    computed: Sequence[Column] = ()

    @property
    def known(self) -> bool:
        """Whether it is known what all expressions give."""
        return len(self.computed) == len(self.route.expressions)


def report_creation(planner: Planner, flow: Flow, report: Report) -> None:
    """Report the table that setl will create; an error if it cannot.

    Raises:
        SetlError: a server does not answer, or there cannot be such a table.
    """
    plan = planner.plan(flow.source, flow.route, flow.computed)
    what = "setl will create the table"
    if not flow.known:
        what += f", and columns for {', '.join(flow.route.expressions)}"
    report.ok(
        "; ".join([what, *plan.notes]),
        statements=statements_of(planner, plan),
    )
    check_filled(planner.source, made_plain(plan, flow), flow.route, report)
    _check_privileges(planner.target, plan.target[0], report)


def made_plain(plan: TablePlan, flow: Flow) -> list[str]:
    """The source's generated columns that will be plain ones in the table."""
    columns = flow.source.columns
    selected = selected_columns(flow.route, flow.source.names)
    generated = [(columns[i].name, f"{quote(to)} ") for i, to in selected if columns[i].generated]
    return [
        name
        for name, front in generated
        if any(d.startswith(front) and _GENERATED not in d for d in plan.definitions)
    ]


def statements_of(planner: Planner, plan: TablePlan) -> list[str]:
    """The statements that make a table, and its schema if that is missing, with semicolons."""
    schema = plan.target[0]
    found = [f"{plan.statement(condition='IF NOT EXISTS ')};"]
    if not planner.has_schema(schema):
        found.insert(0, f"CREATE DATABASE IF NOT EXISTS {quote(schema)};")
    return found


def shape_of(flow: Flow) -> RowSchema:
    """The table that is made for a flow, as other flows find it."""
    source = flow.source
    selected = selected_columns(flow.route, source.names)
    columns = [replace(source.columns[i], name=name) for i, name in selected]
    positions = {i: at for at, (i, _) in reversed(list(enumerate(selected)))}
    key = [source.folded.get(name.lower(), -1) for name in flow.route.key] or source.key
    return RowSchema(
        *flow.route.target,
        (*columns, *flow.computed),
        tuple(positions[i] for i in key if i in positions),
    )


def _check_privileges(target: Server, schema: str, report: Report) -> None:
    table = qualified(schema, _NO_TABLE)
    lacking = [
        privilege
        for privilege, trial in _TRIALS.items()
        if target.attempt(trial.format(table=table)) is Outcome.DENIED
    ]
    lacking += denied(target, schema, _NO_TABLE, ["SELECT", "INSERT", "UPDATE", "DELETE"])
    if lacking:
        report.error(
            f"the account {target.account} lacks {', '.join(lacking)} on {schema}, where setl is to"
            " create the table",
            target.grant(lacking, target.scope_of(schema)),
            code="missing-privilege",
        )
