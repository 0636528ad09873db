"""The outcome of a conflict policy, in plain Python, from the writes of both sites' clients.

This is what docs/pages/conflicts.md promises, written down without a look at how setl gets there:
it knows everything at once, and nothing of messages, loads and memories.
"""

from typing import NamedTuple


class Write(NamedTuple):
    """A write of one row by a client.

    Attributes:
        before: the row that it replaced, None for none.
        after: the row that it left, None for none.
        seen: up to which position of the other site's stream its site had taken that in.
    """

    before: tuple | None
    after: tuple | None
    seen: int


def outcome(first, writes, home, age=None):
    """The row that stays.

    Args:
        first: the row that both sites began with.
        writes: of each of the two sites, (place in its stream, write), in their order.
        home: 0 or 1, the home site.
        age: for `newest`: how new a row is.
    """
    if not writes[0] or not writes[1]:
        only = writes[0] or writes[1]
        return only[-1][1].after if only else first
    last = [w[-1][1] for w in writes]
    news = [[w for position, w in writes[s] if position > last[1 - s].seen] for s in (0, 1)]
    assert news[0] or news[1], "two writes cannot have seen each other"
    for s in (0, 1):
        if not news[s]:
            return last[1 - s].after
    if age is None:
        return last[home].after
    ages = [max(age(w.after if w.after is not None else w.before) for w in n) for n in news]
    if ages[0] != ages[1]:
        return last[0 if ages[0] > ages[1] else 1].after
    for s in (0, 1):
        if last[s].after is None:
            return None
    return last[home].after
