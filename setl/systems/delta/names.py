"""Names of columns that a Delta table can have."""

from __future__ import annotations

from collections.abc import Iterable

from setl.errors import ConfigurationError

_REFUSED = frozenset(" ,;{}()\n\t=")


def faulty_names(names: Iterable[str]) -> list[str]:
    """Those that readers of Delta tables refuse."""
    return [name for name in names if _REFUSED & {*name} or not name]


def refuse_names(names: Iterable[str]) -> None:
    """ConfigurationError if any is none."""
    if faulty := faulty_names(names):
        raise ConfigurationError(
            f"{', '.join(map(repr, faulty))} cannot be the name of a column of a Delta table, which"
            " has no space and none of ,;{}()=",
            hint=NAME_HINT,
        )


NAME_HINT = "Give the column another name with `columns`, or leave it out (`exclude`)"
