"""Checks that the tables of `sql/` exist and are usable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.finding import Level, Report
from setl.systems.mysql.preflight.privileges import denied
from setl.systems.mysql.server import Outcome, Server
from setl.systems.mysql.sql_files import system_table_statements

SCHEMA = "retl"

_COLUMNS = {"retl_mark": "CHANNEL_ID", "retl_buffer": "TABLE_ID", "xdual": "X"}


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table that an endpoint of a pipeline uses.

    Attributes:
        name: its name in the schema ``retl``.
        privileges: what the account must be able to do with it.
        use: what for, the end of a sentence that begins with the table.
        required: whether the pipeline cannot work without it.
    """

    name: str
    privileges: tuple[str, ...]
    use: str
    required: bool = True


def create_statements(names: Sequence[str]) -> list[str]:
    """The statements of `sql/` that make the schema and these tables of it."""
    statements = system_table_statements()
    chosen = [s for s in statements if s.startswith("CREATE DATABASE")]
    for statement in statements:
        created = parse_table_ddl(statement, SCHEMA)
        if created is not None and created.names[0].table in names:
            chosen.append(statement)
    return chosen


def check_system_tables(
    server: Server, report: Report, tables: Sequence[SystemTable], scopes: Mapping[str, str]
) -> None:
    """Report what is missing: tables first, then privileges.

    Args:
        server: where.
        report: where to put it.
        tables: what is needed.
        scopes: privilege → on what a GRANT should give it.

    Raises:
        SetlError: the server does not answer.
    """
    visible = {
        str(name): str(engine or "")
        for name, engine in server.rows(
            "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s",
            (SCHEMA,),
        )
    }
    missing: list[SystemTable] = []
    hidden = False
    lacking: dict[str, list[SystemTable]] = {}
    for table in tables:
        outcome = server.attempt(f"SELECT 1 FROM {SCHEMA}.{table.name} LIMIT 0")
        if outcome is Outcome.MISSING or table.name not in visible:
            missing.append(table)
            # A server tells nobody who may not see it whether a table is there.
            hidden = hidden or outcome is Outcome.DENIED
        elsewhere = denied(
            server, SCHEMA, table.name, table.privileges, _COLUMNS.get(table.name, "pipeline")
        )
        for privilege in elsewhere:
            lacking.setdefault(privilege, []).append(table)
    if missing:
        _report_missing(report, missing, hidden=hidden)
    for scope in dict.fromkeys(scopes[p] for p in lacking):
        privileges = [p for p in lacking if scopes[p] == scope]
        concerned = [t for t in tables if any(t in lacking[p] for p in privileges)]
        report.add(
            _level(concerned),
            f"the account {server.account} lacks {', '.join(privileges)} on {_names(concerned)}",
            server.grant(privileges, scope),
            code="system-tables",
        )
    _check_engines(report, tables, visible)
    if not missing and not lacking:
        report.ok(f"the system tables are there: {_names(tables)}")


def _report_missing(report: Report, missing: Sequence[SystemTable], *, hidden: bool) -> None:
    uses = "; ".join(f"{t.name} {t.use}" for t in missing)
    note = " or hidden from the account" if hidden else ""
    report.add(
        _level(missing),
        f"{_names(missing)} {'is' if len(missing) == 1 else 'are'} missing{note} ({uses})",
        *(f"{s};" for s in create_statements([t.name for t in missing])),
        code="system-tables",
    )


def _check_engines(
    report: Report, tables: Sequence[SystemTable], visible: Mapping[str, str]
) -> None:
    for table in tables:
        engine = visible.get(table.name, "InnoDB")
        if engine.lower() != "innodb":
            report.error(
                f"{SCHEMA}.{table.name} is a {engine} table, which has no transactions",
                f"ALTER TABLE {SCHEMA}.{table.name} ENGINE = InnoDB;",
                code="engine",
            )


def _level(tables: Sequence[SystemTable]) -> Level:
    return "error" if any(t.required for t in tables) else "warning"


def _names(tables: Sequence[SystemTable]) -> str:
    return ", ".join(f"{SCHEMA}.{t.name}" for t in tables)
