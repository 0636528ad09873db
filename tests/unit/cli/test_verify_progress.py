"""Each target is told of as it ends; the result alone is on standard output."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from setl.bulk.verdict import TableVerdict
from setl.cli.rows.comparing import Compared
from setl.cli.rows.verifying import _sentence
from tests.unit.cli.cluster_in_memory import definition

EQUAL = TableVerdict("s.t", "s.t", 1_500, 1_500, 0, 0, 0)
WORSE = TableVerdict("s.u", "s.u", 20, 18, 2, 0, 1, undecided=4)


class BrokenError(Exception):
    pass


@pytest.fixture
def verified(shop, tmp_path, monkeypatch):
    """Runs the command over a comparison that gives two verdicts, and then perhaps fails."""
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(definition(pipelines=("ab",))))

    def run(*, fails=False):
        @contextmanager
        def comparer(*_, **__):
            yield Comparer()

        class Comparer:
            def compare(self, channel, config, tables, finished):
                finished(EQUAL)
                finished(WORSE)
                if fails:
                    raise BrokenError
                return [Compared(channel, config, verdict) for verdict in (EQUAL, WORSE)]

        monkeypatch.setattr("setl.cli.rows.comparing.comparer", comparer)
        return shop.run("verify", str(file), "-o", "json")

    return run


LATE = replace(EQUAL, target_rows=0, caught_up=1500)


def test_rows_that_came_while_they_were_compared_are_told():
    """Else a target that had no row when it was counted is called equal, and nobody sees why."""
    said = _sentence("shop/ab", LATE)
    assert said == "shop/ab: s.t: equal, 1,500 keys caught up meanwhile, 1,500 rows at the source"


SAID = [
    "shop/ab: s.t: equal, 1,500 rows at the source",
    "shop/ab: s.u: 3 differ, 4 undecided, 20 rows at the source",
]


def test_targets_are_told_of_beside_the_result(verified, capsys):
    assert verified() == 1
    told = capsys.readouterr()
    assert [row["target"] for row in json.loads(told.out)] == ["s.t", "s.u"]
    assert [line.rstrip() for line in told.err.splitlines() if line.strip()] == SAID


def test_what_was_compared_before_a_failure_is_known(verified, capsys):
    with pytest.raises(BrokenError):
        verified(fails=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.rstrip() for line in told.err.splitlines() if line.strip()] == SAID
