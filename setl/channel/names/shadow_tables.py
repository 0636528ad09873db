"""Recognises the tables of online schema changes by their names.

gh-ost and pt-online-schema-change copy a table `t` into a shadow that has the new columns already,
and then swap the two. The rows of the shadow are those of `t` a second time, so they go nowhere;
what is done to it is done to `t` when the swap comes.

gh-ost: ``_t_gho`` the shadow, ``_t_ghc`` its log, ``_t_del`` what `t` becomes (with a time of 14
digits before the ending, if it is asked to). pt-online-schema-change: ``_t_new`` and ``_t_old``,
with more underscores in front where a table of that name is there already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

DROPPED_PREFIX: Final = "_setl_dropped_"
"""Tables that setl is about to drop are called so first; they belong to nobody any more."""


class ShadowPart(Enum):
    """What a table is to an online schema change."""

    NEXT = "next"  # becomes the table
    FORMER = "former"  # what the table was
    LOG = "log"


class Shadow(NamedTuple):
    """A table of an online schema change.

    Attributes:
        table: the table that is changed.
        part: what this one is to it.
    """

    table: str
    part: ShadowPart


_NAME: Final = re.compile(r"(_+)(.+?)(?:_\d{14})?_(gho|ghc|del|new|old)", re.DOTALL)
_PARTS: Final = {
    "gho": ShadowPart.NEXT,
    "new": ShadowPart.NEXT,
    "del": ShadowPart.FORMER,
    "old": ShadowPart.FORMER,
    "ghc": ShadowPart.LOG,
}


def possible_shadows(table: str) -> Iterator[Shadow]:
    """What a table of this name may be a shadow of, best guess first; nothing if it is none.

    The table's own name may begin with underscores, or with some of those in front.
    """
    found = _NAME.fullmatch(table)
    if found is None:
        return
    underscores, rest, ending = found.groups()
    for own in range(len(underscores)):
        yield Shadow("_" * own + rest, _PARTS[ending])
