"""Has leaders send again what a comparison found to differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from rich.progress import Progress, TaskID

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.bulk.comparison import Difference, What
from setl.bulk.repair import Repair, repair_of
from setl.bulk.verdict import TableVerdict
from setl.cli.access.cluster import AnswerNo, acting, requester
from setl.cli.rows.asking import wait_for_end
from setl.cli.rows.comparing import KEYS_AT_ONCE, Compared
from setl.cli.terminal.confirmation import confirm
from setl.cli.terminal.output import to_stderr
from setl.cli.terminal.progress import progress_line
from setl.model.load_request import RequestState
from setl.operate.questions import before_overwriting
from setl.operate.units import count
from setl.run.targets.shared import writers_beside

Connect = Callable[[], AbstractContextManager[Arbiter]]


class Compares(Protocol):
    """What looks at targets again; `setl.cli.rows.comparing.Comparer` is one."""

    def again(self, one: Compared) -> Compared:
        """Compare a whole target once more; raises SetlError."""
        ...

    def keys(self, one: Compared, differences: Sequence[Difference]) -> TableVerdict:
        """Look again at keys that differed, at most `KEYS_AT_ONCE`; raises SetlError."""
        ...


def repaired(
    found: Sequence[Compared],
    compares: Compares,
    connect: Connect,
    *,
    yes: bool,
    only: Collection[What] = tuple(What),
    overwritten: Mapping[PipelineId, Sequence[str]] | None = None,
) -> list[Compared]:
    """Repair what differs, after a question, and compare it again; returns what is so then.

    Args:
        found: what was found.
        compares: compares one of them once more.
        connect: opens a session with the cluster.
        yes: not to ask.
        only: which differences to repair.
        overwritten: what a repair of each pipeline may replace by older rows.

    Raises:
        AnswerNo: the answer is no, or a leader refuses.
    """
    asked = requester()
    of = {id(one): _to_repair(one, connect, only) for one in found}
    repairs = [(one, repair_of(one.verdict, asked.by, asked.now, of[id(one)])) for one in found]
    wanted = [(one, repair) for one, repair in repairs if repair.keys]
    for one, repair in repairs:
        if repair.left and not repair.keys:
            to_stderr(f"{one.ident}: {repair.target} cannot be repaired: {_why(one)}")
    if not wanted:
        return list(found)
    for one, repair in wanted:
        to_stderr(f"{one.ident}: {_words(one.verdict, repair)}")
    for ident in dict.fromkeys(one.ident for one, _ in wanted):
        if tables := (overwritten or {}).get(ident):
            to_stderr(f"{ident}: {before_overwriting(tables)}")
    confirm("Are you sure you want to send these rows again?", yes=yes)
    results = {id(one): one for one in found}
    for one, repair in wanted:
        results[id(one)] = _repaired(one, repair, compares, connect, of[id(one)])
    return [results[id(one)] for one in found]


def others_into(one: Compared, connect: Connect) -> Sequence[str]:
    """The other pipelines that write the target, too: rows that only it has may be theirs."""
    with connect() as arbiter:
        return writers_beside(arbiter, one.ident, one.config, one.verdict.table)


def _to_repair(one: Compared, connect: Connect, only: Collection[What]) -> Collection[What]:
    """Which differences to repair: not rows that may be those of another pipeline."""
    if What.EXTRA not in only or not one.verdict.extra:
        return only
    beside = others_into(one, connect)
    if not beside:
        return only
    rows = count(one.verdict.extra, "row", "rows")
    to_stderr(
        f"{one.ident}: {rows} that only {one.verdict.target} has {_are(one.verdict.extra)} left"
        f" there, since {', '.join(beside)} writes it, too",
    )
    return [what for what in only if what is not What.EXTRA]


_KEYLESS = (
    "the table has no key, so none of its rows can be sent without the others; `setl load --table`"
    " replaces all of them"
)
_WHY = (
    "several tables come together there, or a processor makes its rows, so that nobody knows from"
    " which rows of the source they come; `setl load --table` and `setl resend` send them again"
)


def _why(one: Compared) -> str:
    return _KEYLESS if one.verdict.differing.keyless else _WHY


def _words(verdict: TableVerdict, repair: Repair) -> str:
    differing = verdict.differing.keys
    extra = sum(what is What.EXTRA for _, what in differing)
    more = f"; {repair.left:,} more afterwards" if repair.left else ""
    keys = count(repair.keys, "key", "keys")
    return (
        f"{keys} of {verdict.table} {_are(repair.keys)} sent to {repair.target}"
        f" again, of which {extra:,} {_are(extra)} only there and {_are(extra)} deleted{more}"
    )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _repaired(
    one: Compared,
    repair: Repair,
    compares: Compares,
    connect: Connect,
    only: Collection[What],
) -> Compared:
    """Repair one target, as often as that helps.

    What a comparison found is dealt with by its keys, some after some, before everything is
    compared again: so a table is read about as often as it is compared, whatever differs.
    """
    while True:
        _send(one, one.verdict, repair, connect)
        further = [each for each in one.verdict.further if each.what in only]
        for begin in range(0, len(further), KEYS_AT_ONCE):
            some = further[begin : begin + KEYS_AT_ONCE]
            with progress_line() as shown:
                left = count(len(further) - begin, "key", "keys")
                words = f"{one.ident}: looks again, {left} of {one.verdict.target} left"
                shown.add_task(words, total=None)
                verdict = compares.keys(one, some)
            _send(one, verdict, _repair_of(verdict, only), connect)
        before, one = one, compares.again(one)
        repair = _repair_of(one.verdict, only)
        if not repair.keys or one.verdict.differences >= before.verdict.differences:
            return one


def _repair_of(verdict: TableVerdict, only: Collection[What]) -> Repair:
    asked = requester()
    return repair_of(verdict, asked.by, asked.now, only)


def _send(one: Compared, verdict: TableVerdict, repair: Repair, connect: Connect) -> None:
    """Have the leader send keys again, and wait for it.

    Raises:
        AnswerNo: they are not sent.
    """
    if not repair.keys:
        return
    with connect() as arbiter, progress_line() as shown:
        task = shown.add_task(f"{one.ident}: repairs {repair.target}", total=None)

        show = partial(_show, shown, task, one.ident)
        with acting(arbiter, "repair", str(one.ident)) as entry:
            entry.outcome = f"asked for: {count(repair.keys, 'key', 'keys')} of {verdict.table}"
            ended = wait_for_end(arbiter, one.ident, repair.requests, show)
    failed = [r.answer for r in ended if r.state is not RequestState.DONE]
    if failed:
        raise AnswerNo(f"{one.ident}: {repair.target} is not repaired: {failed[0]}")


def _show(shown: Progress, task: TaskID, ident: PipelineId, words: str) -> None:
    shown.update(task, description=f"{ident}: {words}")
