"""How commands reach the cluster and the channels stored there, and the options they share."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arbiter.arbiter import Arbiter
from arbiter.errors import Invalid, NotFound, Unreachable
from arbiter.requests import Requester
from arbiter.values import Channel, Facts, PipelineId
from setl.cli.access.zookeeper import zookeeper_access
from setl.cli.terminal.output import FORMATS
from setl.cli.terminal.progress import busy
from setl.errors import ConfigurationError
from setl.node.cluster.naming import known_pipelines, meant_by
from setl.node.stored import pipelines_of
from setl.operate.action_log import ActionOutcome, recorded

if TYPE_CHECKING:
    from setl.channel.file import ChannelFile, Pipeline

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT_ZOOKEEPER = "127.0.0.1:2181"

_REFUSED_SECONDS = 3.0
"""For so long every server may refuse connections: a server that is restarted does, meanwhile."""

_SAID_AFTER = 1.0
"""Seconds after which a person at a terminal is told what is waited for."""

_zookeeper = click.option(
    "--zookeeper",
    envvar="SETL_ZOOKEEPER",
    default=_DEFAULT_ZOOKEEPER,
    show_default=True,
    help="ZooKeeper's addresses, host:port,host:port; logins and TLS: SETL_ZOOKEEPER_* in the "
    "environment. [env: SETL_ZOOKEEPER]",
)
_root = click.option(
    "--root",
    envvar="SETL_ROOT",
    default="/setl",
    show_default=True,
    help="setl's root path in ZooKeeper. [env: SETL_ROOT]",
)
_output = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the result.",
)
_timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)


def cluster_options(command: F) -> F:
    """The options of every command that talks to the cluster."""
    return _zookeeper(_root(command))


def output_option(command: F) -> F:
    """The option of every command that prints a result."""
    return _output(command)


def timeout_option(command: F) -> F:
    """The option of every command that can wait until what it asked for is so."""
    return _timeout(command)


Connect = Callable[[str, str], AbstractContextManager[Arbiter]]
"""Opens a session: takes ZooKeeper's addresses and the root."""


@contextmanager
def connect_zookeeper(zookeeper: str, root: str) -> Generator[Arbiter]:
    """A session with ZooKeeper; credentials come from the environment."""
    # Imported late: its client takes time that help and refusals need not wait.
    from arbiter.zookeeper import ZooKeeperArbiter  # noqa: PLC0415

    access = zookeeper_access(os.environ)
    arbiter = ZooKeeperArbiter(zookeeper, root=root, session_timeout=10.0, access=access)

    def waited_for() -> str:
        problem = arbiter.session.problem()
        return f"asking ZooKeeper at {zookeeper}" + (f" ({problem})" if problem else "")

    try:
        with busy(waited_for, _SAID_AFTER):
            try:
                arbiter.start(refused_limit=_REFUSED_SECONDS)
            except Unreachable as error:
                if zookeeper != _DEFAULT_ZOOKEEPER:
                    raise
                where = "this is the default; --zookeeper or SETL_ZOOKEEPER names other servers"
                raise Unreachable(f"{error} ({where})") from error
        yield arbiter
    finally:
        arbiter.close()


def joined(zookeeper: str, root: str) -> AbstractContextManager[Arbiter]:
    """A short session with the cluster.

    Click's context object, if the command was given one, says how to connect instead.
    """
    context = click.get_current_context(silent=True)
    connect: Connect | None = context.obj if context else None
    return (connect or connect_zookeeper)(zookeeper, root)


class AnswerNo(click.ClickException):
    """The request was not carried out, or the answer is no; exit status 1."""


def requester() -> Requester:
    """Who uses this command, and when."""
    return Requester(f"{getpass.getuser()}@{socket.gethostname()}", time.time())


def acting(arbiter: Arbiter, what: str, on: str) -> AbstractContextManager[ActionOutcome]:
    """Keep in the log of actions what the user of this command does; see `recorded`."""
    return recorded(arbiter, requester(), what, on)


def channel_named(arbiter: Arbiter, name: str) -> Channel:
    """A channel; says which there are if there is no such one."""
    try:
        return arbiter.channels.one(name)
    except (NotFound, Invalid):
        known = ", ".join(c.name for c in arbiter.channels.all()) or "none"
        raise click.UsageError(f"there is no channel {name!r}; known: {known}") from None


def pipelines_named(facts: Facts, name: str) -> list[PipelineId]:
    """The pipelines that a person means: all of a channel, or one; raises as `pipeline_named`."""
    channel = facts.channels.get(name)
    if channel is not None:
        return list(pipelines_of(channel))
    if not meant_by(name, facts):
        known = ", ".join((*sorted(facts.channels), *map(str, known_pipelines(facts)))) or "none"
        raise click.UsageError(f"there is no channel and no pipeline {name!r}; known: {known}")
    return [pipeline_named(facts, name)]


def pipeline_named(facts: Facts, name: str) -> PipelineId:
    """The pipeline that a person means.

    Args:
        facts: the cluster.
        name: see `setl.node.cluster.naming.meant_by`.

    Raises:
        click.UsageError: it is not clear; says what there is.
    """
    meant = meant_by(name, facts)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise click.UsageError(f"{name!r} may be {' or '.join(map(str, meant))}")
    names = ", ".join(map(str, known_pipelines(facts))) or "none"
    raise click.UsageError(f"there is no pipeline {name!r}; known: {names}")


def pipeline_config(channel: Channel, ident: PipelineId) -> Pipeline:
    """A pipeline of a stored channel, its references resolved from this process's environment.

    Raises:
        ConfigurationError: a variable is missing here, or the channel has no such pipeline.
    """
    return stored_file(channel).pipeline(ident.pipeline)


def stored_file(channel: Channel) -> ChannelFile:
    """A stored channel's file, its references resolved from this process's environment.

    Raises:
        ConfigurationError: a variable is missing here.
    """
    from setl.channel.reading import resolve_and_parse  # noqa: PLC0415

    try:
        return resolve_and_parse(channel.definition, os.environ)
    except ConfigurationError as error:
        error.at(channel=channel.name)  # who names none has asked about many
        raise
