"""Finds out what a node lacks to lead a pipeline, before it leads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from arbiter.values import Channel
from setl.channel.reading import resolve_and_parse
from setl.channel.text.problems import ChannelFileError
from setl.clock import Clock

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
        found: dict[str, str] = {}
        for pipeline in file.pipelines:
            ends = {"source": pipeline.source, "target": pipeline.target}
            missing = [
                f"{path} cannot be read ({location})"
                for name, end in ends.items()
                for location, path in _files(name, end.model_dump())
                if not os.access(path, os.R_OK)
            ]
            if missing:
                found[pipeline.name] = "; ".join(missing)
        return found


def _files(location: str, value: object) -> Iterator[tuple[str, str]]:
    """The files that a part of a channel file names, each with its position."""
    if not isinstance(value, dict):
        return
    for key, item in cast("dict[str, Any]", value).items():
        if key in _FILES and isinstance(item, str) and item:
            yield f"{location}.{key}", item
        yield from _files(f"{location}.{key}", item)
