"""Completion in shells: its scripts, and the names that only the cluster knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from arbiter.values import Facts
from setl.cli.access.cluster import Connect

_VARIABLE = "_SETL_COMPLETE"
_PATIENCE = 1.0  # seconds; nobody wants to wait for a suggestion


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands.

    Names of channels, pipelines and nodes are asked of the cluster, which has one second to answer.

    bash: add  eval "$(setl completion bash)"  to ~/.bashrc.
    zsh: add  eval "$(setl completion zsh)"  to ~/.zshrc, after compinit.
    fish: setl completion fish > ~/.config/fish/completions/setl.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    root = context.find_root()
    click.echo(found(root.command, {}, "setl", _VARIABLE).source())


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(names: Callable[[Facts], Iterable[str]]) -> Complete:
    def complete(
        context: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            found = sorted(names(_facts(context)))
        except Exception:  # noqa: BLE001 - a shell that completes has no place for an error
            return []
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]

    return complete


def _facts(context: click.Context) -> Facts:
    zookeeper = context.params.get("zookeeper") or os.environ.get("SETL_ZOOKEEPER")
    root = context.params.get("root") or os.environ.get("SETL_ROOT") or "/setl"
    zookeeper = zookeeper or "127.0.0.1:2181"
    connect: Connect | None = context.obj
    if connect is not None:
        with connect(zookeeper, root) as arbiter:
            return arbiter.facts()
    from arbiter.zookeeper import ZooKeeperArbiter  # noqa: PLC0415
    from setl.cli.access.zookeeper import zookeeper_access  # noqa: PLC0415

    access = zookeeper_access(os.environ)
    arbiter = ZooKeeperArbiter(zookeeper, root=root, session_timeout=3.0, access=access)
    try:
        arbiter.start(_PATIENCE)
        return arbiter.facts()
    finally:
        arbiter.close()


def _channels(facts: Facts) -> Iterable[str]:
    return facts.channels


def _pipelines(facts: Facts) -> Iterable[str]:
    from setl.node.cluster.naming import known_pipelines  # noqa: PLC0415

    return map(str, known_pipelines(facts))


def _both(facts: Facts) -> Iterable[str]:
    return [*_channels(facts), *_pipelines(facts)]


complete_channel = _completing(_channels)
"""Names of channels."""

complete_pipeline = _completing(_pipelines)
"""Names of pipelines, as channel/pipeline."""

complete_name = _completing(_both)
"""Names of both."""

complete_node = _completing(lambda facts: facts.nodes)
"""Ids of live nodes."""
