"""Each target is told of as it ends; the result alone is on standard output."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from setl.bulk.verdict import TableVerdict
from setl.cli.rows.comparing import Compared
from setl.cli.rows.verifying import _conclusion, _sentence
from setl.errors import ConfigurationError
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

    def run(*, fails=False, one_fails=False):
        @contextmanager
        def comparer(*_, **__):
            yield Comparer()

        class Comparer:
            def compare(self, channel, config, tables, finished, failed):
                finished(EQUAL)
                if one_fails:
                    failed("s.v", ConfigurationError("no such table", target="s.v"))
                    return [Compared(channel, config, EQUAL)]
                finished(WORSE)
                if fails:
                    raise BrokenError
                return [Compared(channel, config, verdict) for verdict in (EQUAL, WORSE)]

        monkeypatch.setattr("setl.cli.rows.comparing.comparer", comparer)
        return shop.run("verify", str(file), "-o", "json")

    return run


MERGED = replace(EQUAL, source_rows=1_503, merged=3)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (replace(EQUAL, caught_up=1500), "equal, 1,500 keys caught up meanwhile, 1,500 rows"),
        (MERGED, "no key differs, 3 rows merged, 1,503 rows"),
        (replace(EQUAL, target_rows=1_499), "the numbers of rows differ, 1,500 rows"),
        (replace(EQUAL, different=1, target_rows=1_499), "1 differs, 1,500 rows"),
    ],
)
def test_how_a_target_compares(verdict, words):
    assert _sentence("shop/ab", verdict) == f"shop/ab: s.t: {words} at the source"


def test_all_equal_is_said_of_the_same_rows_only():
    assert _conclusion([EQUAL, EQUAL]) == "all equal."
    assert _conclusion([EQUAL, WORSE]) == _conclusion([WORSE, MERGED]) == ""
    assert _conclusion([EQUAL, MERGED]).startswith("no key differs; 3 rows of the source share")
    assert not _conclusion([replace(EQUAL, target_rows=1_499)])


SAID = [
    "shop/ab: s.t: equal, 1,500 rows at the source",
    "shop/ab: s.u: 3 differ, 4 undecided, 20 rows at the source",
]


def test_targets_are_reported_of_beside_the_result(verified, capsys):
    assert verified() == 1
    reported = capsys.readouterr()
    assert [row["target"] for row in json.loads(reported.out)] == ["s.t", "s.u"]
    assert [line.rstrip() for line in reported.err.splitlines() if line.strip()] == SAID


def test_what_was_compared_before_a_failure_is_known(verified, capsys):
    with pytest.raises(BrokenError):
        verified(fails=True)
    reported = capsys.readouterr()
    assert reported.out == ""
    assert [line.rstrip() for line in reported.err.splitlines() if line.strip()] == SAID


def test_a_target_that_cannot_be_compared_is_an_error_beside_the_others(verified, capsys):
    assert verified(one_fails=True) == 2
    reported = capsys.readouterr()
    equal, failed = json.loads(reported.out)
    assert (equal["target"], equal["differences"], equal["merged"]) == ("s.t", 0, 0)
    assert failed == {"pipeline": "shop/ab", "target": "s.v", "error": "no such table (target s.v)"}
    assert "Error: no such table" in reported.err
