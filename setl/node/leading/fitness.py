"""What a node lacks to lead a pipeline: seen by a look, or reported by a run that failed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from arbiter.turns import Preference, able
from arbiter.values import Channel, Facts, PipelineId
from setl.channel.reading import resolve_and_parse
from setl.channel.text.problems import ChannelFileError
from setl.clock import Clock
from setl.error_text import ErrorText
from setl.errors import (
    LoginRefusedError,
    NodeFullError,
    NodeNotReadyError,
    UntrustedServerError,
)

_FILES = frozenset({
    "ssl_ca", "server_public_key", "ca_certs", "ssl_cafile", "ssl_certfile", "ssl_keyfile",
})  # fmt: skip
_AGAIN = 5.0  # seconds until a node that lacks something looks again


@dataclass(frozen=True, slots=True)
class _CachedFitness:
    """What was found.

    Attributes:
        definition: the channel's, as it was then.
        at: monotonic time of the look.
        missing_for: by pipeline; of those that are not named, nothing.
    """

    definition: Mapping[str, Any]
    at: float
    missing_for: Mapping[str, str]


class Fitness:
    """Checks whether a node has the variables and files that channels name.

    What it is missing may come later, so it looks again then. What only shows at work, such as a
    module that workers cannot import, is a `setl.errors.NodeNotReadyError` of the run.
    """

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        """Look up references in an environment."""
        self._environment = environment
        self._clock = clock
        self._cached: dict[str, _CachedFitness] = {}
        self._lock = threading.Lock()  # several pipelines of a channel may ask at once

    def missing_for(self, channel: Channel, pipeline: str) -> str:
        """What is missing here for a pipeline, with its position in the file; "" if nothing."""
        with self._lock:
            now, cached = self._clock.monotonic(), self._cached.get(channel.name)
            old = cached is None or cached.definition != channel.definition
            if cached is None or old or (cached.missing_for and now - cached.at >= _AGAIN):
                cached = _CachedFitness(channel.definition, now, self._look(channel.definition))
                self._cached[channel.name] = cached
        return cached.missing_for.get(pipeline) or cached.missing_for.get("", "")

    def _look(self, definition: Mapping[str, Any]) -> Mapping[str, str]:
        try:
            file = resolve_and_parse(definition, self._environment)
        except ChannelFileError as error:
            return {"": "; ".join(f"{p.message} ({p.path or 'the file'})" for p in error.problems)}
        by_pipeline: dict[str, str] = {}
        for pipeline in file.pipelines:
            ends = {"source": pipeline.source, "target": pipeline.target}
            missing = [
                f"{path} cannot be read ({location})"
                for name, end in ends.items()
                for location, path in _files(name, end.model_dump())
                if not os.access(path, os.R_OK)
            ]
            if missing:
                by_pipeline[pipeline.name] = "; ".join(missing)
        return by_pipeline


def _files(location: str, value: object) -> Iterator[tuple[str, str]]:
    """The files that a part of a channel file names, each with its position."""
    if not isinstance(value, dict):
        return
    for key, item in cast("dict[str, Any]", value).items():
        if key in _FILES and isinstance(item, str) and item:
            yield f"{location}.{key}", item
        yield from _files(f"{location}.{key}", item)


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
