"""The servers that setl meets, and what `setl` does with each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_OF_AMAZON = {"version_comment": "Source distribution"}


@dataclass(frozen=True)
class Profile:
    """A server, by what it answers.

    Attributes:
        name: as the documentation's table calls it.
        version: what ``VERSION()`` is.
        greeting: the version that its greeting names; "" for the same.
        variables: global variables that are otherwise than at the server behind the stub.
        service: "RDS" or "Aurora"; "" for a server of one's own.
        reads: whether it can be a source.
        writes: whether it can be a target.
    """

    name: str
    version: str
    greeting: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    service: str = ""
    reads: bool = True
    writes: bool = True

    @property
    def mariadb(self):
        return "MariaDB" in self.version

    @property
    def family(self):
        return "mariadb" if self.mariadb else "mysql"

    @property
    def numbers(self):
        return tuple(map(int, self.version.partition("-")[0].split(".")))

    @property
    def greets_as(self):
        # MariaDB before 11 says so first, for replicas that take no version 10.
        before = "5.5.5-" if self.mariadb and self.numbers < (11,) else ""
        return self.greeting or before + self.version

    def __str__(self):
        return self.name.replace(" ", "-")


def _mysql(version, **options):
    return Profile(f"MySQL {version.partition('-')[0]}", version, **options)


def _mariadb(version, **options):
    numbers = ".".join(version.split(".")[:2])
    return Profile(f"MariaDB {numbers}", f"{version}-MariaDB-log", **options)


PROFILES = (
    _mysql("5.6.51-log", reads=False, writes=False),
    _mysql("5.7.44-log", reads=False, writes=False),
    _mysql("8.0.21"),
    _mysql("8.0.36"),
    _mysql("8.4.3"),
    Profile(
        "Percona Server 8.0",
        "8.0.36-28",
        variables={"version_comment": "Percona Server (GPL), Release 28, Revision 47601f19"},
    ),
    Profile(
        "RDS MySQL 8.0",
        "8.0.35",
        variables={**_OF_AMAZON, "basedir": "/rdsdbbin/mysql-8.0.35.R2/"},
        service="RDS",
    ),
    Profile(
        "Aurora MySQL 3.05",
        "8.0.32",
        greeting="8.0.mysql_aurora.3.05.2",
        variables={
            **_OF_AMAZON,
            "basedir": "/rdsdbbin/oscar-8.0.mysql_aurora.3.05.2.0.34116.0/",
            "aurora_version": "3.05.2",
        },
        service="Aurora",
    ),
    _mariadb("10.4.34", reads=False, writes=False),
    _mariadb("10.5.29"),
    _mariadb("10.6.21"),
    _mariadb("10.11.11"),
    _mariadb("11.4.5"),
    _mariadb("11.8.2"),
)
