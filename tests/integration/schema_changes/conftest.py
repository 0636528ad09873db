"""What tests of schema changes have in common."""

import pytest

from tests.integration.ddl_sites import TABLES, TwoSites
from tests.integration.pipelines import execute, fresh_name
from tests.mysql_servers import is_mariadb


@pytest.fixture
def sites(servers):
    name = fresh_name("rows")
    for server in servers:
        execute(server, f"CREATE DATABASE {name}", *(t.format(db=name) for t in TABLES))
    a, b = servers
    yield TwoSites(a, b, name)
    for server in servers:
        execute(server, f"DROP DATABASE {name}")


@pytest.fixture
def mariadb(servers):
    """Whether both servers are MariaDBs."""
    a, b = servers
    with a.connect() as source, b.connect() as target:
        return is_mariadb(source) and is_mariadb(target)
