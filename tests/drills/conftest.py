"""One world for all drills of a run on the same sites; it is repaired between them."""

from functools import reduce
from operator import or_

import pytest

from setl_drills.catalogue import CATALOGUE
from setl_drills.runner import Runner
from setl_drills.world import NODES, Needs, World

SLACK = 4.0
"""Seconds that outages may be longer here: tests run beside whatever else the machine does, while
`setl drill run` judges I4's bound as it is."""
TEMPO = 1 / 3
"""How fast users write here: each of their bursts is a few Spark jobs on both sites, which were
more than half of what the drills' processors did. Bursts stay as large as they are."""
FEWER_NODES = 2
"""On MySQL, where drills seldom kill a node: a third is there to take over from the second while
the first is still starting."""


@pytest.fixture(scope="session")
def runner(tmp_path_factory):
    return Runner(say=print, folder=tmp_path_factory.mktemp("drills"), keep=True)


@pytest.fixture(scope="session")
def sites(request):
    """What the sites are, a key of `setl_drills.world.SITES`."""
    return request.param


@pytest.fixture(scope="session")
def world(runner, sites, request):
    chosen = {params["name"] for params in _drills(request.session) if params["sites"] == sites}
    needs = reduce(or_, (CATALOGUE[name].needs for name in chosen), Needs())
    folder = runner.folder / f"world-{sites}"
    nodes = NODES if sites == "mariadb" else FEWER_NODES
    with World(
        folder, needs, say=print, slack=SLACK, tempo=TEMPO, sites=sites, nodes=nodes
    ) as started:
        yield started


def _drills(session):
    """What the drills among a session's tests are called with."""
    for item in session.items:
        if "world" in item.fixturenames:
            yield item.callspec.params
