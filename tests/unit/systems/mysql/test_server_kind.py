"""What a server is by its version and its variables."""

import pytest

from setl.systems.mysql.server_kind import ServerKind, Service, version_numbers
from tests.other_servers.profiles import PROFILES

RDS = {"basedir": "/rdsdbbin/mysql-8.0.35.R2/"}
AURORA = {"basedir": "/rdsdbbin/oscar-8.0.mysql_aurora.3.04.0.0.32961.0/"}
PERCONA = {"version_comment": "Percona Server (GPL), Release 28, Revision 47601f19"}


@pytest.mark.parametrize(
    ("version", "variables", "product", "numbers", "service"),
    [
        ("8.4.3", {}, "MySQL 8.4.3", (8, 4, 3), Service.OWN),
        ("5.7.44-log", {}, "MySQL 5.7.44", (5, 7, 44), Service.OWN),
        ("8.0.36-28", PERCONA, "Percona Server 8.0.36", (8, 0, 36), Service.OWN),
        ("8.0.35", RDS, "RDS MySQL 8.0.35", (8, 0, 35), Service.RDS),
        ("8.0.28", AURORA, "Aurora MySQL 3.04.0.0.32961.0", (8, 0, 28), Service.AURORA),
        ("8.0.32", {"aurora_version": "3.05.2"}, "Aurora MySQL 3.05.2", (8, 0, 32), Service.AURORA),
        ("8.0.mysql_aurora.3.05", {}, "Aurora MySQL 3.05", (8, 0, 23), Service.AURORA),
        ("5.7.mysql_aurora.2.11.1", {}, "Aurora MySQL 2.11.1", (5, 7, 12), Service.AURORA),
        ("10.11.6-MariaDB-log", {}, "MariaDB 10.11.6", (10, 11, 6), Service.OWN),
        ("5.5.5-10.4.34-MariaDB", {}, "MariaDB 10.4.34", (10, 4, 34), Service.OWN),
        (
            "10.6.14-MariaDB-log",
            {"basedir": "/rdsdbbin/mariadb-10.6.14.R1/"},
            "RDS MariaDB 10.6.14",
            (10, 6, 14),
            Service.RDS,
        ),
    ],
)
def test_kinds(version, variables, product, numbers, service):
    kind = ServerKind.of(version, variables)
    assert (kind.product, kind.version, kind.service) == (product, numbers, service)
    assert kind.mariadb == ("MariaDB" in product)
    assert kind.managed == (service is not Service.OWN)


def test_a_version_that_is_none():
    assert version_numbers("") == version_numbers("unknown") == ()


@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_who_is_refused(profile):
    kind = ServerKind.of(profile.version, profile.variables)
    assert (not kind.no_source, not kind.no_target) == (profile.reads, profile.writes)


def test_refusals_are_one_sentence():
    old = ServerKind.of("5.7.44-log")
    assert old.no_source == (
        "MySQL 5.7.44 cannot be a source: its binlog does not name columns, which MySQL does from"
        " 8.0.1 on"
    )
    assert old.no_target == (
        "MySQL 5.7.44 cannot be a target: it lacks statements that loads need, which MySQL has from"
        " 8.0 on"
    )
    assert "from 10.5 on" in ServerKind.of("10.4.34-MariaDB").no_source
