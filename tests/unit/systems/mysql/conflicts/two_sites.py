"""Two sites that write one row, with the real functions that decide about it.

Each site has a log, as its binlog: what its clients write, and what its loads tell. The logs are
read in order, in loads of any length, with what was delivered before delivered again. A row is
(value, age); the key is left out, there is one. Beside each site stands the list of its clients'
writes, with what each had seen, for the model.
"""

from typing import NamedTuple

from setl.model.conflict import Mark, SiteWrites, Step, WritesSeen
from setl.systems.mysql.conflicts.agreement import (
    NewWrites,
    RowMemory,
    row_outcome,
    row_read,
    site_writes_by_key,
    writes_seen_by_key,
)
from setl.systems.mysql.conflicts.outcome import unwritten
from setl.systems.mysql.conflicts.resolve import Rules
from tests.unit.systems.mysql.conflicts.model import Write

KEY = (1,)


class Told(NamedTuple):
    """What a load wrote down for the other site."""

    said: SiteWrites | None
    through: int
    passed: int
    held: tuple = ()  # the row that the site holds against one that was read, if it stays
    asks: bool = False  # for an answer, though nothing may be taken in by then


class Site(NamedTuple):
    row: tuple | None = None
    memory: RowMemory | None = None
    memory_id: int = 0
    log: tuple = ()
    read: int = 0  # of the other site's log: how far it is applied, stored with the rows
    seen: int = 0  # how far the other site had come with this log
    reported: int = 0  # how often this site told something
    writes: tuple = ()


class Policy(NamedTuple):
    newest: bool
    home: int

    def rules(self, target):
        if not self.newest:
            return Rules(self.home != target)
        return Rules(self.home != target, lambda v: (v is not None, v or 0), 1)


def written(site, row, other=0):
    """A write of a client; None deletes. A write that changes nothing is none."""
    before = site.row
    if row == before:
        return site
    write = Write(before, row, site.read)
    log = (*site.log, Step(len(site.log) + 1, KEY, before, row))
    return site._replace(row=row, log=log, writes=(*site.writes, (len(log), write)))


def loaded(policy, number, site, other, count, redelivered=0, appearing=()):
    """The next `count` entries of the other site's log, in one load.

    Of what is delivered again, a version tells that it was applied. `appearing` is what a client
    writes after the load has looked and before it commits: nothing locks a row that is not there,
    and that a load leaves so.
    """
    first = max(0, site.read - redelivered)
    entries = [
        (version, one)
        for version, one in enumerate(other.log[first : site.read + count], first + 1)
        if version > site.read
    ]
    if not entries:
        return site
    rules, through = policy.rules(number), entries[-1][0]
    steps = [one for _, one in entries if isinstance(one, Step)]
    reported = [(version, one) for version, one in entries if isinstance(one, Told)]
    ids = [sum(isinstance(e, Told) for e in other.log[:version]) for version, _ in reported]
    marks = [
        Mark(version, i, one.through, one.passed)
        for (version, one), i in zip(reported, ids, strict=True)
    ]
    heard = [WritesSeen(version, KEY, one.said) for version, one in reported if one.said]
    passed = max((mark.passed for mark in marks), default=0)
    news = NewWrites(
        site_writes_by_key(rules, steps, marks, site.seen).get(KEY),
        steps[0].before if steps else None,
        writes_seen_by_key(rules, heard).get(KEY),
        bool(site.memory) and site.memory_id <= passed,
        through,
    )
    after = row_outcome(rules, site.row, site.memory, news)
    held = [row for _, one in reported for row in one.held]
    against: tuple = ()
    if held and not news.written:
        reached = row_read(rules, after.row, after.memory, held[-1], through)
        if reached.is_reported:
            after = reached
            if after.row == site.row:
                news, against = news._replace(theirs=unwritten(rules, held[-1])), (after.row,)
    row = after.row
    if site.row is None and row is None:
        for one in appearing:
            site = written(site, one)
        row = site.row
    log, count_reported, memory_id = site.log, site.reported, site.memory_id
    # A mark with nothing but `passed` is answered by nothing, else the two would go on for ever.
    answers = any(one.said or one.through or one.asks for _, one in reported)
    if after.is_reported or answers:
        count_reported += 1
        passed = ids[-1] if ids else 0
        log = (*log, Told(news.theirs, through if after.is_reported else 0, passed, against))
    if after.is_reported:
        memory_id = count_reported
    return Site(
        row,
        after.memory,
        memory_id if after.memory else 0,
        log,
        through,
        max([site.seen, *(mark.through for mark in marks)]),
        count_reported,
        site.writes,
    )


def table_read(policy, number, site, other):
    """Read the other site's row from its table: it is ahead of what is taken in of its log.

    It leaves a row out of which it still keeps something.
    """
    if other.row is None or other.memory is not None:
        return site
    rules = policy.rules(number)
    after = row_read(rules, site.row, site.memory, other.row, site.read)
    if not after.is_reported:
        return site
    stays = after.row == site.row
    said = unwritten(rules, other.row) if stays else None
    reported = Told(said, site.read, 0, (site.row,) if stays else (), asks=True)
    return site._replace(
        row=after.row,
        memory=after.memory,
        memory_id=site.reported + 1,
        reported=site.reported + 1,
        log=(*site.log, reported),
    )


def unread(sites):
    a, b = sites
    return len(a.log) - b.read, len(b.log) - a.read


def exchanged(policy, sites, limit=200):
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
