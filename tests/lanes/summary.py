"""What became of all tests, from what the lanes wrote down."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.lanes.plan import is_expected_skip

_ORDER = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
_BAD = frozenset({"failed", "error", "xpassed"})


@dataclass
class Results:
    """What became of the tests of one lane, or of all.

    Attributes:
        counts: what became of them, in pytest's words → how often.
        failures: names of tests that failed, each once.
        skips: test → why it was skipped.
        seconds: test → how long it took, with what was set up for it.
        under_way: tests that have begun and not ended.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    skips: dict[str, str] = field(default_factory=dict[str, str])
    seconds: Counter[str] = field(default_factory=Counter[str])
    under_way: list[str] = field(default_factory=list[str])

    def add(self, line: str) -> None:
        """Take in a line of a lane's record; half a line of a killed lane is left out."""
        try:
            said = json.loads(line)
        except ValueError:
            return
        test = said.get("test", "")
        match said["kind"]:
            case "begun":
                self.under_way.append(test)
            case "ended" if test in self.under_way:
                self.under_way.remove(test)
            case "result":
                self._result(test, said["what"], said.get("seconds", 0.0), said.get("reason", ""))

    def _result(self, test: str, what: str, seconds: float, reason: str) -> None:
        self.seconds[test] += seconds  # type: ignore[assignment]
        if what:
            self.counts[what] += 1
        if what in _BAD and test not in self.failures:
            self.failures.append(test)
        if what == "skipped":
            self.skips[test] = reason.removeprefix("Skipped: ")

    @property
    def unexpected_skips(self) -> list[str]:
        """Tests that were skipped and may not be."""
        return [test for test in self.skips if not is_expected_skip(test)]

    @property
    def good(self) -> bool:
        """Whether nothing failed and nothing is missing."""
        return not (self.failures or self.unexpected_skips or self.under_way)


def together(lanes: Iterable[Results]) -> Results:
    """The results of several lanes in one."""
    total = Results()
    for lane in lanes:
        total.counts += lane.counts
        total.failures += lane.failures
        total.skips |= lane.skips
        total.seconds += lane.seconds
        total.under_way += lane.under_way
    return total


def slowest(results: Results, count: int = 15, least: float = 5.0) -> list[str]:
    """Lines about the slowest tests."""
    found = [(s, t) for t, s in results.seconds.most_common(count) if s >= least]
    return [f"{seconds:7.1f} s  {test}" for seconds, test in found]


def skip_lines(results: Results) -> list[str]:
    """Lines about the tests that were skipped, and why."""
    unexpected = set(results.unexpected_skips)
    return [
        f"{'SKIPPED, which is not expected' if test in unexpected else 'skipped'}: {test}: {why}"
        for test, why in sorted(results.skips.items())
    ]


def counted(results: Results) -> str:
    """The counts as pytest writes them: ``2 failed, 10 passed``."""
    known = [f"{results.counts[what]} {what}" for what in _ORDER if results.counts[what]]
    return ", ".join(known) or "no tests ran"


def closing_line(results: Results, seconds: float) -> str:
    """The last line, as pytest writes it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    text = f" {counted(results)} in {seconds:.2f}s ({hours}:{minutes:02}:{rest:02}) "
    return text.center(88, "=")
