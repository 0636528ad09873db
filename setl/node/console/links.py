"""Where the pages of the console are."""

from __future__ import annotations

from arbiter.values import PipelineId

ROOT = "/console"


def channel_link(name: str) -> str:
    """The page of a channel; names hold nothing that an address would have to escape."""
    return f"{ROOT}/channels/{name}"


def pipeline_link(pipeline: PipelineId) -> str:
    """The page of a pipeline."""
    return f"{ROOT}/pipelines/{pipeline}"


def node_link(nid: str) -> str:
    """The page of a node."""
    return f"{ROOT}/nodes/{nid}"


def docs_link(page: str) -> str:
    """A page of the documentation, such as ``troubleshooting.md#stopped``."""
    return f"{ROOT}/docs/{page}"


def series_link(pipeline: PipelineId) -> str:
    """The figures of a pipeline over time, for its charts."""
    return f"{ROOT}/series/{pipeline}"


def letters_link(pipeline: PipelineId) -> str:
    """The dead letters of a pipeline."""
    return f"{ROOT}/letters/{pipeline}"


def editor_link(channel: str) -> str:
    """The editor of a channel's file."""
    return f"{ROOT}/edit/{channel}"
