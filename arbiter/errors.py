"""How a process is connected to the arbiter, and how calls to it fail."""

from __future__ import annotations

from enum import Enum


class Contact(Enum):
    """The state of this process's connection to the arbiter."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # the connection is gone, the session may live: start nothing new
    LOST = "lost"  # the session is gone, and every leader lock of it: stop what runs


class ArbiterError(Exception):
    """A call to the arbiter failed."""


class Unreachable(ArbiterError):  # noqa: N818 - reads as what it is
    """No answer in time; whether the call took effect is unknown."""


class Conflict(ArbiterError):  # noqa: N818
    """The compare-and-set lost: somebody else wrote in between. Read again and decide again."""


class NotFound(ArbiterError):  # noqa: N818
    """No such channel, pipeline or node."""


class Denied(ArbiterError):  # noqa: N818
    """The credentials are wrong, or do not allow this."""


class Invalid(ArbiterError):  # noqa: N818
    """A name or value that cannot be kept here, or a kept one that cannot be read."""
