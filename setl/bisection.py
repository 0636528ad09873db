"""Find the faulty ones among many things that are done together, by bisection.

One statement with a thousand rows costs little more than one with a single row, and one that fails
writes nothing. So all are tried together first. What fails is tried again in halves, until single
things are left: those are faulty. With `n` things tried together and `b` of them faulty, that
is at most ``1 + 2 * b * ceil(log2(n))`` attempts; without a faulty one it is a single attempt.
"""

from __future__ import annotations

from collections.abc import Callable

from setl.errors import DataError

Attempt = Callable[[int, int], bool]
"""Does the things from one number up to before another, in their order.

Raises DataError if one of them is faulty; then it has done none of them, or may do them again.
Returns False, having done nothing, if there are too many of them for one attempt.
"""


def bisect_faults(
    count: int, attempt: Attempt, refuse: Callable[[int, DataError], None], *, together: int = 0
) -> None:
    """Do all of `count` things but the faulty ones, in order.

    Args:
        count: how many; they are numbered from 0.
        attempt: does some of them; a single one must not be too many.
        refuse: is told the number and the error of each faulty one, in order; ends everything by
            raising.
        together: how many are tried together at most; 0 for all.
    """
    step = together or max(1, count)
    waiting = [(at, min(at + step, count)) for at in range(0, count, step)][::-1]
    while waiting:
        start, stop = waiting.pop()
        try:
            done = attempt(start, stop)
        except DataError as error:
            if stop - start == 1:
                refuse(start, error)
                continue
            done = False
        if not done:
            middle = (start + stop) // 2
            waiting += [(middle, stop), (start, middle)]
