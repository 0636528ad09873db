"""Checks that marks reach the binlog as the loader writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from setl.systems.finding import Report
from setl.systems.mysql.preflight.system_tables import SCHEMA
from setl.systems.mysql.server import Server, replicated_sources

_MARK = "retl_mark"


def check_mark_triggers(server: Server, report: Report) -> None:
    """Report triggers on the mark table, which may change what it says.

    A server tells of triggers only those who have the privilege TRIGGER.

    Raises:
        SetlError: the server does not answer.
    """
    for schema, name in server.rows(
        "SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS"
        " WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s",
        (SCHEMA, _MARK),
    ):
        report.error(
            f"the trigger {name} on {SCHEMA}.{_MARK} may change marks, and changes would come back",
            f"DROP TRIGGER {schema}.{name};",
            code="mark-trigger",
        )


def check_replica(server: Server, report: Report) -> None:
    """Report what keeps marks out of the binlog of a source that is a replica itself.

    Whatever writes to its primary marks it there. Without the privilege to see the state of
    replication nothing is reported.

    Raises:
        SetlError: the server stopped answering.
    """
    primaries = replicated_sources(server)
    # MySQL before 8.0.26, and MariaDB, would not start with the newer name.
    name = "log_replica_updates"
    name = name if name in server.variables else "log_slave_updates"
    if primaries and server.variables.get(name) == "OFF":
        report.error(
            "the server is a replica and does not write to its binlog what it replicates",
            server.enable_binlog()
            if server.kind.managed
            else f"Add {name} to the server's configuration file, section [mysqld], and restart it",
            code="mark-logging",
        )
    for status in primaries:
        option = mark_filter(status)
        if option:
            report.error(
                f"{option} keeps {SCHEMA}.{_MARK} from being replicated to this server, so what"
                " channels write to its primary cannot be distinguished from what users write",
                f"Let {option} take in the schema {SCHEMA}",
                code="mark-filter",
            )


def mark_filter(status: Mapping[str, object]) -> str:
    """The replication filter that leaves the mark table out; "" if none does.

    Args:
        status: a row of SHOW REPLICA STATUS, names in lower case.
    """

    def listed(option: str) -> list[str]:
        return [item for item in str(status.get(option) or "").split(",") if item]

    def named(option: str, *, like: bool = False) -> bool:
        full = f"{SCHEMA}.{_MARK}"
        return any(_like(item, full) if like else item in {SCHEMA, full} for item in listed(option))

    # https://dev.mysql.com/doc/refman/8.4/en/replication-rules.html : databases, then tables;
    # the first rule that names the table decides, and none that does lets it pass only if
    # there is none that names what passes.
    database = ("replicate_do_db", True), ("replicate_ignore_db", False)
    table = (
        ("replicate_do_table", True),
        ("replicate_ignore_table", False),
        ("replicate_wild_do_table", True),
        ("replicate_wild_ignore_table", False),
    )
    for rules in (database, table):
        hit = next((rule for rule in rules if named(rule[0], like="wild" in rule[0])), None)
        only = next((option for option, passes in rules if passes and listed(option)), "")
        if hit is not None and not hit[1]:
            return hit[0]
        if hit is None and only:
            return only
    return ""


def _like(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern of LIKE."""
    wildcards = {"_": ".", "%": ".*"}
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    text = "".join(wildcards.get(p) or re.escape(p.removeprefix("\\")) for p in pieces)
    return re.fullmatch(text, name, re.DOTALL) is not None
