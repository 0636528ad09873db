"""What kind of server answers: its family, its version, and who runs it.

A managed server lets nobody set global variables by SQL. Its operator does so in a parameter group.

Sources: what servers of Amazon answer, https://github.com/github/gh-ost/issues/1425 and
https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.MasterAccounts.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")
_AURORA: Final = re.compile(r"(\d+\.\d+)\.mysql_aurora\.(\d+(?:\.\d+)*)")
_AURORA_AT_LEAST: Final = {"5.6": (5, 6, 10), "5.7": (5, 7, 12), "8.0": (8, 0, 23)}
"""Series → the MySQL that the first Aurora of the series is like."""
_BEFORE_MARIADB_11: Final = "5.5.5-"  # what its greeting begins with, for old replicas

NAMES_COLUMNS: Final = {False: (8, 0, 1), True: (10, 5)}
"""Whether MariaDB → the first version that can log the names of columns (binlog_row_metadata)."""

_CAN_BE_WRITTEN: Final = {False: (8, 0), True: (10, 5)}
"""The same: the first version that knows all statements of a load."""

SHOWS_REPLICAS: Final = (8, 0, 22)
"""The first MySQL that calls them so; slaves before."""


class Service(Enum):
    """Who runs a server; the value is how a text names it."""

    OWN = ""
    RDS = "RDS"
    AURORA = "Aurora"


@dataclass(frozen=True, slots=True)
class ServerKind:
    """What is known of a server by its version and its variables.

    Attributes:
        mariadb: whether it is a MariaDB; anything else is a MySQL.
        version: its version as numbers; Aurora's is that of the MySQL that it is like.
        product: its name and version, for people.
        service: who runs it.
    """

    mariadb: bool
    version: tuple[int, ...]
    product: str
    service: Service = Service.OWN

    @classmethod
    def of(cls, version: str, variables: Mapping[str, str] | None = None) -> ServerKind:
        """Find out.

        Args:
            version: as the server tells it.
            variables: global variables by name, those that are known.
        """
        known = variables or {}
        mariadb = "mariadb" in version.lower()
        base = known.get("basedir", "")
        aurora = _AURORA.search(version) or _AURORA.search(base)
        release = known.get("aurora_version") or (aurora.group(2) if aurora else "")
        numbers = version_numbers(version)
        if release:
            return cls(mariadb, numbers, f"Aurora MySQL {release}", Service.AURORA)
        service = Service.RDS if base.startswith("/rdsdbbin") else Service.OWN
        brand = "MariaDB" if mariadb else "MySQL"
        if known.get("version_comment", "").startswith("Percona"):
            brand = "Percona Server"
        reported = version.removeprefix(_BEFORE_MARIADB_11).partition("-")[0]
        return cls(mariadb, numbers, f"{service.value} {brand} {reported}".strip(), service)

    @property
    def managed(self) -> bool:
        """Whether its variables are set in a parameter group."""
        return self.service is not Service.OWN

    @property
    def binlog_status(self) -> str:
        """The statement that says where the binlog ends."""
        # MySQL 8.2 has both names; 8.4 dropped the old one, MariaDB never had the new one.
        new_name = not self.mariadb and self.version >= (8, 2)
        return "SHOW BINARY LOG STATUS" if new_name else "SHOW MASTER STATUS"

    @property
    def group(self) -> str:
        """The parameter group, as an operator knows it."""
        of = "cluster " if self.service is Service.AURORA else ""
        return f"the DB {of}parameter group on {self.service.value}"

    @property
    def no_source(self) -> str:
        """Why its binlog cannot be read, one sentence; "" if it can."""
        since = NAMES_COLUMNS[self.mariadb]
        if self.version >= since:
            return ""
        return (
            f"{self.product} cannot be a source: its binlog does not name columns, which"
            f" {_family(self.mariadb)} does from {_dotted(since)} on"
        )

    @property
    def no_target(self) -> str:
        """Why it cannot be written to, one sentence; "" if it can."""
        since = _CAN_BE_WRITTEN[self.mariadb]
        if self.version >= since:
            return ""
        return (
            f"{self.product} cannot be a target: it lacks statements that loads need, which"
            f" {_family(self.mariadb)} has from {_dotted(since)} on"
        )


UPGRADE_SOURCE: Final = (
    "Upgrade it. Or read a replica of it, MySQL 8.0 or MariaDB 10.5 or newer, that writes a binlog"
    " of its own (log_slave_updates, binlog_row_metadata = FULL)"
)
UPGRADE_TARGET: Final = "Upgrade it to MySQL 8.0 or MariaDB 10.5, or newer"


def version_numbers(text: str) -> tuple[int, ...]:
    """A server's version as numbers: of 8.4.2-0ubuntu1, 10.11.6-MariaDB-log and their like."""
    aurora = _AURORA.search(text)
    if aurora is not None:
        series = aurora.group(1)
        return _AURORA_AT_LEAST.get(series, tuple(map(int, series.split("."))))
    found = _NUMBERS.match(text.removeprefix(_BEFORE_MARIADB_11))
    return tuple(map(int, found.group().split("."))) if found else ()


def _family(mariadb: bool) -> str:  # noqa: FBT001
    return "MariaDB" if mariadb else "MySQL"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
