"""What tests of schema changes have in common."""

import pytest

from tests.integration.ddl_sites import TABLES, TwoSites
from tests.integration.pipelines import new_database
from tests.mysql_servers import is_mariadb


@pytest.fixture
def sites(servers):
    a, b = servers
    with new_database(servers, "rows", *TABLES) as name:
        yield TwoSites(a, b, name)


@pytest.fixture
def mariadb(servers):
    """Whether both servers are MariaDBs."""
    a, b = servers
    with a.connect() as source, b.connect() as target:
        return is_mariadb(source) and is_mariadb(target)
