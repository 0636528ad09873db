import pytest

from setl.node.host.tuning import ThreadTurns, turn


@pytest.mark.parametrize(
    ("pipelines", "seconds"), [(0, 0.001), (10, 0.001), (30, 0.003), (50, 0.005), (900, 0.005)]
)
def test_many_pipelines_have_longer_turns(pipelines, seconds):
    assert turn(pipelines) == pytest.approx(seconds)


def test_it_is_set_when_it_changes():
    reported = []
    turns = ThreadTurns(reported.append)
    for pipelines in (0, 3, 40, 40, 2):
        turns.share(pipelines)
    assert reported == [0.001, 0.004, 0.001]
