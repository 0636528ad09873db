"""A few rounds of `setl drill oracle` through a node; an hour of it is the long form."""

import pytest

from setl_drills.oracle.definitions import Grammar
from setl_drills.oracle.node_rounds import NodeRounds
from setl_drills.oracle.running import Tally, own_world

SEED = 1
ROUNDS = 6
WITHOUT = frozenset(("labels", "lenient", "online", "behind"))
"""What may stop the pipeline, and pauses, which take longest."""


@pytest.mark.servers
@pytest.mark.timeout(300)
@pytest.mark.parametrize("sites", ["mariadb"], scope="session")
def test_random_histories_end_equal_or_with_an_error(sites, tmp_path_factory):
    folder, tally = tmp_path_factory.mktemp("oracle"), Tally()
    with own_world(sites, SEED, folder) as world:
        grammar = Grammar(world.mariadb, world.mixed, WITHOUT)
        rounds = NodeRounds(world, SEED, grammar, folder / "histories")
        for number in range(ROUNDS):
            outcome = rounds.play(number + 1)
            assert not outcome.differences, outcome
            tally.add(outcome)
    assert tally.ends[""] > ROUNDS / 2, tally.lines
    assert tally.statements > 10 * ROUNDS < tally.rows, tally.lines
