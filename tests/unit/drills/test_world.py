"""What a world is made of, before anything of it is started."""

import pytest

from setl_drills.world import SITES, Needs, World
from setl_embedded import MariaDb, MySql

FAMILIES = {"mariadb": (MariaDb, MariaDb), "mysql": (MySql, MySql), "mixed": (MySql, MariaDb)}


@pytest.mark.parametrize("sites", SITES)
def test_the_sites_are_servers_of_their_families(sites, tmp_path):
    world = World(tmp_path, Needs(replica=True), say=print, sites=sites)
    assert tuple(type(world.sites[name]) for name in "ab") == FAMILIES[sites]
    assert type(world.replica) is FAMILIES[sites][0]
    assert world.sites["a"].server_id != world.sites["b"].server_id
