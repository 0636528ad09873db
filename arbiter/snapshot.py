"""One look at the cluster: the facts, and how reliable they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from arbiter.arbiter import Arbiter
from arbiter.errors import Contact, Unreachable
from arbiter.values import Facts


class Clock(Protocol):
    """Tells elections the time; tests pass their own."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, the same start as `Arbiter.last_contact` uses."""
        ...

    def now(self) -> float:
        """Seconds since 1970 UTC, for what an operator wants at a certain time."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The facts that all decisions of one cycle use.

    Attributes:
        taken: monotonic time at which it was complete.
        now: the same moment, seconds since 1970 UTC.
        contact: how well the truth was known then. Unless it is CONNECTED, the facts are those
            of an earlier look.
        last_contact: when the session was last surely alive, monotonic.
        session_timeout: seconds after which a silent session is dead.
        session: id of this process's session, 0 if there is none.
        facts: what was read.
        heard_before: when the last look before this one was complete that had an answer,
            monotonic; None if there was none. Where it is long ago, nobody looked meanwhile.
    """

    taken: float
    now: float
    contact: Contact
    last_contact: float
    session_timeout: float
    session: int
    facts: Facts = field(default_factory=Facts)
    heard_before: float | None = None

    @property
    def heard(self) -> float | None:
        """When the last look was complete that had an answer, this one included."""
        return self.taken if self.contact is Contact.CONNECTED else self.heard_before


def look(arbiter: Arbiter, clock: Clock, before: Snapshot | None = None) -> Snapshot:
    """Look once. An arbiter that does not answer is a finding, not an error.

    Never waits longer than the arbiter's limits for its calls.

    Args:
        arbiter: whom to ask.
        clock: tells when that was.
        before: the look before this one, whose facts stand in for those that cannot be had.

    Raises:
        Denied: the arbiter's access rights forbid looking.
    """
    contact, session = arbiter.session.contact(), arbiter.session.session_id()
    facts = before.facts if before else Facts()
    if contact is Contact.CONNECTED:
        try:
            facts = arbiter.facts()
        except Unreachable:
            contact = _worse(arbiter.session.contact(), Contact.SUSPENDED)
        else:
            # What was read counts only if the session lived until it was read.
            contact = arbiter.session.contact()
    return Snapshot(
        taken=clock.monotonic(),
        now=clock.now(),
        contact=contact,
        last_contact=arbiter.session.last_contact(),
        session_timeout=arbiter.session.session_timeout,
        session=session,
        facts=facts,
        heard_before=before.heard if before else None,
    )


def _worse(first: Contact, second: Contact) -> Contact:
    order = (Contact.CONNECTED, Contact.SUSPENDED, Contact.LOST)
    return max(first, second, key=order.index)
