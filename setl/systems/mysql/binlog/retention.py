"""For how long a server keeps its binlogs.

RDS and Aurora do not go by the server's variables, but by a setting of their own. Where it is
NULL, they remove a binlog as soon as they need it no more.
Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/mysql-stored-proc-configuring.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pymysql

from setl.systems.mysql.connection import error_number
from setl.systems.mysql.server_kind import ServerKind

RETENTION_VARIABLES: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('binlog_expire_logs_seconds', 'expire_logs_days', 'basedir', 'aurora_version')"
)
"""Asks for the variables that `retention_of` needs."""

HOURS: Final = "binlog retention hours"
CONFIGURATION: Final = "mysql.rds_configuration"
KEEP_A_WEEK: Final = f"CALL mysql.rds_set_configuration('{HOURS}', 168);"

_HIDDEN: Final = frozenset({1142, 1143, 1146, 1044, 1049})
_QUESTION: Final = f"SELECT value FROM {CONFIGURATION} WHERE name = '{HOURS}'"


class Retention(NamedTuple):
    """What is known of it.

    Attributes:
        seconds: for which binlogs are kept, 0 for not at all; None for ever, or if it is hidden.
        hidden: whether the account may not know.
    """

    seconds: float | None
    hidden: bool = False


def retention_of(
    variables: Mapping[str, str],
    version: str,
    ask: Callable[[str], Sequence[tuple[Any, ...]]],
) -> Retention:
    """Find out.

    Args:
        variables: the server's, those of `RETENTION_VARIABLES` among them.
        version: as the server tells it.
        ask: asks the server.

    Raises:
        pymysql.MySQLError: an error of the server.
    """
    if ServerKind.of(version, variables).managed:
        try:
            rows = ask(_QUESTION)
        except pymysql.MySQLError as error:
            if error_number(error) not in _HIDDEN:
                raise
            return Retention(None, hidden=True)
        hours = next((value for (value,) in rows), None)
        return Retention(float(hours or 0) * 3600)
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    seconds = seconds or float(variables.get("expire_logs_days") or 0) * 86_400
    return Retention(seconds or None)
