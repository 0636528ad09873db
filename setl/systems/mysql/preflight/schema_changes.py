"""Checks that schema changes can be replicated to a target (`ddl: pass`)."""

from __future__ import annotations

from collections.abc import Sequence

from setl.channel.file import Pipeline
from setl.channel.routes.routed_table import RoutedTable
from setl.channel.routes.routing import Route, Router
from setl.systems.finding import Report
from setl.systems.mysql.catalog import list_tables
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.preflight.system_tables import SystemTable
from setl.systems.mysql.preflight.target_tables import WRITING
from setl.systems.mysql.server import Outcome, Server
from setl.systems.pipeline_check import SourceTable

LEDGER = SystemTable("setl_ddl", WRITING, "keeps what became of schema changes")

_INVISIBLE_KEYS = "sql_generate_invisible_primary_key"

# Statements that a server judges by their privileges before it sees that there is no such table.
_NO_TABLE = "_setl_no_such_table"
_TRIALS = {
    "ALTER": "ALTER TABLE {table} ADD COLUMN a INT",
    "CREATE": "CREATE TABLE {table} (a INT, a INT)",
    "DROP": "TRUNCATE TABLE {table}",
    "INDEX": "CREATE INDEX a ON {table} (a)",
}
_ALL = ("ALTER", "CREATE", "DROP", "INDEX", "REFERENCES")


def check_invisible_keys(target: Server, report: Report) -> None:
    """Report that tables which setl makes at a target get a key that nobody has asked for."""
    if target.variables.get(_INVISIBLE_KEYS) == "ON":
        report.warning(
            f"{_INVISIBLE_KEYS} is ON: a table without a primary key that setl creates here gets"
            " one of its own, so that an ADD PRIMARY KEY of the source's stops the pipeline",
            *target.set_global(_INVISIBLE_KEYS, "OFF"),
            "Or give such tables a primary key at the source",
            code="invisible-key",
        )


def check_replicated_ddl(
    target: Server,
    source: Server | None,
    pipeline: Pipeline,
    tables: Sequence[SourceTable],
    report: Report,
) -> None:
    """Report what keeps schema changes from being replicated to a MySQL target.

    Args:
        target: the target.
        source: the source, None if it cannot be asked.
        pipeline: a pipeline with `ddl: pass`.
        tables: its mapped tables, as far as they are known.
        report: where to put it.

    Raises:
        SetlError: a server does not answer.
    """
    flows = [((t.schema.schema, t.schema.table), r) for t in tables for r in t.routes]
    router = Router(pipeline)
    exact = [entry.pattern.exact for entry in router.entries if entry.pattern.exact]
    flows += [(name, route) for name in exact for route in router.route(*name)]
    for schema in dict.fromkeys(route.target[0] for _, route in flows):
        _check_privileges(target, schema, report)
    _check_several(flows, report)
    for mapping in dict.fromkeys(route.index for _, route in flows if _changed(route)):
        report.warning(
            f"tables[{mapping}] renames columns or computes them: an ALTER TABLE that names one of"
            " those columns cannot be replicated, and stops the pipeline",
            code="ddl-columns",
        )
    if source is not None:
        pairs = [(name[0], route.target[0]) for name, route in flows]
        pairs += [pair for entry in router.entries if (pair := _databases(entry))]
        dialect = Dialect.read(target)
        for pair in dict.fromkeys(pairs):
            _check_defaults(source, target, pair, dialect, report)


def check_shadows(source: Server, pipeline: Pipeline, report: Report) -> None:
    """Report tables that are left out because of their names. Raises SetlError."""
    router = Router(pipeline)
    for schema, table in list_tables(source.connection):
        shadow = router.shadow(schema, table)
        if shadow is not None:
            report.at(f"{schema}.{table}").warning(
                f"is left out: by its name it belongs to an online schema change of {shadow.table}",
                f"If it does not, name it in an entry of its own: `from: {schema}.{table}`",
                code="shadow-table",
            )


def _check_privileges(target: Server, schema: str, report: Report) -> None:
    table = qualified(schema, _NO_TABLE)
    lacking = [
        privilege
        for privilege, trial in _TRIALS.items()
        if target.attempt(trial.format(table=table)) is Outcome.DENIED
    ]
    if lacking:
        report.error(
            f"the account {target.account} lacks {', '.join(lacking)} on {schema}, which"
            " `ddl: pass` needs",
            target.grant(_ALL, target.scope_of(schema)),
            code="missing-privilege",
        )


def _check_several(flows: Sequence[tuple[tuple[str, str], Route]], report: Report) -> None:
    into: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for name, route in flows:
        into.setdefault(route.target, set()).add(name)
    for (schema, table), names in into.items():
        if len(names) > 1:
            report.at(f"{schema}.{table}").error(
                f"{len(names)} tables of the source come together here, so each of their schema"
                " changes would be made several times",
                "Set `ddl: stop` or `ddl: ignore`, and change the target by hand",
                code="ddl-joined",
            )


def _changed(route: Route) -> bool:
    return bool(route.renames or route.expressions)


def _databases(entry: RoutedTable) -> tuple[str, str] | None:
    """The databases of an entry at the source and at the target; None if there may be several."""
    here, target = entry.pattern.schema.literal, entry.target
    there = here if target is None or target.schema is None else target.schema.literal
    return None if here is None or there is None else (here, there)


def _check_defaults(
    source: Server, target: Server, pair: tuple[str, str], dialect: Dialect, report: Report
) -> None:
    """CREATE TABLE takes from its schema the character set that it does not name."""
    here, there = pair
    question = (
        "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
    )
    found, wanted = target.rows(question, (there,)), source.rows(question, (here,))
    if not (found and wanted):
        return
    collation = str(wanted[0][0])
    foreign = source.mariadb != target.mariadb
    nearest = dialect.nearest(collation, keyed=False, foreign=foreign)
    why = "" if nearest == collation else f", since {dialect.product} has no {collation}"
    if found[0][0] != nearest:
        report.warning(
            f"the default collation of {there} is {found[0][0]}, that of {here} at the source is"
            f" {collation}: a new table that names none gets {nearest} from setl{why}, and one that"
            " somebody makes here does not",
            f"ALTER DATABASE {quote(there)} COLLATE {nearest};",
            code="default-collation",
        )
    elif why:
        report.ok(f"a new table of {here} that names no collation gets {nearest}{why}")
