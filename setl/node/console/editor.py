"""The channel editor: what is wrong in a text, what applying it would change, and its pages."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, NotFound
from arbiter.requests import Refused, Requester
from arbiter.values import ChannelState
from setl.channel.file import ChannelFile
from setl.channel.partitions import read_expanded
from setl.channel.reading import ChannelDefinition, definition_warnings, read_channel_definition
from setl.channel.text.problems import ChannelFileError
from setl.channel.text.references import refuse_hidden
from setl.clock import Clock
from setl.errors import ConfigurationError, SetlError
from setl.node.console.actions.cli_subprocess import CliSubprocess
from setl.node.console.actions.context import ActionContext
from setl.node.console.links import channel_link
from setl.node.console.pages.mapping import as_text
from setl.node.console.serving.answers import Answers, Endpoint
from setl.node.console.serving.authentication import Authenticator, HttpError, Session
from setl.node.console.serving.daemon_calls import DaemonCalls
from setl.node.console.serving.files import FILE, PAGE
from setl.operate import applying
from setl.operate.action_log import recorded
from setl.operate.applying import NO_REVISION, revision_of
from setl.operate.cluster_check import other_channels, ring_findings
from setl.operate.plan import Plan
from setl.operate.planning import make_plan
from setl.operate.starting import readiness_of_file, refusal
from setl.resources import read_text

CHECK_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something about a text.

    Attributes:
        level: ``error`` or ``warning``.
        line: from 1, 0 if it has none.
        path: the position in the file.
        text: what is wrong.
    """

    level: str
    line: int
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Read:
    """A text that was read.

    Attributes:
        faults: what is wrong, in the order of lines.
        definition: what it says as it is written, None if it is wrong.
        channel: the same with the node's values, None if it is wrong.
    """

    faults: Sequence[Fault]
    definition: ChannelDefinition | None = None
    channel: ChannelFile | None = None


def read(text: str, environment: Mapping[str, str]) -> Read:
    """Read a text as a channel file, and say everything that is wrong in it.

    Args:
        text: YAML.
        environment: where references get their values from; those that are not set here are
            mistakes, since this node could not run it.
    """
    try:
        definition = read_channel_definition(text)
        warnings = [
            Fault("warning", problem.line or 0, problem.path, problem.message)
            for problem in definition_warnings(definition)
        ]
        refuse_hidden(definition)
        expanded, channel = read_expanded(definition, environment)
    except ChannelFileError as error:
        return Read([Fault(p.level, p.line or 0, p.path, p.message) for p in error.problems])
    except ConfigurationError as error:
        return Read([Fault("error", 0, "", str(error))])
    return Read(warnings, expanded, channel)


def plan(context: ActionContext, found: Read) -> Plan:
    """What applying would change; asks the servers, but for expressions, which need Spark.

    Raises:
        Refused: the text is wrong.
    """
    definition, channel = _right(found)
    return make_plan(context.arbiter, definition, channel, context.environment)


def apply(context: ActionContext, found: Read, base: str) -> str:
    """Store the channel, as `setl apply` does.

    Args:
        context: of whoever asks.
        found: the text.
        base: revision of the file that its page showed at first.

    Raises:
        Refused: the text is wrong, somebody has stored another file meanwhile, changes would go
            round between channels, or the channel is not stopped and something must be fixed at
            its servers first.
    """
    definition, channel = _right(found)
    name = channel.channel
    hint = (
        f"Open the file of {name} in another tab, and put your changes into it. Actions shows who"
        " has stored it"
    )
    seen = applying.stored_channel(context.arbiter, name)
    applying.refuse_another(name, seen, base, hint)
    others = other_channels(context.arbiter, name)
    for finding in ring_findings(definition, others):
        if finding.level == "error":
            raise Refused(f"{finding.what}. {finding.hint[0]}, or `setl apply --allow-ring`")
    goes_on = seen is not None and seen.state is not ChannelState.STOP
    unseen = _unseen_servers(context, channel) if goes_on else ()
    stored = applying.store(context.arbiter, name, definition, seen=seen, looked=goes_on, hint=hint)
    return "\n".join([applying.stored_sentence(stored, seen), *unseen])


def _unseen_servers(context: ActionContext, channel: ChannelFile) -> Sequence[str]:
    """What could not be looked at before a channel goes on by a new file; refuses what cannot."""
    found = readiness_of_file(channel, context.arbiter)
    if found.faults:
        sql = "“Check at the servers”"
        raise Refused(refusal(channel.channel, found.faults, "stored", sql))
    return found.unseen


def check(text: str, cli_subprocess: CliSubprocess) -> Sequence[Mapping[str, Any]]:
    """What `setl check` finds at the real servers, expressions included; takes seconds.

    Args:
        text: the file.
        cli_subprocess: runs it in a process of its own, since it may start Spark.

    Raises:
        SetlError: it did not answer in time, or ended without an answer.
    """
    with tempfile.TemporaryDirectory(prefix="setl-console-") as folder:
        file = Path(folder) / "channel.yaml"
        file.write_text(text, encoding="utf-8")
        code, out, err = cli_subprocess.output(["check", str(file), "-o", "json"], CHECK_SECONDS)
    try:
        value: object = json.loads(out)
    except ValueError:
        last = err.strip()[-1000:] or f"exit status {code}"
        raise SetlError(f"the check gave no answer: {last}") from None
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _right(found: Read) -> tuple[ChannelDefinition, ChannelFile]:
    if found.definition is None or found.channel is None:
        raise Refused("the file has mistakes; nothing was done")
    return found.definition, found.channel


_SEE_OTHER = 303
_THREADS = 3
_NAME = "shop"
_NEW = """\
channel: {name}
pipelines:
  - name: a-to-b
    source: {type: mysql, host: db1, user: retl, password: "${SHOP_DB1_PASSWORD}"}
    target: {type: mysql, host: db2, user: retl, password: "${SHOP_DB2_PASSWORD}"}
    tables:
      - from: shop.orders
"""
_ANOTHER_SESSION = (
    "The session that this page was opened in is over. Nothing was done, and your text is still"
    " here."
)
_ANOTHER_FILE = (
    "The stored file of channel {channel} is another one since this page was opened (revision"
    " {base}). The plan compares with that one, and Apply would store nothing."
)


class EditorPages:
    """Shows a channel file, says what is wrong in it and what applying it would change."""

    def __init__(
        self,
        answers: Answers,
        authenticator: Authenticator,
        arbiter: Arbiter,
        clock: Clock,
        *,
        environment: Mapping[str, str],
        cli_subprocess: CliSubprocess,
    ) -> None:
        """Nothing is read yet.

        Args:
            answers: makes pages.
            authenticator: knows who asks.
            arbiter: keeps channels.
            clock: for the log of actions.
            environment: where references of channel files get their values from.
            cli_subprocess: runs commands beside the node.
        """
        self._answers = answers
        self._authenticator = authenticator
        self._arbiter = arbiter
        self._clock = clock
        self._environment = environment
        self._beside = cli_subprocess
        limit = CHECK_SECONDS + 10
        self._calls = DaemonCalls("console-editor", threads=_THREADS, limit=limit)
        self.get: dict[str, Endpoint] = {
            "/edit": self._show,
            "/edit/{channel}": self._show,
            "/schema": self._schema,
        }
        self.post: dict[str, Endpoint] = {
            "/edit": self._act,
            "/edit/{channel}": self._act,
            "/faults": self._faults,
        }

    def stop(self) -> None:
        """Read nothing any more."""
        self._calls.stop()

    async def _show(self, request: Request) -> Response:
        name = request.path_params.get("channel", "")
        if self._authenticator.session(request) is None:
            return self._answers.shown(request, "editor.html", _values(name), "editor")
        begun_with = NO_REVISION
        if not name:
            text = _NEW.replace("{name}", await self._calls.run(self._free_name))
        else:
            try:
                found = await self._calls.run(partial(self._arbiter.channels.one, name))
            except NotFound:
                raise HttpError(404, "Not found", f"There is no channel {name}.") from None
            text, begun_with = as_text(found.definition), revision_of(found)
        values = _values(name, text, begun_with)
        return self._answers.shown(request, "editor.html", values, "editor")

    def _free_name(self) -> str:
        """A name that no channel has: whoever applies the new file replaces none by mistake."""
        taken = {channel.name for channel in self._arbiter.channels.all()}
        names = (f"{_NAME}-{n}" if n > 1 else _NAME for n in count(1))
        return next(name for name in names if name not in taken)

    async def _schema(self, _: Request) -> Response:
        text = read_text("schemas", "channel.schema.json")
        return Response(text, media_type="application/schema+json", headers=FILE)

    async def _faults(self, request: Request) -> Response:
        """What is wrong in a text, for the script of the page."""
        _, form = await self._answers.form_of_session(request)
        found = await self._calls.run(partial(self._read, form))
        return JSONResponse([asdict(fault) for fault in found.faults], headers=PAGE)

    async def _act(self, request: Request) -> Response:
        session, form = await self._answers.form_and_session(request)
        text, what = form.get("text", "").replace("\r\n", "\n"), form.get("do", "")
        values = _values(request.path_params.get("channel", ""), text, form.get("begun_with", ""))
        if session is None:
            values["error"] = _ANOTHER_SESSION
            return self._answers.shown(request, "editor.html", values, "editor", code=401)
        found = await self._calls.run(partial(self._read, form))
        values["faults"] = found.faults
        if found.channel is not None:
            context = ActionContext(self._arbiter, self._requester(session), self._environment)
            try:
                if what == "apply":
                    base = _base(values, found.channel.channel)
                    return await self._apply(session, context, found, base)
                if what == "check":
                    call = partial(check, text, self._beside)
                    values["findings"] = await self._calls.run(call)
                elif what == "plan":
                    planned = await self._calls.run(partial(plan, context, found))
                    values["plan"] = planned
                    if planned.base != _base(values, found.channel.channel):
                        values["error"] = _ANOTHER_FILE.format(
                            channel=planned.channel, base=planned.base
                        )
            except (SetlError, ArbiterError) as error:
                values["error"] = str(error)
        return self._answers.shown(request, "editor.html", values, "editor")

    async def _apply(
        self, session: Session, context: ActionContext, found: Read, base: str
    ) -> Response:
        name = found.channel.channel if found.channel else ""

        def recorded_apply() -> str:
            with recorded(
                self._arbiter, context.requester, "apply", name, self._clock.now
            ) as entry:
                entry.outcome = apply(context, found, base)
            return entry.outcome

        session.note("done", await self._calls.run(recorded_apply))
        return RedirectResponse(channel_link(name), _SEE_OTHER, PAGE)

    def _read(self, form: Mapping[str, str]) -> Read:
        return read(form.get("text", "").replace("\r\n", "\n"), self._environment)

    def _requester(self, session: Session) -> Requester:
        return Requester(f"{session.who}, console", self._clock.now())


def _base(values: Mapping[str, Any], name: str) -> str:
    """Revision of the file that a text was made from; of a channel under a new name, none."""
    own = values["name"] in {"", name}
    return (own and values["begun_with"]) or NO_REVISION


def _values(name: str, text: str = "", begun_with: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "text": text,
        "begun_with": begun_with,
        "faults": None,
        "findings": None,
        "plan": None,
        "error": "",
    }
