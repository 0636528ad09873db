"""The port to the foreign keys of a target whose actions a pipeline carries out."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from setl.model.key_action import KeyAction, Name


class ActingKey(NamedTuple):
    """A foreign key that acts, and the source's tables.

    Attributes:
        action: at the target.
        child: the source's table whose rows go to the child.
        parent: the source's table whose rows go to the parent.
    """

    action: KeyAction
    child: Name
    parent: Name


class KeysFound(NamedTuple):
    """The foreign keys with actions among the targets of a pipeline, see `KeyAction.id`.

    Attributes:
        acting: those that the pipeline carries out.
        all: all of them.
        lacking: those that the source's table does not have now.
    """

    acting: tuple[ActingKey, ...] = ()
    all: frozenset[tuple[str, str]] = frozenset()
    lacking: frozenset[tuple[str, str]] = frozenset()


class KeyActions(Protocol):
    """Finds them. Used by one thread at a time."""

    def find(
        self,
        known: Collection[tuple[str, str]],
        before: Collection[tuple[str, str]] | None = None,
    ) -> KeysFound:
        """Look at both servers.

        Args:
            known: keys that the source had where the stream is, whatever it has now.
            before: all that were there before, if what has come since is of the stream, too.

        Raises:
            ConfigurationError: they would do at the target what they do not do at the source.
            SetlError: a server does not answer.
        """
        ...
