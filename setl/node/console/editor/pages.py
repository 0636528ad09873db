"""The pages of the channel editor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, NotFound
from arbiter.requests import Requester
from setl.clock import Clock
from setl.errors import SetlError
from setl.node.console.actions.cli_subprocess import CliSubprocess
from setl.node.console.actions.context import ActionContext
from setl.node.console.editor import editing
from setl.node.console.editor.editing import Read
from setl.node.console.links import channel_link
from setl.node.console.pages.mapping import as_text
from setl.node.console.serving import headers
from setl.node.console.serving.answers import Answers, Endpoint
from setl.node.console.serving.authentication import Authenticator, HttpError
from setl.node.console.serving.daemon_calls import DaemonCalls
from setl.node.console.serving.sessions import Session
from setl.operate.action_log import recorded
from setl.operate.applying import NO_REVISION, revision_of
from setl.resources import read_text

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
        limit = editing.CHECK_SECONDS + 10
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
        return Response(text, media_type="application/schema+json", headers=headers.FILE)

    async def _faults(self, request: Request) -> Response:
        """What is wrong in a text, for the script of the page."""
        _, form = await self._answers.form_of_session(request)
        found = await self._calls.run(partial(self._read, form))
        return JSONResponse([asdict(fault) for fault in found.faults], headers=headers.PAGE)

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
                    call = partial(editing.check, text, self._beside)
                    values["findings"] = await self._calls.run(call)
                elif what == "plan":
                    plan = await self._calls.run(partial(editing.plan, context, found))
                    values["plan"] = plan
                    if plan.base != _base(values, found.channel.channel):
                        values["error"] = _ANOTHER_FILE.format(channel=plan.channel, base=plan.base)
            except (SetlError, ArbiterError) as error:
                values["error"] = str(error)
        return self._answers.shown(request, "editor.html", values, "editor")

    async def _apply(
        self, session: Session, context: ActionContext, found: Read, base: str
    ) -> Response:
        name = found.channel.channel if found.channel else ""

        def apply() -> str:
            with recorded(
                self._arbiter, context.requester, "apply", name, self._clock.now
            ) as entry:
                entry.outcome = editing.apply(context, found, base)
            return entry.outcome

        session.note("done", await self._calls.run(apply))
        return RedirectResponse(channel_link(name), _SEE_OTHER, headers.PAGE)

    def _read(self, form: Mapping[str, str]) -> Read:
        return editing.read(form.get("text", "").replace("\r\n", "\n"), self._environment)

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
