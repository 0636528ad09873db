"""With what something is done from the console."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.requests import Requester
from arbiter.values import PipelineId


@dataclass(frozen=True, slots=True)
class ActionContext:
    """With what something is done.

    Attributes:
        arbiter: the node's session.
        requester: who does it, and when.
        environment: where references of channel files get their values from.
        pause: waits for so many seconds between two looks; raises Unreachable if the node leaves.
        nid: the node.
    """

    arbiter: Arbiter
    requester: Requester
    environment: Mapping[str, str]
    pause: Callable[[float], object] = time.sleep
    nid: str = ""


Fields = Mapping[str, str]
"""The fields of a form."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a look at servers says before something is done.

    Attributes:
        question: what is asked.
        fields: fields of the form that confirms it, in place of what was asked for.
    """

    question: str
    fields: Fields


def pipeline_of(name: str) -> PipelineId:
    """The pipeline that a form names in full."""
    channel, _, pipeline = name.partition("/")
    return PipelineId(channel, pipeline)
