"""Checks that a server writes a binlog that setl can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pymysql

from setl.channel.fields.endpoints import BinlogStart, GtidStart, MysqlSource
from setl.systems.finding import Report
from setl.systems.mysql.binlog.retention import (
    CONFIGURATION,
    HOURS,
    KEEP_A_WEEK,
    retention_of,
)
from setl.systems.mysql.binlog.session import NAME_NOT_UTF8, RENAME_LOG_BIN
from setl.systems.mysql.connection import translate
from setl.systems.mysql.preflight.privileges import may_read_binlog
from setl.systems.mysql.server import Outcome, Server

OLDEST = {"MariaDB": (10, 5), "MySQL": (8, 4)}
"""Versions that setl is made for; others may do."""

NEWEST = {"MariaDB": (11, 8), "MySQL": (9, 7)}
"""The newest versions that setl's tests have run on."""

_DAY = 24 * 3600
_SIZE_LIMITS = ("max_binlog_total_size", "binlog_space_limit")
"""Limits of all binlogs together: of MariaDB from 11.4 on, and of Percona Server. 0 for none."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """A variable that must have one value, or another; servers that do not know it need none."""

    name: str
    wanted: str
    otherwise: str
    as_good: str = ""


# What else changes how a binlog is written may be as it likes: log_bin_compress of MariaDB,
# binlog_transaction_compression and binlog_row_value_options of MySQL, and checksums.
_SETTINGS = (
    _Setting("binlog_format", "ROW", "changes arrive as statements, which cannot be applied"),
    _Setting(
        "binlog_row_image",
        "FULL",
        "inserts arrive without the columns that have their defaults",
        as_good="FULL_NODUP",
    ),
    _Setting("binlog_row_metadata", "FULL", "rows arrive without the names of their columns"),
)


def check_version(server: Server, report: Report) -> None:
    """Report the server itself: that it answers, and whether it is too old, or too new to know."""
    family = "MariaDB" if server.mariadb else "MySQL"
    oldest, newest = OLDEST[family], NEWEST[family]
    if server.version < oldest:
        wanted = ".".join(map(str, oldest))
        report.warning(
            f"{server.product} is older than {wanted}, which setl is made for", code="old-server"
        )
    elif server.version[:2] > newest:
        tried = ".".join(map(str, newest))
        report.warning(
            f"{server.product} is newer than {tried}, the newest that setl was tried with",
            "Rehearse with servers of this version first; what the binlog has that setl does not"
            " know stops the pipeline",
            code="new-server",
        )
    else:
        report.ok(f"{server.product} answers")


def check_binlog(
    server: Server, source: MysqlSource, schemas: Sequence[str], report: Report
) -> None:
    """Report everything about the binlog.

    Args:
        server: the source.
        source: how the channel file describes it.
        schemas: schemas whose changes have to be in the binlog.
        report: where to put it.

    Raises:
        SetlError: the server does not answer.
    """
    before = len(report.findings)
    on = server.variables.get("log_bin") == "ON"
    if not on:
        report.error(
            "the server writes no binlog",
            server.enable_binlog(),
            code="no-binlog",
        )
    engine = server.variables.get("binlog_storage_engine", "")
    if engine:
        report.error(
            f"the storage engine {engine} keeps the binlog (binlog_storage_engine), where setl"
            " finds no positions",
            "Remove binlog_storage_engine from the server's configuration file and restart it",
            code="binlog-engine",
        )
    for setting in _SETTINGS:
        value = server.variables.get(setting.name, setting.wanted)
        if value not in (setting.wanted, setting.as_good):
            report.error(
                f"{setting.name} is {value} and must be {setting.wanted}, else {setting.otherwise}",
                *server.set_global(setting.name, f"'{setting.wanted}'"),
                "Sessions that are open keep the old value: let clients connect again",
                code="binlog-setting",
            )
    _check_server_id(server, source, report)
    _check_gtid(server, source, report)
    if on:
        try:
            _check_position(server, source, schemas, report)
        except UnicodeDecodeError:
            server.reconnect()  # half of the answer is still to be read
            report.error(NAME_NOT_UTF8, RENAME_LOG_BIN, code="binlog-name")
        _check_retention(server, report)
    if not may_read_binlog(server):
        report.error(
            f"the account {server.account} lacks REPLICATION SLAVE, so it may not read the binlog",
            server.grant(["REPLICATION SLAVE"], "*.*"),
            code="missing-privilege",
        )
    if len(report.findings) == before:
        report.ok("the binlog is as it must be, and the account may read it")


def _check_server_id(server: Server, source: MysqlSource, report: Report) -> None:
    own = server.variables.get("server_id", "")
    if own == "0":
        report.error(
            "server_id is 0, with which a server refuses all replicas",
            *server.set_global("server_id", "1"),
            "Choose a number that no other server has",
            code="server-id",
        )
    if source.server_id is not None and str(source.server_id) == own:
        report.error(
            f"`server_id` in the channel file is {own}, which is the server's own",
            "Choose another number, or leave `server_id` out of the channel file",
            code="server-id",
        )


def _check_gtid(server: Server, source: MysqlSource, report: Report) -> None:
    mode = server.variables.get("gtid_mode", "ON")  # MariaDB always has GTIDs
    if mode == "ON":
        return
    # The mode can only be changed one step at a time.
    steps = [f"SET GLOBAL gtid_mode = {step};" for step in ("OFF_PERMISSIVE", "ON_PERMISSIVE")]
    statements = [
        *server.set_global("enforce_gtid_consistency", "ON"),
        *([] if server.kind.managed else steps),
        *server.set_global("gtid_mode", "ON"),
    ]
    what = f"gtid_mode is {mode}: positions only hold on this server, not on one that replaces it"
    report.add(
        "error" if isinstance(source.start, GtidStart) else "warning",
        what,
        *statements,
        code="start-too-early",
    )


def _check_position(
    server: Server, source: MysqlSource, schemas: Sequence[str], report: Report
) -> None:
    new_name = not server.mariadb and server.version >= (8, 2)
    question = "SHOW BINARY LOG STATUS" if new_name else "SHOW MASTER STATUS"
    server.refuse_unanswered()
    if server.attempt(question) is Outcome.DENIED:
        privilege = "REPLICATION CLIENT"
        report.error(
            f"the account {server.account} lacks {privilege}, so it may not ask where the binlog"
            " ends",
            server.grant([privilege], "*.*"),
            code="missing-privilege",
        )
        return
    for status in server.records(question):
        _check_filters(status, schemas, report)
    if isinstance(source.start, BinlogStart):
        files = [str(row[0]) for row in server.rows("SHOW BINARY LOGS")]
        if files and source.start.file not in files:
            report.error(
                f"`start` names {source.start.file}, which the server does not have",
                f"It has {files[0]} to {files[-1]}; choose one of these, or earliest, or latest",
                code="start-not-there",
            )


def _check_filters(status: dict[str, object], schemas: Sequence[str], report: Report) -> None:
    only, ignored = (
        {s for s in str(status.get(name) or "").split(",") if s}
        for name in ("binlog_do_db", "binlog_ignore_db")
    )
    for schema in schemas:
        if schema in ignored or (only and schema not in only):
            option = "binlog_ignore_db" if schema in ignored else "binlog_do_db"
            verb = "names" if schema in ignored else "does not name"
            change = "Remove it from" if schema in ignored else "Add it to"
            report.error(
                f"{option} {verb} {schema}, so its changes are not in the binlog",
                f"{change} {option} in the server's configuration file and restart the server",
                code="binlog-filter",
            )


def _check_retention(server: Server, report: Report) -> None:
    for name in _SIZE_LIMITS:
        limit = int(float(server.variables.get(name) or 0))
        if limit:
            report.warning(
                f"binlogs are removed as soon as they hold more than {limit:,} bytes ({name}),"
                " whatever their age; a pipeline that stands still for longer than that takes"
                " loses its position and has to load its tables again",
                "Give the time in which so much is written at worst, so that the alarm comes"
                " before: `alarms: {position: {retention: 24h}}` in the channel file",
                code="binlog-size-limit",
            )
    try:
        retention = retention_of(
            server.variables, server.variables.get("version", ""), server.raw_rows
        )
    except pymysql.MySQLError as error:
        raise translate(error).at(server=server.endpoint) from error
    if retention.hidden:
        report.warning(
            f"{server.kind.service.value} removes binlogs by its setting {HOURS!r}, which the"
            f" account {server.account} may not read; it need not keep them at all",
            server.grant(["SELECT"], CONFIGURATION),
            code="binlog-retention",
        )
    if retention.seconds is None or retention.seconds >= _DAY:
        return
    week = server.set_global("binlog_expire_logs_seconds", str(7 * _DAY))
    report.warning(
        f"binlogs are removed after {retention.seconds / 3600:.3g} hours; a pipeline that stands "
        f"still"
        " for longer loses its position and has to load its tables again"
        if retention.seconds
        else f"{server.kind.service.value} removes binlogs at once ({HOURS!r} is not set); a"
        " pipeline that stands still loses its position and has to load its tables again",
        *((KEEP_A_WEEK,) if server.kind.managed else week),
        code="binlog-retention",
    )
