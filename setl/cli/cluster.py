"""How commands reach the cluster, and the options they share."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.error import URLError

import click

from arbiter.port import Arbiter, Conflict, NotFound
from arbiter.values import Channel, ChannelState, NodeInfo
from arbiter.zookeeper import ZooKeeperArbiter
from setl.cli.output import FORMATS

F = TypeVar("F", bound=Callable[..., Any])

_zookeeper = click.option(
    "--zookeeper",
    envvar="SETL_ZOOKEEPER",
    default="127.0.0.1:2181",
    show_default=True,
    help="ZooKeeper's addresses, host:port,host:port. [env: SETL_ZOOKEEPER]",
)
_root = click.option(
    "--root",
    envvar="SETL_ROOT",
    default="/setl",
    show_default=True,
    help="Path in ZooKeeper under which everything lies. [env: SETL_ROOT]",
)
_output = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the result.",
)


def cluster_options(command: F) -> F:
    """The options of every command that talks to the cluster."""
    return _zookeeper(_root(command))


def output_option(command: F) -> F:
    """The option of every command that prints a result."""
    return _output(command)


@contextmanager
def joined(zookeeper: str, root: str) -> Generator[Arbiter]:
    """A short session with the cluster."""
    arbiter = ZooKeeperArbiter(zookeeper, root=root, session_timeout=10.0)
    try:
        arbiter.start()
        yield arbiter
    finally:
        arbiter.close()


def channel_named(arbiter: Arbiter, name: str) -> Channel:
    """A channel; says which there are if there is no such one."""
    try:
        return arbiter.channel(name)
    except NotFound:
        known = ", ".join(c.name for c in arbiter.channels()) or "none"
        raise click.ClickException(f"there is no channel {name!r}; known: {known}") from None


def change_state(arbiter: Arbiter, name: str, state: ChannelState) -> Channel:
    """Set a channel's state; tries again when somebody else changes it at the same time."""
    for _ in range(5):
        try:
            return arbiter.set_state(channel_named(arbiter, name), state)
        except Conflict:
            continue
    raise click.ClickException(f"channel {name!r} keeps being changed by somebody else; try again")


def node_status(node: NodeInfo, timeout: float = 2.0) -> dict[str, Any] | None:
    """What a node says of itself; None if it does not answer in time."""
    if not node.http.startswith("http"):
        return None
    try:
        with urllib.request.urlopen(f"{node.http}/status", timeout=timeout) as answer:  # noqa: S310
            status: dict[str, Any] = json.load(answer)
            return status
    except (URLError, OSError, ValueError):
        return None
