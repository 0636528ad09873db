"""How two sites agree on a row that both have written.

Each site applies the other's changes in their order. As long as every change finds the row that
it replaces, the two end equal: both have gone through the same changes, in whatever order, and
the sum of what each leaves minus what it replaces is the same. A change that does not find it
breaks the sum, also one that finds the very row that it leaves: both sites then made the same
change, and one is counted once here and twice there. Two rows that change places by and by show
it: A writes 7 and 5 again over 5, B writes 7. B takes A's first change for done and then writes
5; A takes B's change for a new one and writes 7.

So a change that does not find its row makes its target *ask*. The target decides by the policy,
writes the result, and asks the source to agree, by a row in ``retl.setl_conflict`` that travels
back with everything else. From then on it passes over what the source says of this key, until
it reads the *answer*. The source decides between what it is asked about and what it holds, writes
the result and answers: "instead of what you asked about, this". It counts its own state from what
it was asked about; the target applies the answer as a change of that. Both begin a new sum
there: whatever the target wrote after it asked, the source reads after the question, and
whatever the source writes after it answered, the target reads after the answer.

If both ask at the same time, the home site's question stands: the other site drops its own and
answers, and the home site passes over the other's, as over everything before the answer.

When the writes have stopped, each question is answered by a change that finds its row, so the
exchange ends. `tests/unit/load/conflicts` explores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from setl.load.conflicts.resolve import Rules, State, Winner, resolve, same
from setl.model.change import ABSENT, Row
from setl.model.conflict import Step


class Kept(NamedTuple):
    """What a site holds under a key, and what it waits for.

    Attributes:
        row: the row, None if there is none.
        question: id of its open question, or "".
        deleted: the row whose deletion the question is about, if it is about one.
        overdue: whether the answer takes so long that the source may be asked again.
    """

    row: Row | None
    question: str = ""
    deleted: Row | None = None
    overdue: bool = False


class Told(NamedTuple):
    """A question or an answer, on its way to the source; also the record of a decision.

    Attributes:
        key: values of the key columns.
        version: what in the source it was about.
        asks: id of the question, or "".
        answers: id of the question that it answers, or "".
        winner: whose state stays.
        incoming: what the source said.
        current: what the target held.
        result: what the target holds now.
        deleted: see `setl.model.conflict.Step.deleted`.
    """

    key: Row
    version: int
    asks: str
    answers: str
    winner: Winner
    incoming: Row | None
    current: Row | None
    result: Row | None
    deleted: Row | None


def settle(
    rules: Rules, steps: Iterable[Step], kept: dict[Row, Kept], new_id: Callable[[], str]
) -> list[Told]:
    """Take what the source says, in its order.

    Args:
        rules: how to decide.
        steps: what it says; each once, though it may be delivered again.
        kept: by key what the target holds; brought up to date. Every key of `steps` is in it.
        new_id: gives an id that no question ever had.

    Returns:
        What to tell the source, in this order.
    """
    told: list[Told] = []
    for step in steps:
        before = kept[step.key]
        after, message = meet(rules, before, step, new_id)
        kept[step.key] = after
        if message is not None:
            told.append(message)
    return told


def meet(
    rules: Rules, kept: Kept, step: Step, new_id: Callable[[], str]
) -> tuple[Kept, Told | None]:
    """What becomes of a key when the source says something of it, and what to tell the source."""
    if step.asks:
        if kept.question and not rules.from_home:
            return kept, None  # this is the home site, whose own question stands
        return _answer(rules, kept, step)
    if step.answers != kept.question:
        # What was said before the source read the question is part of no sum any more, so it
        # may be passed over, or ask again; but it may not be applied.
        if step.answers or not kept.overdue:
            return kept, None
    elif same(step.before, kept.row):
        return Kept(_filled(step.after, kept.row)), None
    return _ask(rules, kept, step, new_id())


def _answer(rules: Rules, kept: Kept, step: Step) -> tuple[Kept, Told]:
    winner, result = _decided(rules, kept, step)
    message = _told(kept, step, winner, result)._replace(answers=step.asks)
    return Kept(result.row), message


def _ask(rules: Rules, kept: Kept, step: Step, question: str) -> tuple[Kept, Told]:
    winner, result = _decided(rules, kept, step)
    message = _told(kept, step, winner, result)._replace(asks=question)
    return Kept(result.row, question, result.deleted), message


def _decided(rules: Rules, kept: Kept, step: Step) -> tuple[Winner, State]:
    incoming = State(step.after, step.deleted)
    current = State(kept.row, kept.deleted)
    winner = resolve(rules, incoming, current)
    if winner is Winner.TARGET:
        return winner, current
    row = _filled(step.after, kept.row)
    return winner, State(row, incoming.deleted or current.deleted if row is None else None)


def _told(kept: Kept, step: Step, winner: Winner, result: State) -> Told:
    return Told(
        step.key, step.version, "", "", winner, step.after, kept.row, result.row, result.deleted
    )


def _filled(row: Row | None, current: Row | None) -> Row | None:
    """A row whose missing columns keep what the target holds in them."""
    if row is None or current is None or ABSENT not in row:
        return row
    return tuple(c if v is ABSENT else v for v, c in zip(row, current, strict=True))
