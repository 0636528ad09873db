"""JSON of which it is known how its numbers are written."""

from __future__ import annotations


class ServerJson(str):
    """A document as a MySQL writes it, all of whose numbers are whole ones of 64 bits or DOUBLE.

    To look at each number of a long document again takes longer than all else that is done to it.
    """

    __slots__ = ()
