"""What an operator can do from the console; each does what the command of its name does.

All functions here block for as long as the arbiter's calls do, or until a request is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from arbiter import requests
from arbiter.errors import ArbiterError
from arbiter.requests import Refused
from arbiter.values import ChannelState, PipelineId, Signal, SignalKind, SignalState
from setl.channel.reading import resolve_and_parse
from setl.channel.relations.overwriting import overwritten_by_loads
from setl.counting import count
from setl.errors import ConfigurationError
from setl.model.load_request import LoadRequest, RequestState
from setl.node.cluster.view import ClusterView
from setl.node.console import dead_letters
from setl.node.console.actions import cutting_over, moving, removal, silencing
from setl.node.console.actions.context import ActionContext, Fields, Preview, pipeline_of
from setl.node.console.open_loads import open_requests
from setl.node.stored import preference_of
from setl.operate import questions
from setl.operate.starting import readiness, refusal
from setl.run.table_loads.requests import StoredLoadRequests

ANSWER_SECONDS = 60.0


class About(Enum):
    """What an action is about; its page shows what comes of it."""

    PIPELINE = "pipeline"
    CHANNEL = "channel"
    LETTERS = "dead letters of a pipeline"
    ALARMS = "alarms"
    CLUSTER = "the cluster"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done.

    Attributes:
        verb: on the button that confirms it.
        act: does it, on a channel or a pipeline; returns what came of it as a sentence, and
            raises `Refused` or another ArbiterError or SetlError if it is not done.
        question: what is asked before, None if nothing is.
        about: what it is about.
        look: asks servers for what has to be known before; its question is asked then. May take
            seconds.
        typed: whether the name has to be typed to confirm it.
        ends: whether what it is about is gone afterwards, with its page.
    """

    verb: str
    act: Callable[[ActionContext, str, Fields], str]
    question: Callable[[ClusterView, str, Fields], str] | None = None
    about: About = About.PIPELINE
    look: Callable[[ActionContext, str, Fields], Preview] | None = None
    typed: bool = False
    ends: bool = False


# -- channels -----------------------------------------------------------------------------


def _start(context: ActionContext, name: str, _: Fields) -> str:
    channel = context.arbiter.channels.one(name)
    words: list[str] = []
    if channel.state is ChannelState.STOP:
        found = readiness(channel, context.arbiter, context.environment)
        if found.faults:
            sql = "“Check at the servers”, beside the channel file,"
            raise Refused(refusal(name, found.faults, sql=sql))
        words = list(found.unseen)
    requests.change_state(context.arbiter, name, ChannelState.START)
    return "\n".join([f"channel {name} is set to START", *words])


def _stop(context: ActionContext, name: str, _: Fields) -> str:
    requests.change_state(context.arbiter, name, ChannelState.STOP)
    return f"channel {name} is set to STOP; what is loading is finished first"


def _pause(context: ActionContext, name: str, _: Fields) -> str:
    requests.pause_or_resume(context.arbiter, name, ChannelState.PAUSE)
    return f"channel {name} is set to PAUSE; its leaders finish what is loading, then rest"


def _resume(context: ActionContext, name: str, _: Fields) -> str:
    requests.pause_or_resume(context.arbiter, name, ChannelState.START)
    return f"channel {name} is set to START; its leaders go on"


def _stop_question(_: ClusterView, name: str, __: Fields) -> str:
    return (
        f"Stop channel {name}? Nothing is applied any more, and its leaders step down,"
        " until somebody starts it."
    )


# -- leaderships --------------------------------------------------------------------------


def _switchover(context: ActionContext, name: str, fields: Fields) -> str:
    ident = pipeline_of(name)
    preference = preference_of(context.arbiter.channels.one(ident.channel), ident.pipeline)
    to = fields.get("to", "")
    sent = requests.switchover(context.arbiter, ident, preference, context.requester, to=to)
    return _answer(context, ident, sent)


def _failover(context: ActionContext, name: str, fields: Fields) -> str:
    ident = pipeline_of(name)
    preference = preference_of(context.arbiter.channels.one(ident.channel), ident.pipeline)
    to = fields.get("to", "")
    sent = requests.failover(context.arbiter, ident, preference, context.requester, to=to)
    return _answer(context, ident, sent)


def _cancel(context: ActionContext, name: str, _: Fields) -> str:
    taken = requests.cancel(context.arbiter, pipeline_of(name), context.requester)
    return f"{len(taken)} scheduled switchover of {name} taken back"


def _asks(kind: SignalKind) -> Callable[[ActionContext, str, Fields], str]:
    def ask(context: ActionContext, name: str, _: Fields) -> str:
        ident = pipeline_of(name)
        sent = requests.ask_leader(context.arbiter, ident, kind, context.requester)
        return _answer(context, ident, sent)

    return ask


def _answer(context: ActionContext, ident: PipelineId, sent: Signal) -> str:
    answered = requests.await_answer(context.arbiter, ident, sent, ANSWER_SECONDS, context.pause)
    what = f"{sent.kind.value} of {ident}"
    if answered.state is SignalState.REFUSED:
        raise Refused(f"{what} refused: {answered.answer}")
    if answered.state is SignalState.PENDING:
        return f"{what} is not done after {ANSWER_SECONDS:g} s; the request stands"
    return f"{what}: {answered.answer or 'done'}"


def _leader(view: ClusterView, name: str) -> str:
    return view.pipeline(pipeline_of(name)).leader


def _switchover_question(view: ClusterView, name: str, fields: Fields) -> str:
    leader = _leader(view, name) or "(nobody)"
    return questions.before_switchover(pipeline_of(name), leader, to=fields.get("to", ""))


def _failover_question(view: ClusterView, name: str, fields: Fields) -> str:
    return questions.before_failover(
        pipeline_of(name), _leader(view, name), to=fields.get("to", "")
    )


# -- loads --------------------------------------------------------------------------------


def _load(context: ActionContext, name: str, fields: Fields) -> str:
    ident = pipeline_of(name)
    table, where = _to_load(fields)
    stored = StoredLoadRequests(context.arbiter, ident)
    request = stored.add(
        LoadRequest(
            tables=(table,) if table else (),
            where=where,
            by=context.requester.by,
            sent=context.requester.now,
        )
    )
    _notify_leader(context, ident)
    return f"asked the leader of {name} to load {request.what}; this page shows how far it is"


def _to_load(fields: Fields) -> tuple[str, str]:
    """The table and the condition of a form."""
    table, where = fields.get("table", "").strip(), fields.get("where", "").strip()
    if where and not table:
        raise Refused("a condition needs one table")
    return table, where


def _look_before_load(context: ActionContext, name: str, fields: Fields) -> Preview:
    ident = pipeline_of(name)
    table, where = _to_load(fields)
    what = f"rows of {table}" if table else "all tables"
    condition = f" for which {where}" if where else ""
    question = (
        f"Load {what}{condition} of {name} from its source into its target? Rows that only the"
        " target has stay."
    )
    return Preview(
        "\n".join([question, *_overwriting(context, ident, [table] if table else [])]), {}
    )


def look_before_repair(context: ActionContext, name: str, _: Fields) -> Preview:
    """What is asked before rows that differ are sent again."""
    question = (
        f"Compare {name} and send rows that differ again, as the source has them? Rows that only"
        " the target has are deleted there."
    )
    return Preview("\n".join([question, *_overwriting(context, pipeline_of(name), [])]), {})


def _overwriting(context: ActionContext, ident: PipelineId, tables: Sequence[str]) -> list[str]:
    """What to say of rows that may be replaced by older ones, if there are such."""
    # As far as the file can be read here.
    with suppress(ConfigurationError):
        file = resolve_and_parse(
            context.arbiter.channels.one(ident.channel).definition, context.environment
        )
        overwritten = overwritten_by_loads(file, file.pipeline(ident.pipeline), tables)
        if overwritten:
            return [questions.before_overwriting(overwritten)]
    return []


def _changes_loads(state: RequestState, word: str) -> Callable[[ActionContext, str, Fields], str]:
    def change(context: ActionContext, name: str, _: Fields) -> str:
        ident = pipeline_of(name)
        stored = StoredLoadRequests(context.arbiter, ident)
        chosen = open_requests(context.arbiter, ident)
        if not chosen:
            raise Refused(f"{name} has no load that waits or is under way")
        for request in chosen:
            stored.change_state(request.id, state)
        _notify_leader(context, ident)
        return f"{count(len(chosen), 'load')} of {name} {word}"

    return change


def _notify_leader(context: ActionContext, ident: PipelineId) -> None:
    """Have the leader look at once; without one the next leader looks automatically."""
    try:
        requests.ask_leader(context.arbiter, ident, SignalKind.LOADS, context.requester)
    except Refused:
        return
    except ArbiterError as error:
        raise Refused(f"the request is stored, but the leader was not notified: {error}") from error


def _cancel_loads_question(_: ClusterView, name: str, __: Fields) -> str:
    return f"End the loads of {name} that wait or are under way? What is loaded stays."


ACTIONS: Mapping[str, Action] = {
    "start": Action("Start", _start, about=About.CHANNEL),
    "pause": Action("Pause", _pause, about=About.CHANNEL),
    "resume": Action("Resume", _resume, about=About.CHANNEL),
    "stop": Action("Stop", _stop, _stop_question, about=About.CHANNEL),
    "remove": Action(
        "Remove", removal.remove, removal.question, about=About.CHANNEL, typed=True, ends=True
    ),
    "switchover": Action("Switch over", _switchover, _switchover_question),
    "failover": Action("Fail over", _failover, _failover_question),
    "cancel": Action("Take back", _cancel),
    "rollback": Action("Roll back", _asks(SignalKind.ROLLBACK)),
    "restart": Action("Restart", _asks(SignalKind.RESTART)),
    "position reset": Action("Move", moving.reset, look=moving.look),
    "cutover --abort": Action("Put back", cutting_over.abort, look=cutting_over.look),
    "load": Action("Load", _load, look=_look_before_load),
    "load-pause": Action("Pause", _changes_loads(RequestState.PAUSED, "paused")),
    "load-resume": Action("Resume", _changes_loads(RequestState.WAITING, "go on")),
    "load-cancel": Action(
        "End them", _changes_loads(RequestState.CANCELLED, "ended"), _cancel_loads_question
    ),
    "retry": Action("Load again", dead_letters.retry, about=About.LETTERS),
    "drop": Action("Drop", dead_letters.drop, dead_letters.drop_question, about=About.LETTERS),
    "alarm silence": Action("Silence", silencing.begin, about=About.ALARMS),
    "alarm silence --end": Action("End", silencing.end, about=About.ALARMS),
}
"""What can be done, by the name that forms and the log of actions use."""
