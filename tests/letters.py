"""Dead letters in memory, and some to put there."""

from collections import Counter
from dataclasses import replace
from typing import Any

from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.store import Pending, tallied


def letter(pipeline, number, **changes):
    made = DeadLetter(
        id=f"{abs(hash((pipeline, number))):016x}"[:16],
        pipeline=pipeline,
        state=State.OPEN,
        target="shop.orders",
        source="shop.orders",
        version=1000 + number,
        position=f"bin.000001:{number}",
        operation="upsert",
        key_hash=f"{number:032x}",
        key_values=f"[{number}]",
        error="too long 😀",
        hint="fix 'it'",
        payload='{"form": "row", "a": "\\udc80\\\\", "b": "%s"}',
        attempts=1,
        at=1_763_700_000.25,
        batch=3,
        epoch=(1 << 62) + 1,
        nid="n1",
    )
    return replace(made, **changes)


def content_of(stored) -> Any:
    """The change in a letter or a faulty row, of whichever form."""
    return stored.content


class MemoryDeadLetters:
    """A `DeadLetterStore` without a server."""

    def __init__(self):
        self.letters = {}

    def keep(self, letters, *, again=()):
        for each in letters:
            if each.id in again and each.id not in self.letters:
                continue
            tried = self.letters[each.id].attempts if each.id in self.letters else 0
            self.letters[each.id] = replace(each, attempts=tried + 1)

    def mark(self, ids, state):
        self._change(ids, state=state)

    def forget_keys(self, ids):
        self._change(ids, state=State.OPEN, key_hash="")

    def _change(self, ids, **values):
        for i in set(ids) & self.letters.keys():
            if self.letters[i].state is not State.SUPERSEDED:
                self.letters[i] = replace(self.letters[i], **values)

    def remove(self, ids):
        return sum(self.letters.pop(i, None) is not None for i in set(ids))

    def pending(self, pipeline, target):
        return [
            Pending(x.id, x.key_hash, x.version)
            for x in self.find(pipeline, states=[State.OPEN, State.RETRY])
            if x.target == target and x.key_hash
        ]

    def find(self, pipeline, *, ids=(), target="", states=(), limit=0, newest=False):
        found = [
            x
            for x in self.letters.values()
            if x.pipeline == pipeline
            and (not ids or x.id in ids)
            and (not target or target in (x.target, x.source))
            and (not states or x.state in states)
        ]
        found.sort(key=lambda x: (x.version, x.id), reverse=newest)
        return found[: limit or None]

    def states(self, pipeline, ids=()):
        return {
            i: x.state
            for i, x in self.letters.items()
            if x.pipeline == pipeline and (not ids or i in ids)
        }

    def tally(self, pipeline):
        counts = Counter((x.state, x.target) for x in self.find(pipeline))
        return tallied((state, target, n) for (state, target), n in counts.items())

    def trim(self, pipeline, most):
        old = self.find(pipeline, states=[State.SUPERSEDED], newest=True)[most:]
        self.remove([x.id for x in old])
