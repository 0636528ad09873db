"""The port through which a comparison learns that a target has what its source has shown."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from setl.model.stream_end import StreamEnd


class WaitOutcome(Enum):
    """Whether a target has everything up to a position of its source's stream."""

    CAUGHT_UP = "there"  # it has
    UNKNOWN = "unknown"  # nobody can tell; it may have, or may have in a while
    LATE = "late"  # it has not, and it is of no use to wait on


class Arrival(NamedTuple):
    """The outcome of a wait.

    Attributes:
        wait_outcome: whether the target has everything.
        why: why it has not, or why nobody can tell, as a sentence without its end; "" if it has.
    """

    wait_outcome: WaitOutcome
    why: str = ""


class PositionWaiter(Protocol):
    """Tells when a target has everything that its source has shown.

    A comparison reads rows of the source, then asks for the `end` of its stream, then calls
    `wait`, and then reads the same rows of the target. So the target had to have them.

    Order: `end` is asked after the rows were read, so that they are before it. Idempotence: both
    can be called any number of times, for ends in any order; nothing is written anywhere. Crash:
    nothing is kept, so nothing is lost.

    Calls come from one thread at a time, which must not be the one that brings the target
    forward: `wait` would wait for itself.
    """

    def end(self) -> StreamEnd | None:
        """The end of the source's stream at this moment; None if nobody can tell.

        Raises:
            SetlError: the source does not answer.
        """
        ...

    def wait(self, end: StreamEnd) -> Arrival:
        """Return when the target has everything before a position, or when waiting is of no use.

        It ends by itself after a time that whoever made it has decided.

        Raises:
            SetlError: what is known of the pipeline cannot be read, and trying again is of no use.
        """
        ...
