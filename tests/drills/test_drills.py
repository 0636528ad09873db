"""Every drill once, with a fixed seed; `setl drill run all --seeds 20` is the long form."""

import pytest

from setl_drills.catalogue import CATALOGUE

SEED = 1


@pytest.mark.timeout(600)
@pytest.mark.servers
@pytest.mark.parametrize("name", CATALOGUE)
def test_drill(name, world, runner):
    result = runner.run_one(world, CATALOGUE[name], SEED)
    assert result.passed, "\n".join([*result.problems, f"logs: {result.folder}"])
