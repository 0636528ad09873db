"""The pages of the console and their addresses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from arbiter.arbiter import Arbiter
from arbiter.errors import Unreachable
from arbiter.snapshot import Snapshot
from arbiter.values import PipelineId
from setl.clock import Clock
from setl.error_text import ErrorText
from setl.node.cluster.view import ClusterView
from setl.node.console.actions.cli_subprocess import CliSubprocess, environment_of
from setl.node.console.actions.forms import Acting, Asked
from setl.node.console.actions.jobs import Jobs
from setl.node.console.dead_letters import DeadLettersPages
from setl.node.console.editor import EditorPages
from setl.node.console.figures import Recorder, Sampler, as_columns, merged, recorded_elsewhere
from setl.node.console.links import ROOT
from setl.node.console.page_values import Address, PageValues, address_of
from setl.node.console.pages import rendering
from setl.node.console.pages.docs import docs_page
from setl.node.console.serving.answers import Answers, Endpoint
from setl.node.console.serving.authentication import Authenticator, HttpError, Session, form_of
from setl.node.console.serving.daemon_calls import DaemonCalls
from setl.node.console.serving.files import FILE, PAGE, files
from setl.node.console.serving.stream import Streams
from setl.node.console.watching import ClusterWatch
from setl.node.http.authentication import TokenGuard, client_of
from setl.node.leading.watchdog import contact_at
from setl.node.status import NodeStatus

_log = logging.getLogger(__name__)

_NOT_LOOKED = "This node has only just started, and has not looked at the cluster yet"
_READERS = 8
_SEE_OTHER = 303
_OF_CONFIRMATION = ("csrf", "sure", "typed")  # fields that the page which asks back makes itself


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """How a node's console is run.

    Attributes:
        environment: where references of channel files get their values from.
        zookeeper: addresses, for commands that run beside the node.
        root: the path in ZooKeeper, likewise.
    """

    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    zookeeper: str = ""
    root: str = "/setl"


@dataclass(frozen=True, slots=True)
class ConsoleNode:
    """What the console knows of its node.

    Attributes:
        nid: its id.
        status: the node and its pipelines, as of now; must not block.
        snapshot: its last look at the cluster, None before the first.
        arbiter: its session.
        clock: its clock.
        call_seconds: limit of what a request needs from the arbiter.
    """

    nid: str
    status: Callable[[], NodeStatus]
    snapshot: Callable[[], Snapshot | None]
    arbiter: Arbiter
    clock: Clock
    call_seconds: float = 10.0


class Console:
    """Serves pages from the node's HTTP interface."""

    def __init__(self, node: ConsoleNode, settings: ConsoleSettings, guard: TokenGuard) -> None:
        """Nothing is served or recorded yet; `guard` knows the token of who may change things."""
        self._node = node
        self._nid = node.nid
        self._recorder = Recorder()
        self._sampler = Sampler(self._recorder, node.status, node.clock)
        self._streams = Streams()
        self._calls = DaemonCalls("console", threads=_READERS, limit=node.call_seconds)
        self._authenticator = Authenticator(node.nid, guard, node.clock)
        self._answers = Answers(node.nid, self._authenticator)
        self._beside = CliSubprocess(
            environment_of(settings.environment, settings.zookeeper, settings.root)
        )
        self._jobs = Jobs(node.clock, self._beside, changed=self._look_again)
        look = partial(ClusterWatch, node.nid, node.status, node.snapshot, node.clock)
        self._pages = PageValues(
            node.nid,
            look(whole=True),
            look(whole=False),
            node.arbiter,
            node.clock,
            jobs=self._jobs,
            contact=lambda: _contact_words(node.arbiter, node.clock.monotonic()),
            environment=settings.environment,
        )
        self._acting = Acting(node.nid, node.arbiter, node.clock, settings.environment, self._jobs)
        self._editor = EditorPages(
            self._answers,
            self._authenticator,
            node.arbiter,
            node.clock,
            environment=settings.environment,
            cli_subprocess=self._beside,
        )
        self._letters = DeadLettersPages(
            self._answers, self._authenticator, node.snapshot, settings.environment
        )

    def start(self) -> None:
        """Begin to record."""
        files()  # as they are now, whatever an upgrade lays there later
        self._sampler.start()

    def stop(self) -> None:
        """End streams and work; waits for none."""
        self._sampler.stop()
        self._streams.stop()
        self._beside.stop()
        self._acting.stop()
        self._editor.stop()
        self._letters.stop()
        self._calls.stop()

    def routes(self) -> list[Route]:
        """Where the pages are, but for the first one."""
        get: dict[str, Endpoint] = {
            "/channels/{channel}": self._page,
            "/pipelines/{channel}/{pipeline}": self._page,
            "/nodes/{node}": self._page,
            "/actions": self._page,
            "/events": self._events,
            "/series/{channel}/{pipeline}": self._series,
            "/static/{name:path}": self._file,
            "/docs/{name}": self._docs,
            "/login": self._show_login,
            "": self._home,
            "/": self._home,
        }
        post: dict[str, Endpoint] = {
            "/login": self._login,
            "/logout": self._logout,
            "/do": self._do,
        }
        get |= {**self._editor.get, **self._letters.get}
        post |= self._editor.post
        return [
            Route(ROOT + path, self._answers.guarded(act), methods=[method])
            for method, found in (("GET", get), ("POST", post))
            for path, act in found.items()
        ]

    async def overview(self, request: Request) -> Response:
        """The first page."""
        return await self._answers.guarded(self._page)(request)

    # -- looking --------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        address, session = address_of(request.url.path), self._authenticator.session(request)
        values = await self._values(address, session) if address else None
        if address and values is None and not self._pages.looked:
            raise HttpError(503, "Not yet", f"{_NOT_LOOKED}. Reload this page in a moment.")
        if address is None or values is None:
            raise HttpError(
                404, "Not found", "There is no such channel, pipeline or node (any more)."
            )
        return self._answers.shown(request, f"{address.kind}.html", values, address.kind, live=True)

    async def _values(self, address: Address, session: Session | None) -> dict[str, Any] | None:
        return await self._calls.run(partial(self._pages.values, address, session))

    async def _events(self, request: Request) -> Response:
        path = request.query_params.get("of", "/")
        address = address_of(path)
        if address is None:
            raise HttpError(404, "Not found", "There is no such page.")
        known = self._authenticator.session(request, touch=False) is not None
        stranger = None if known else client_of(request)
        if self._streams.is_full(stranger):
            raise HttpError(429, "Too many", "Too many pages are open.")

        async def render() -> dict[str, str] | None:
            session = self._authenticator.session(request, touch=False)
            values = await self._values(address, session)
            if values is None and not self._pages.looked:
                raise Unreachable(_NOT_LOOKED)  # whether it is gone is not known yet
            if values is None:
                return None
            around = {"path": path, "writable": self._authenticator.opens}
            return rendering.regions(address.kind, {**around, **values})

        return StreamingResponse(
            self._streams.events(render, stranger),
            media_type="text/event-stream",
            headers={**PAGE, "X-Accel-Buffering": "no"},
        )

    async def _series(self, request: Request) -> Response:
        ident = PipelineId(request.path_params["channel"], request.path_params["pipeline"])
        try:
            since = float(request.query_params.get("since", "0"))
        except ValueError:
            raise HttpError(400, "Not a time", "`since` is a number of seconds.") from None
        points = self._recorder.points(ident, since)
        if request.query_params.get("own") != "yes":
            snapshot = self._node.snapshot()
            nodes = snapshot.facts.nodes.values() if snapshot else ()
            others = [node for node in nodes if node.nid != self._nid]
            found = await self._calls.run(partial(recorded_elsewhere, others, ident, since))
            points = merged([points, *found])
        return JSONResponse(as_columns(points), headers=PAGE)

    async def _file(self, request: Request) -> Response:
        found = files().get(request.path_params["name"])
        if found is None:
            raise HttpError(404, "Not found", "There is no such file.")
        answer = {**FILE, "ETag": found.tag}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=answer)
        return Response(found.content, media_type=found.type, headers=answer)

    async def _docs(self, request: Request) -> Response:
        page = docs_page(request.path_params["name"])
        if page is None:
            raise HttpError(404, "Not found", "There is no such page in this release's docs.")
        return self._answers.shown(request, "docs.html", {"page": page}, "docs")

    async def _home(self, _: Request) -> Response:
        return RedirectResponse("/", _SEE_OTHER, PAGE)

    def _look_again(self) -> None:
        self._pages.forget()

    # -- logging in -----------------------------------------------------------------------

    async def _show_login(self, request: Request) -> Response:
        values = {"wrong": "", "next": _inner(request.query_params.get("next")), "name": ""}
        return self._answers.shown(request, "login.html", values, "login")

    async def _login(self, request: Request) -> Response:
        form = await form_of(request)
        onward, name = _inner(form.get("next")), form.get("name", "")
        try:
            entry = self._authenticator.let_in(request, name, form.get("token", ""))
        except HttpError as wrong:
            values = {"wrong": str(wrong), "next": onward, "name": name}
            return self._answers.shown(request, "login.html", values, "login", code=wrong.code)
        _log.info(
            "log-in at the console", extra={"setl": {"nid": self._nid, "who": entry.session.who}}
        )
        response = RedirectResponse(onward, _SEE_OTHER, PAGE)
        self._authenticator.give_cookie(response, request, entry.cookie)
        return response

    async def _logout(self, request: Request) -> Response:
        await self._answers.form_of_session(request)
        response = RedirectResponse("/", _SEE_OTHER, PAGE)
        self._authenticator.let_out(request, response)
        return response

    # -- acting ---------------------------------------------------------------------------

    async def _do(self, request: Request) -> Response:
        session, form = await self._answers.form_of_session(request)
        asked = Asked.of(form)
        action = asked.action
        view = await self._calls.run(self._pages.view)
        if not asked.known(view):
            raise HttpError(404, "Not found", "There is no such channel or pipeline (any more).")
        if (action.question or action.look) and not asked.sure(form):
            return await self._ask_back(request, session, asked, form, view)
        await self._acting.do(session, asked, form)
        self._pages.forget()
        return RedirectResponse(asked.onward, _SEE_OTHER, PAGE)

    async def _ask_back(
        self,
        request: Request,
        session: Session,
        asked: Asked,
        form: Mapping[str, str],
        view: ClusterView,
    ) -> Response:
        """The page that asks whether somebody is sure."""
        action = asked.action
        if action.look is not None:
            looked = await self._acting.look(session, asked, action.look, form)
            if looked is None:
                return RedirectResponse(asked.page, _SEE_OTHER, PAGE)
            question, form = looked.question, {**form, **looked.fields}
        else:
            question = action.question(view, asked.on, form) if action.question else ""
        values = {
            "question": question,
            "verb": action.verb,
            "back": asked.page,
            "typed": asked.on if action.typed else "",
            "wrong": form.get("typed", ""),
            "fields": [(k, v) for k, v in form.items() if k not in _OF_CONFIRMATION],
        }
        return self._answers.shown(request, "confirm.html", values, "confirm")


def _inner(path: str | None) -> str:
    """A path of this very node; never one of another site."""
    parts = urlsplit(path or "/")
    inner = parts.path if parts.path.startswith("/") and not parts.path.startswith("//") else "/"
    return "/" if parts.netloc or parts.scheme or "\\" in inner else inner


def wants_page(request: Request) -> bool:
    """Whether whoever asks for ``/`` is a browser; programs get the index as JSON."""
    return "text/html" in request.headers.get("accept", "")


def _contact_words(arbiter: Arbiter, now: float) -> str:
    """``connected``, or what the contact with the arbiter is instead, and why."""
    contact = contact_at(arbiter.session, now).value
    why = arbiter.session.problem()
    return ErrorText(f"{contact} ({why})" if why else contact, contact)
