"""One world for all drills of a run; it is mended between them."""

from functools import reduce
from operator import or_

import pytest

from setl_drills.catalogue import CATALOGUE
from setl_drills.runner import Runner
from setl_drills.world import Needs, World

SLACK = 4.0
"""Seconds that outages may be longer here: tests run beside whatever else the machine does, while
`setl drill run` judges I4's bound as it is."""


@pytest.fixture(scope="session")
def runner(tmp_path_factory):
    return Runner(say=print, folder=tmp_path_factory.mktemp("drills"), keep=True)


@pytest.fixture(scope="session")
def world(runner, request):
    chosen = {item.callspec.params["name"] for item in request.session.items if _is_drill(item)}
    needs = reduce(or_, (CATALOGUE[name].needs for name in chosen), Needs())
    with World(runner.folder / "world", needs, say=print, slack=SLACK) as world:
        yield world


def _is_drill(item):
    return "name" in getattr(getattr(item, "callspec", None), "params", {}) and (
        "world" in item.fixturenames
    )
