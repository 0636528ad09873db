"""The five ways in which setl can fail, and nothing else.

What a caller does with an error depends on its kind, so the kind is its type. Errors of
libraries are wrapped once, in the adapter that called the library; beyond it only these
are seen.
"""

from __future__ import annotations

from typing import Any, Self

from setl.printable import printable


class SetlError(Exception):
    """An error that says what happened, where, and what to do about it.

    Messages and places may quote rows. They are made printable here, once for all that shows or
    stores them: text without a UTF-8 form could not be written to the arbiter, or sent.

    Attributes:
        message: what happened, in one sentence without a trailing stop.
        hint: what the reader can do, or an empty string.
        where: the place as field → value, for example pipeline, table, position, key.
    """

    def __init__(self, message: str, *, hint: str = "", **where: object) -> None:
        self.message = printable(message)
        super().__init__(self.message)
        self.hint = printable(hint)
        self.where: dict[str, str] = {}
        self.at(**where)

    def at(self, **where: object) -> Self:
        """Add to the place; fields already known keep their value. Returns the error itself."""
        for name, value in where.items():
            if value not in (None, ""):
                self.where.setdefault(name, printable(str(value)))
        return self

    def __str__(self) -> str:
        place = ", ".join(f"{k} {v}" for k, v in self.where.items())
        text = f"{self.message} ({place})" if place else self.message
        return f"{text}. {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel from Spark tasks to the driver inside outcomes; the default reduce
        # would lose the keyword-only parts.
        return _rebuild, (type(self), self.message, self.hint, self.where)


def _rebuild(kind: type[SetlError], message: str, hint: str, where: dict[str, str]) -> SetlError:
    error = kind(message, hint=hint)
    error.where.update(where)
    return error


class TransientError(SetlError):
    """It may work when tried again: a lost connection, a deadlock, a server that is busy."""


class SharedTableError(TransientError):
    """Several tasks were to write a table of which one has to write all rows; see `where`."""


class FatalError(SetlError):
    """It will not work until somebody does something: the pipeline stops with this error."""


class PositionLostError(FatalError):
    """The source no longer has the stream from the checkpoint on (I8)."""


class TargetReplacedError(FatalError):
    """A table or index of the target is not the one that the pipeline wrote before."""


class FencedError(SetlError):
    """Another node holds a higher epoch: stop writing at once, never retry."""


class NodeFullError(TransientError):
    """This node's disk is full, and another node's may have room."""


class TargetWentBackError(TransientError):
    """The target has forgotten what this leadership left in it: another one has to take over.

    It is a restored backup, or a replica that had not received everything. No newer leader wrote
    there, since it would have left a higher epoch.
    """


class ConfigurationError(SetlError):
    """A file, an option or a server's settings are wrong; nothing was started."""


class NodeLacksError(ConfigurationError):
    """This node lacks what another one may have: a variable, a file, a module of Python."""


class LoginRefusedError(NodeLacksError):
    """A server refuses this node's login: a password, an account, or the machine it comes from.

    Another node may have another password. If all are refused, the one that leads says so.
    """


class UntrustedServerError(NodeLacksError):
    """This node does not trust a server's certificate.

    Another node may have the file of the new authority already. If none trusts it, the one that
    leads says so.
    """


class DataError(SetlError):
    """One row or value cannot be decoded or is refused by the target for good."""


class CollisionError(DataError):
    """A row is refused because another row of the target holds one of its unique values."""
