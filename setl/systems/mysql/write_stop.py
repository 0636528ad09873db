"""Stops writes to a MySQL or MariaDB server: see `setl.systems.write_stop.WriteStop`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pymysql.cursors import Cursor

from setl.errors import ConfigurationError
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.server import Server
from setl.systems.mysql.server_kind import Service
from setl.systems.write_stop import Writes

_LOCK_WAIT: Final = 15
"""Seconds that statements under way may take to end before the stop is given up."""

_NAMES: Final = ("read_only", "super_read_only")
_OFF: Final = {"0", "OFF"}
_NO_CLIENTS: Final = {"Daemon", "Binlog Dump", "Binlog Dump GTID", "Slave_IO", "Slave_SQL"}
_BYPASS_MYSQL: Final = frozenset({"SUPER", "CONNECTION_ADMIN"})
_BYPASS_MARIADB: Final = frozenset({"READ ONLY ADMIN", "READ_ONLY ADMIN"})
_EVERYTHING: Final = "ALL PRIVILEGES"


class MysqlWriteStop:
    """``read_only`` of a server. Every call has a connection of its own.

    Not ``super_read_only``: it refuses setl's own heartbeats too, and what the way back of a
    channel writes.
    """

    def __init__(self, endpoint: MysqlEndpoint) -> None:
        """Nothing is connected yet."""
        self._endpoint = endpoint

    def look(self) -> Writes:
        """See `WriteStop.look`."""
        with Server.opened(self._endpoint) as server:
            held = _privileges(server)
            settings = {n: server.variables[n] for n in _NAMES if n in server.variables}
            bypass = _bypass(mariadb=server.mariadb)
            strict = settings.get("super_read_only", "OFF") not in _OFF
            return Writes(
                server=_identity(server),
                stopped=strict or settings["read_only"] not in _OFF,
                settings=settings,
                passes=bool(held & bypass) and not strict,
                bypass_grant=_bypass_grant(server),
                lacking=_lacking(server, held),
                others=_others(server, bypass),
            )

    def stop(self) -> None:
        """See `WriteStop.stop`."""
        self._set({"read_only": "ON"})

    def restore(self, settings: Mapping[str, str]) -> None:
        """See `WriteStop.restore`."""
        self._set({name: "OFF" if settings[name] in _OFF else "ON" for name in settings})

    def _set(self, values: Mapping[str, str]) -> None:
        unknown = set(values) - set(_NAMES)
        if unknown:
            raise ConfigurationError(f"no settings that stop writes: {', '.join(sorted(unknown))}")
        connection = connect(self._endpoint)
        try:
            with translating(self._endpoint), connection.cursor(Cursor) as cursor:
                cursor.execute(f"SET SESSION lock_wait_timeout = {_LOCK_WAIT}")
                # The strict one first if both go off: it keeps the other one on.
                for name in sorted(values, reverse=values.get("read_only") == "OFF"):
                    _set_one(cursor, name, values[name])
        finally:
            connection.close()


def _set_one(cursor: Any, name: str, value: str) -> None:
    """Set it if it is otherwise: some servers wait for all statements even where it is so."""
    cursor.execute(f"SELECT @@GLOBAL.{name}")
    (now,) = cursor.fetchone()
    if (str(now) in _OFF) != (value in _OFF):
        cursor.execute(f"SET GLOBAL {name} = {value}")


def _identity(server: Server) -> str:
    return server.variables.get("server_uuid") or server.variables.get("server_id", "")


def _bypass(*, mariadb: bool) -> frozenset[str]:
    return (_BYPASS_MARIADB if mariadb else _BYPASS_MYSQL) | {_EVERYTHING}


def _bypass_name(*, mariadb: bool) -> str:
    return "READ ONLY ADMIN" if mariadb else "CONNECTION_ADMIN"


def _bypass_grant(server: Server) -> str:
    if server.kind.service is Service.RDS:
        return "RDS grants that to no account; stop the application, and use `setl wait`"
    return server.grant([_bypass_name(mariadb=server.mariadb)], "*.*")


def _lacking(server: Server, held: frozenset[str]) -> str:
    if server.kind.managed:
        # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.MasterAccounts.html
        return f"no account may; set read_only to 1 in {server.kind.group}, and try again"
    if held & {_EVERYTHING} or (not server.mariadb and "SUPER" in held):
        return ""
    wanted = ["READ ONLY ADMIN"] if server.mariadb else ["SYSTEM_VARIABLES_ADMIN"]
    if not server.mariadb:
        wanted.append("CONNECTION_ADMIN")
    missing = [name for name in wanted if not held & {name, name.replace("READ ONLY", "READ_ONLY")}]
    return server.grant(missing, "*.*") if missing else ""


def _privileges(server: Server) -> frozenset[str]:
    """What the account may do on the whole server, by itself or in the roles it has now."""
    everywhere = (grant.privileges for grant in server.grants() if not grant.schema)
    return frozenset[str]().union(*everywhere)


def _others(server: Server, bypass: frozenset[str]) -> tuple[str, ...]:
    """Connected accounts that a stop does not stop; only those that this account may see."""
    own = server.account.partition("@")[0].strip("'")
    connected = {each.user for each in server.processes() if each.command not in _NO_CLIENTS}
    granted = server.rows("SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES")
    powerful = {str(who).partition("@")[0].strip("'") for who, kind in granted if kind in bypass}
    return tuple(sorted((connected & powerful) - {own, "event_scheduler", "system user"}))
