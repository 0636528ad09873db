"""The five ways in which setl can fail, and nothing else.

What a caller does with an error depends on its kind, so the kind is its type. Errors of
libraries are wrapped once, in the adapter that called the library; beyond it only these
are seen.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from setl.error_text import READ_MORE, ErrorText
from setl.printable import printable

_PUBLIC_FIELDS: Final = ("channel", "pipeline", "site", "table")
"""The parts of a position that can only be names of objects, never values of rows or statements."""


class SetlError(Exception):
    """An error that says what happened, where, and what to do about it.

    Messages, hints and places may quote rows. They are made printable here, once for all that
    shows or stores them: text without a UTF-8 form could not be written to the arbiter, or sent.

    Attributes:
        message: what happened, in one sentence without a trailing stop.
        hint: what the reader can do, or an empty string.
        where: the position as field → value, for example pipeline, table, position, key.
        code: the number that the server gave the error, None if there is none.
        kind: what kind of error it is, for those who may not read the rest.
    """

    kind: ClassVar[str] = "an error"

    def __init__(self, message: str, *, hint: str = "", **where: object) -> None:
        self.message = printable(message)
        super().__init__(self.message)
        self.hint = printable(hint)
        self.where: dict[str, str] = {}
        self.code: int | None = None
        self.at(**where)

    def at(self, **where: object) -> Self:
        """Add to the position; fields already known keep their value. Returns the error itself."""
        for name, value in where.items():
            if value not in (None, ""):
                self.where.setdefault(name, printable(str(value)))
        return self

    def coded(self, code: int | None) -> Self:
        """Set the server's number, if there is one; 0 is none. Returns the error itself."""
        self.code = code or self.code
        return self

    @property
    def text(self) -> ErrorText:
        """Both forms of what it says, for whatever keeps or shows it."""
        return ErrorText(str(self), self.public)

    @property
    def brief(self) -> ErrorText:
        """The same with the message alone, without its position and hint, as the whole form."""
        return ErrorText(self.message, self.public)

    @property
    def public(self) -> str:
        """What anybody may read: its kind, names of objects and the server's number.

        It is made of what is listed here and nothing else, so that no value of a row, statement,
        file or answer of a server can be in it.
        """
        location = [f"{name} {self.where[name]}" for name in _PUBLIC_FIELDS if name in self.where]
        location += [] if self.code is None else [f"the server's code {self.code}"]
        named = f"{self.kind} ({', '.join(location)})" if location else self.kind
        return f"{named}; {READ_MORE}"

    def __str__(self) -> str:
        location = ", ".join(f"{k} {v}" for k, v in self.where.items())
        text = f"{self.message} ({location})" if location else self.message
        return f"{text}. {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel from Spark tasks to the driver inside outcomes; the default reduce
        # would lose the keyword-only parts.
        return _rebuild, (type(self), self.message, self.hint, self.where, self.code)


def unexpected(error: BaseException) -> ErrorText:
    """Both forms of what is said of an exception that nobody expected."""
    full = printable(f"unexpected {type(error).__name__}: {error}")
    return ErrorText(full, f"an unexpected error, a defect; {READ_MORE}")


def _rebuild(
    kind: type[SetlError], message: str, hint: str, where: dict[str, str], code: int | None = None
) -> SetlError:
    error = kind(message, hint=hint)
    error.where.update(where)
    return error.coded(code)


class TransientError(SetlError):
    """It may work when tried again: a lost connection, a deadlock, a server that is busy."""

    kind = "a transient error, which is tried again"


class SharedTableError(TransientError):
    """Several tasks were to write a table of which one has to write all rows; see `where`."""


class FatalError(SetlError):
    """It will not work until somebody does something: the pipeline stops with this error."""

    kind = "a fatal error, which somebody has to fix"


class PositionLostError(FatalError):
    """The source no longer has the stream from the checkpoint on (I8)."""

    kind = "a fatal error: the source no longer has the stream from the checkpoint on"


class TargetReplacedError(FatalError):
    """A table or index of the target is not the one that the pipeline wrote before."""

    kind = "a fatal error: a table or index of the target is not the one written before"


class FencedError(SetlError):
    """Another node holds a higher epoch: stop writing at once, never retry."""

    kind = "a fencing error: another node holds a higher epoch"


class NodeFullError(TransientError):
    """This node's disk is full, and another node's may have room."""

    kind = "a transient error: this node's disk is full"


class TargetWentBackError(TransientError):
    """The target has forgotten what this leadership left in it: another one has to take over.

    It is a restored backup, or a replica that had not received everything. No newer leader wrote
    there, since it would have left a higher epoch.
    """

    kind = "a transient error: the target has forgotten what this leadership left in it"


class ConfigurationError(SetlError):
    """A file, an option or a server's settings are wrong; nothing was started."""

    kind = "a configuration error"


class NodeNotReadyError(ConfigurationError):
    """This node lacks what another one may have: a variable, a file, a module of Python."""

    kind = "a configuration error: this node lacks something"


class LoginRefusedError(NodeNotReadyError):
    """A server refuses this node's login: a password, an account, or the machine it comes from.

    Another node may have another password. If all are refused, the one that leads says so.
    """

    kind = "a configuration error: a server refuses this node's login"


class UntrustedServerError(NodeNotReadyError):
    """This node does not trust a server's certificate.

    Another node may have the file of the new authority already. If none trusts it, the one that
    leads says so.
    """

    kind = "a configuration error: this node does not trust a server's certificate"


class DataError(SetlError):
    """One row or value cannot be decoded or is refused by the target for good."""

    kind = "a data error: a row or value cannot be decoded or is refused"


class CollisionError(DataError):
    """A row is refused because another row of the target holds one of its unique values."""

    kind = "a data error: another row of the target holds one of its unique values"
