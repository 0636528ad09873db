"""Two sites that write the same rows, with the real functions that decide about them.

Each site writes to its log: local writes, and what its loads tell the other site. The logs are
read in order. A row is (value, age); the key is left out, there is one.
"""

from typing import NamedTuple

from setl.load.conflicts.agreement import Kept, settle
from setl.load.conflicts.resolve import Rules
from setl.model.change import Row
from setl.model.conflict import Step

KEY = (1,)


class Site(NamedTuple):
    kept: Kept = Kept(None)
    log: tuple = ()
    read: int = 0  # of the other site's log: how far it is applied, stored with the rows
    asked: int = 0

    @property
    def row(self):
        return self.kept.row


class Policy(NamedTuple):
    newest: bool
    home: int

    def rules(self, target):
        return Rules(self.home != target, (lambda row: row[1]) if self.newest else None)


def written(site, row):
    """A local write; None deletes. A write that changes nothing is none."""
    before = site.row
    if row == before:
        return site
    step = Step(len(site.log) + 1, KEY, before, row, deleted=before if row is None else None)
    return site._replace(kept=site.kept._replace(row=row), log=(*site.log, step))


def loaded(policy, number, site, other, count, redelivered=0, overdue=False):
    """The next `count` entries of the other site's log, in one load.

    Of what is delivered again, a version tells that it was applied.
    """
    steps = other.log[max(0, site.read - redelivered) : site.read + count]
    steps = [step for step in steps if step.version > site.read]
    asked = site.asked

    def new_id():
        nonlocal asked
        asked += 1
        return f"{number}.{asked}"

    kept: dict[Row, Kept] = {KEY: site.kept._replace(overdue=overdue)}
    told = settle(policy.rules(number), steps, kept, new_id)
    log = list(site.log)
    for message in told:
        before = message.incoming if message.answers else None
        log.append(
            Step(
                len(log) + 1, KEY, before, message.result, message.deleted,
                message.asks, message.answers,
            )
        )  # fmt: skip
    return Site(kept[KEY]._replace(overdue=False), tuple(log), site.read + len(steps), asked)


def forgotten(sites):
    """The same situation with what both have read cut off: nothing looks back there."""
    a, b = sites
    return _short(a, b.read), _short(b, a.read)


def _short(site, read):
    return site.kept, site.log[read:]


def unread(sites):
    a, b = sites
    return len(a.log) - b.read, len(b.log) - a.read


def settled(policy, sites, limit=200):
    """Load all that is left, turn by turn; returns the sites and the messages that it took."""
    sites = list(sites)
    before = sum(len(s.log) for s in sites)
    for _ in range(limit):
        left = unread(sites)
        if left == (0, 0):
            return tuple(sites), sum(len(s.log) for s in sites) - before
        for number, count in ((1, left[0]), (0, left[1])):
            sites[number] = loaded(policy, number, sites[number], sites[1 - number], count)
    raise AssertionError(f"the exchange does not end: {sites}")
