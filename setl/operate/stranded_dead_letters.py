"""What a new channel file means for dead letters that were put aside under the old one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from arbiter.values import PipelineId
from setl.channel.file import ChannelFile, Pipeline
from setl.channel.routes.routing import Router
from setl.errors import ConfigurationError, NodeNotReadyError, SetlError
from setl.load.deadletters.dead_letter import DeadLetter
from setl.load.deadletters.remapped import is_remapped
from setl.load.deadletters.store import DeadLetterStore
from setl.operate import units
from setl.operate.dead_letters import WAITING
from setl.operate.plan import Change
from setl.operate.retried_dead_letters import letters_of
from setl.systems.registry import system_of

_FIRST = "Load them again before the file is applied"


def stranded_letters(before: ChannelFile, after: ChannelFile) -> Iterator[Change]:
    """What is to be thought of, pipeline by pipeline; asks targets of those that change.

    Args:
        before: the channel as the cluster keeps it.
        after: the channel as it is to be.
    """
    new = {pipeline.name: pipeline for pipeline in after.pipelines}
    for pipeline in before.pipelines:
        if pipeline.stores_dead_letters:
            ident = PipelineId(before.channel, pipeline.name)
            yield from _of_pipeline(ident, pipeline, new.get(pipeline.name))


def _of_pipeline(ident: PipelineId, before: Pipeline, after: Pipeline | None) -> Iterator[Change]:
    why = _out_of_reach(before, after)
    if not why and after is not None and before.tables == after.tables:
        return  # nothing about them changes, so no server need be asked
    try:
        with system_of(before.target).dead_letters() as store:
            if why or after is None:
                waiting = store.tally(str(ident)).open
                if waiting:
                    yield Change(before.name, _waiting(waiting), f"{why}. {_FIRST}", warns=True)
            else:
                yield from _remapped(ident, store, Router(before), Router(after))
    except SetlError as error:
        if isinstance(error, ConfigurationError) and not isinstance(error, NodeNotReadyError):
            return  # it has no place for them, so there are none; a check says so
        what = f"whether dead letters wait is not known: {error}"
        yield Change(before.name, what, "those that do may be out of reach then", warns=True)


def _out_of_reach(before: Pipeline, after: Pipeline | None) -> str:
    """Why no letter of a pipeline can be loaded any more, "" if they can."""
    if after is None:
        return "no pipeline loads them then, and no command shows them"
    if before.target.address != after.target.address:
        return (
            f"they stay at {before.target.address}, where no command looks then, unless"
            f" {after.target.address} is the same server"
        )
    if not after.stores_dead_letters:
        return "nothing loads them then, since the pipeline puts no faulty row aside any more"
    return ""


def _remapped(
    ident: PipelineId, store: DeadLetterStore, old: Router, new: Router
) -> Iterator[Change]:
    """Letters that `setl deadletter retry` takes now, and would not take any more."""
    found: Counter[str] = Counter()
    waiting = [i for i, state in store.states(str(ident)).items() if state in WAITING]
    for letters in letters_of(store, ident, waiting):
        found.update(_table(x) for x in letters if is_remapped(x, new) and not is_remapped(x, old))
    for table, number in sorted(found.items()):
        yield Change(
            ident.pipeline,
            f"{_waiting(number)} of {table}, put aside under the mapping before",
            "`setl deadletter retry` takes them only with --force then. Load them again before the"
            " file is applied, or send the rows as they are then with `setl resend`",
            warns=True,
        )


def _table(letter: DeadLetter) -> str:
    return letter.source or letter.target


def _waiting(number: int) -> str:
    return units.count(number, "open dead letter")
