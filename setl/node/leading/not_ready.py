"""What a node lacks to lead a pipeline: seen by a look, or told by a run that has failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from arbiter.turns import Preference, able
from arbiter.values import Channel, Facts, PipelineId
from setl.clock import Clock
from setl.error_text import ErrorText
from setl.errors import (
    LoginRefusedError,
    NodeFullError,
    NodeNotReadyError,
    UntrustedServerError,
)

_FULL_SECONDS = 60.0
"""Seconds for which a node whose disk was full leaves the lead to others."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a run has failed with.

    Attributes:
        revision: the channel's, under which it ran.
        what: the error.
        if_others: whether it only counts while another node could lead.
        until: monotonic time from which on it does not count any more, None for never.
    """

    revision: int
    what: str
    if_others: bool
    until: float | None


class NotReady:
    """Keeps what a run found missing, until the channel is changed or started.

    What only one node lacks keeps it from leading. A refused login, or a certificate that is not
    trusted, is different: mostly the account or the server is to blame, and all nodes meet with
    the same. Then each leaves the lead to those that have not met with it yet. The last one keeps
    it, and says why it has failed. A full disk is left alone for a minute, if another node can
    lead meanwhile.
    """

    def __init__(
        self,
        pipeline: PipelineId,
        nid: str,
        preference: Preference,
        look: Callable[[Channel], str],
        clock: Clock,
    ) -> None:
        """Nothing is known yet.

        Args:
            pipeline: what is to be led.
            nid: this node.
            preference: who may lead it.
            look: what this node is seen to lack for a channel, "" for nothing.
            clock: for all times.
        """
        self._pipeline = pipeline
        self._nid = nid
        self._preference = preference
        self._look = look
        self._clock = clock
        self._failure: _Failure | None = None

    @property
    def has_failure(self) -> bool:
        """Whether something is kept, which may count or not as other nodes come and go."""
        return self._failure is not None

    def note_failure(self, revision: int, error: NodeNotReadyError | NodeFullError) -> None:
        """Keep what a run has failed with; from any thread."""
        if isinstance(error, NodeFullError):
            until = self._clock.monotonic() + _FULL_SECONDS
            self._failure = _Failure(revision, error.text, if_others=True, until=until)
            return
        again = f"`setl start {self._pipeline.channel}` lets this node try again"
        refused = isinstance(error, LoginRefusedError | UntrustedServerError)
        error_text = ErrorText(f"{error}; {again}", f"{error.public}; {again}")
        self._failure = _Failure(revision, error_text, if_others=refused, until=None)

    def find(self, channel: Channel | None, facts: Facts) -> str:
        """What is missing here, "" for nothing.

        What only a run can tell is asked of it again once the channel was changed or started.
        """
        if channel is None:
            return ""
        failure = self._failure
        if (
            failure is not None
            and failure.revision == channel.revision
            and not self._is_over(failure)
        ):
            return "" if failure.if_others and not self._others(facts) else failure.what
        # A channel that is removed and stored again comes to the same revision again.
        self._failure = None
        return self._look(channel)

    def _is_over(self, failure: _Failure) -> bool:
        return failure.until is not None and self._clock.monotonic() >= failure.until

    def _others(self, facts: Facts) -> bool:
        """Whether another node could lead at once."""
        ready = [node for node in facts.nodes.values() if node.ready and node.nid != self._nid]
        return bool(able(self._pipeline, ready, self._preference))
