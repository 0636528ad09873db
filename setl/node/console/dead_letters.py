"""Dead letters on the console: which there are, loading them again, dropping them.

A letter may hold a row of many megabytes, and text that has no UTF-8 form. Neither may keep the
page from being shown.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response

from arbiter.requests import Refused
from arbiter.snapshot import Snapshot
from arbiter.values import ChannelState, PipelineId
from setl.channel.file import Pipeline
from setl.channel.reading import resolve_and_parse
from setl.channel.routes.routing import Router
from setl.counting import count
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.node.console.actions.context import ActionContext, Fields, pipeline_of
from setl.node.console.links import pipeline_link
from setl.node.console.serving.answers import Answers, Endpoint
from setl.node.console.serving.authentication import Authenticator, HttpError
from setl.node.console.serving.daemon_calls import DaemonCalls
from setl.node.stored import pipelines_of
from setl.operate import units
from setl.operate.dead_letters import WAITING, Retry, missing
from setl.printable import printable
from setl.systems.registry import system_of

_LONGEST = 200
"""Characters of a value that are shown, and twice as many digits of binary values."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a row.

    Attributes:
        column: its name.
        text: the value, or its beginning.
        rest: what is said of a value that is cut; "" for a whole one.
    """

    column: str
    text: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A row.

    Attributes:
        name: which one: ``before``, ``after`` or ``values``.
        cells: its values.
    """

    name: str
    cells: Sequence[Cell]


def images_of(payload: str) -> Sequence[Image]:
    """The rows in a letter's payload; none of a record that could not be decoded."""
    try:
        return _images(json.loads(payload))
    except (ValueError, TypeError, LookupError, AttributeError):
        return ()  # changed, or of another release: the error and the position are worth showing


def _images(value: dict[str, Any]) -> Sequence[Image]:
    columns: Sequence[Mapping[str, Any]] = value.get("columns", ())
    names = [str(column["name"]) for column in columns]
    if value["form"] == "row" and value["operation"] == "delete":
        key: Sequence[int] = value["key"]
        names = [names[index] for index in key]
    return [
        Image(image, [_cell(n, each) for n, each in zip(names, row, strict=False)])
        for image in ("before", "after", "values")
        if (row := value.get(image)) is not None
    ]


def _cell(column: str, value: Any) -> Cell:
    if isinstance(value, dict) and "bytes" in value:
        raw = b64decode(cast("dict[str, str]", value)["bytes"])
        rest = f"{units.size(len(raw))} in all" if len(raw) > _LONGEST else ""
        return Cell(column, f"0x{raw[:_LONGEST].hex()}", rest)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Cell(
        column,
        printable(text[:_LONGEST]),
        f"{len(text):,} characters in all" if len(text) > _LONGEST else "",
    )


MOST = 50
"""Letters on the page, the last of the stream."""

_CHOSEN = "letter-"
_OUTCOME_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A dead letter as text."""

    id: str
    state: str
    at: str
    target: str
    key: str
    operation: str
    position: str
    attempts: int
    error: str
    hint: str
    images: Sequence[Image]


@dataclass(frozen=True, slots=True)
class DeadLettersPage:
    """The dead letters of a pipeline.

    Attributes:
        ident: the pipeline.
        stores_letters: whether it keeps any, rather than to stop at a faulty row.
        letters: the last of the stream first; those that are open, or the superseded ones.
        open: how many wait for a decision or for a leader.
        superseded: how many need nothing any more.
        of_superseded: whether the letters are superseded ones.
    """

    ident: PipelineId
    stores_letters: bool
    letters: Sequence[DeadLetterRow] = ()
    open: int = 0
    superseded: int = 0
    of_superseded: bool = False

    @property
    def more(self) -> bool:
        """Whether there are further ones of the same kind."""
        return len(self.letters) < (self.superseded if self.of_superseded else self.open)


def dead_letters_page(
    definition: Mapping[str, Any],
    environment: Mapping[str, str],
    ident: PipelineId,
    *,
    superseded: bool = False,
) -> DeadLettersPage:
    """Read the dead letters of a pipeline from its target.

    Args:
        definition: the channel's.
        environment: where references get their values from.
        ident: the pipeline.
        superseded: whether those are wanted that need nothing any more, in place of the open ones.

    Raises:
        SetlError: a reference has no value here, or the target does not answer.
    """
    config = _config(definition, environment, ident)
    if not config.stores_dead_letters:
        return DeadLettersPage(ident, stores_letters=False)
    with system_of(config.target).dead_letters() as store:
        tally = store.tally(str(ident))
        # Never both: many that need nothing would hide the few that do.
        states = (State.SUPERSEDED,) if superseded else WAITING
        found = store.find(str(ident), states=states, limit=MOST, newest=True)
    return DeadLettersPage(
        ident,
        stores_letters=True,
        letters=tuple(map(row_of, found)),
        open=tally.open,
        superseded=tally.superseded,
        of_superseded=superseded,
    )


def row_of(letter: DeadLetter) -> DeadLetterRow:
    """A dead letter as text."""
    key = None if letter.key_values is None else json.loads(letter.key_values)
    return DeadLetterRow(
        letter.id,
        letter.state.value,
        units.moment(letter.at),
        letter.target,
        "not known" if key is None else ", ".join(str(value) for value in key),
        letter.operation,
        letter.position,
        letter.attempts,
        letter.error,
        letter.hint,
        images_of(letter.payload),
    )


def chosen_ids(fields: Fields) -> list[str]:
    """The letters that are ticked in a form."""
    return [name.removeprefix(_CHOSEN) for name in fields if name.startswith(_CHOSEN)]


def retry(context: ActionContext, name: str, fields: Fields) -> str:
    """Have the leader load letters again, and wait for what comes of it for a while."""
    ident, ids = _choice(name, fields)
    config, runs = _read(context, ident)
    with system_of(config.target).dead_letters() as store:
        asked = Retry(store, ident, ids, Router(config), force="force" in fields)
        asked.ask(context.arbiter)
        timeout = _OUTCOME_SECONDS if runs else 0.0
        outcome = asked.outcome(context.arbiter, timeout, context.pause)
    return "; ".join(filter(None, (f"{name}: {outcome}", asked.left_out)))


def drop(context: ActionContext, name: str, fields: Fields) -> str:
    """Remove letters for good."""
    ident, ids = _choice(name, fields)
    config, _ = _read(context, ident)
    with system_of(config.target).dead_letters() as store:
        found = store.states(str(ident), ids)
        missing(found, ids)
        dropped = store.remove(found)
    return f"{name}: {count(dropped, 'dead letter')} dropped"


def drop_question(_: object, name: str, fields: Fields) -> str:
    """What is asked before letters are dropped."""
    ids = chosen_ids(fields)
    what = count(len(ids), "dead letter") if ids else "all dead letters, superseded ones too,"
    return (
        f"Are you sure you want to drop {what} of {name}? No row changes, neither at the source nor"
        " at the target; `setl verify` names the rows that differ."
    )


def _choice(name: str, fields: Fields) -> tuple[PipelineId, list[str]]:
    """A pipeline, and the letters of it that are meant; none for all."""
    ids, everything = chosen_ids(fields), fields.get("which") == "all"
    if bool(ids) == everything:
        raise Refused("choose dead letters, or all of them")
    return pipeline_of(name), ids


def _read(context: ActionContext, ident: PipelineId) -> tuple[Pipeline, bool]:
    """A pipeline, and whether somebody runs it."""
    channel = context.arbiter.channels.one(ident.channel)
    led = context.arbiter.leader_locks.one(ident) is not None
    runs = channel.state is ChannelState.START and led
    return _config(channel.definition, context.environment, ident), runs


def _config(
    definition: Mapping[str, Any], environment: Mapping[str, str], ident: PipelineId
) -> Pipeline:
    return resolve_and_parse(definition, environment).pipeline(ident.pipeline)


_SECONDS = 30.0


class DeadLettersPages:
    """Reads dead letters from targets, in threads of its own: targets may be slow."""

    def __init__(
        self,
        answers: Answers,
        authenticator: Authenticator,
        snapshot: Callable[[], Snapshot | None],
        environment: Mapping[str, str],
    ) -> None:
        """Nothing is read yet.

        Args:
            answers: makes pages.
            authenticator: knows who asks.
            snapshot: the last look at the cluster.
            environment: where references of channel files get their values from.
        """
        self._answers = answers
        self._authenticator = authenticator
        self._snapshot = snapshot
        self._environment = environment
        self._calls = DaemonCalls("console-letters", threads=2, limit=_SECONDS)
        self.get: dict[str, Endpoint] = {"/letters/{channel}/{pipeline}": self._show}

    def stop(self) -> None:
        """Read nothing any more."""
        self._calls.stop()

    async def _show(self, request: Request) -> Response:
        ident = PipelineId(request.path_params["channel"], request.path_params["pipeline"])
        snapshot = self._snapshot()
        channel = snapshot.facts.channels.get(ident.channel) if snapshot else None
        if channel is None or ident not in pipelines_of(channel):
            raise HttpError(404, "Not found", "There is no such pipeline (any more).")
        page = None
        if self._authenticator.session(request) is not None:
            page = await self._calls.run(
                partial(
                    dead_letters_page,
                    channel.definition,
                    self._environment,
                    ident,
                    superseded="superseded" in request.query_params,
                )
            )
        values = {"page": page, "ident": ident, "back": pipeline_link(ident)}
        return self._answers.shown(request, "letters.html", values, "letters")
