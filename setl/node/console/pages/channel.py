"""What the page of one channel shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from setl.node.cluster.view import ClusterView
from setl.node.console.links import editor_link
from setl.node.console.pages.mapping import as_text
from setl.node.console.pages.overview import ChannelPart, channel_part
from setl.node.console.pages.problems import Problem, of_contact, problems_with
from setl.node.console.pages.states import CHANNEL_LOOKS, Look
from setl.operate.applying import revision_of


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """The page of a channel."""

    name: str
    state: str
    look: Look
    revision: str
    problems: tuple[Problem, ...]
    part: ChannelPart
    file: str
    editor_link: str


def channel_page(
    view: ClusterView,
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    contact: str = "connected",
) -> ChannelPage:
    """The page of a channel that is in `view`; the rest is as for `overview_of`."""
    channel = view.facts.channels[name]
    mine = [pipeline for pipeline in view.pipelines if pipeline.ident.channel == name]
    return ChannelPage(
        name,
        channel.state.value,
        CHANNEL_LOOKS[channel.state.value],
        revision_of(channel),
        (
            *of_contact(contact),
            *(p for pipeline in mine for p in problems_with(pipeline)),
        ),
        channel_part(channel, view, environment),
        as_text(channel.definition),
        editor_link(name),
    )
