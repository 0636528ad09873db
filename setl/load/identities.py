"""The port of targets that can tell a table or index from another one of its name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol, Self, runtime_checkable


class Identity(NamedTuple):
    """What tells a table or index from another one of its name.

    Attributes:
        id: given by the target when it is made, and never again.
        name: its own name, which may be another one than that it was asked for.
        alias: whether it was asked for by another name, which somebody has given it.
        several: the own names of all that an alias stands for, if that is more than one.
    """

    id: str
    name: str
    alias: bool = False
    several: tuple[str, ...] = ()

    @property
    def stored(self) -> str:
        """As it is kept with a checkpoint; names have no spaces."""
        return f"{self.id} {self.name}"

    @classmethod
    def of(cls, stored: str) -> Self:
        """Inverse of `stored`, as far as that goes."""
        id_, _, name = stored.partition(" ")
        return cls(id_, name)


@runtime_checkable
class IdentifiedTarget(Protocol):
    """A target in which somebody may put another table or index in the place of one, unnoticed.

    Without it, rows go to whatever has the name.
    """

    def identities(self, names: Collection[str]) -> Mapping[str, Identity]:
        """What there is under these names now; a name under which there is nothing is left out.

        Raises:
            SetlError: it does not answer, or refuses the account.
        """
        ...
