"""A few rounds of `setl drill oracle` through a node; an hour of it is the long form."""

import pytest

from setl_drills.oracle.definitions import Grammar
from setl_drills.oracle.formats import left_out
from setl_drills.oracle.node_rounds import NodeRounds
from setl_drills.oracle.running import Tally, own_world

SEED = 1
WITHOUT = ("labels", "lenient", "online", "behind")
"""What may stop the pipeline, and pauses, which take longest."""


@pytest.mark.servers
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("through", "without", "rounds"),
    # Most schema changes would stop a pipeline that reads a topic.
    [("", WITHOUT, 6), ("dts", (*WITHOUT, "ddl"), 4)],
    ids=["binlog", "dts"],
)
@pytest.mark.parametrize("sites", ["mariadb"], scope="session")
def test_random_histories_end_equal_or_with_an_error(
    sites, through, without, rounds, tmp_path_factory
):
    folder, tally, without = tmp_path_factory.mktemp("oracle"), Tally(), left_out(through, without)
    with own_world(sites, SEED, folder, through, without) as world:
        grammar = Grammar(world.mariadb, world.mixed, without)
        played = NodeRounds(world, SEED, grammar, folder / "histories")
        for number in range(rounds):
            outcome = played.play(number + 1)
            assert not outcome.differences, outcome
            tally.add(outcome)
    assert tally.ends[""] > rounds / 2, tally.lines
    assert tally.statements > 10 * rounds < tally.rows, tally.lines
