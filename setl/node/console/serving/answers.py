"""Answers of the console: whole pages, and refusals and troubles as pages too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from arbiter.errors import ArbiterError
from setl.error_text import HIDDEN
from setl.errors import SetlError
from setl.node.console.pages import rendering
from setl.node.console.serving.authentication import (
    Authenticator,
    HttpError,
    Session,
    form_of,
    refuse_other_sites,
)
from setl.node.console.serving.files import PAGE

Endpoint = Callable[[Request], Awaitable[Response]]

_FORMS = ("/console/do", "/console/logout")


class Answers:
    """Makes pages for whoever asks."""

    def __init__(self, nid: str, authenticator: Authenticator) -> None:
        """For the console of the node `nid`, whose visitors `authenticator` knows."""
        self._nid = nid
        self._authenticator = authenticator

    def shown(
        self,
        request: Request,
        template: str,
        values: Mapping[str, Any],
        kind: str,
        *,
        live: bool = False,
        code: int = 200,
    ) -> Response:
        """A page.

        Args:
            request: who asks, and for what.
            template: its file.
            values: what it is given, beside what every page is given.
            kind: the entry of the menu.
            live: whether it is kept up to date.
            code: HTTP status code.
        """
        # Pages for who does something have asked for the session by now. What is left are refusals,
        # also of the events that an open page asks for by itself.
        session = self._authenticator.session(request, touch=False)
        around = {
            "here": self._nid,
            "kind": kind,
            "path": page_behind(request),
            "live": request.url.path if live else "",
            "writable": self._authenticator.opens,
            "session": session,
            "notes": session.take_notes() if session else [],
        }
        html = rendering.page(template, {**around, **values})
        return HTMLResponse(html, code, PAGE)

    def guarded(self, act: Endpoint) -> Endpoint:
        """An endpoint whose refusals and troubles are pages."""

        async def endpoint(request: Request) -> Response:
            try:
                return await act(request)
            except HttpError as refused:
                code, title, text = refused.code, refused.title, str(refused)
            except ArbiterError as error:
                code, title, text = (
                    503,
                    "ZooKeeper does not answer",
                    self._error_text(request, error),
                )
            except SetlError as error:
                code, title, text = 503, "That did not work", self._error_text(request, error)
            values = {"title": title, "text": text, "log_in": code == 401}
            return self.shown(request, "fault.html", values, "fault", code=code)

        return endpoint

    def _error_text(self, request: Request, error: ArbiterError | SetlError) -> str:
        """What an error says, as far as whoever asks may read it."""
        if self._authenticator.session(request) is not None:
            return str(error)
        return error.public if isinstance(error, SetlError) else HIDDEN

    def session(self, request: Request) -> Session:
        """The session of somebody who may see more than strangers do.

        Raises:
            HttpError: there is none.
        """
        session = self._authenticator.session(request)
        if session is None:
            text = "Log in to see this." if self._authenticator.opens else "This node has no token."
            raise HttpError(401, "Not logged in", text)
        return session

    async def form_of_session(self, request: Request) -> tuple[Session, Mapping[str, str]]:
        """A form that somebody has sent who is logged in, from one of our pages.

        Raises:
            HttpError: nobody is logged in, or another site has sent it.
        """
        session = self._authenticator.session(request)
        if session is None:
            refuse_other_sites(request)
            text = (
                "Nothing was done: your session is over. It ends an hour after you did something"
                " last, and with the node."
            )
            raise HttpError(401, "Not logged in", text)
        form = await form_of(request)
        if not session.sent(form.get("csrf", "")):
            raise HttpError(403, "Refused", "This form is not from a page of your session.")
        return session, form

    async def form_and_session(self, request: Request) -> tuple[Session | None, Mapping[str, str]]:
        """A form of one of our pages, and the session that it was made in, None if that is over.

        For forms with something in them that took somebody a while to write.

        Raises:
            HttpError: another site has sent it.
        """
        form = await form_of(request)
        session = self._authenticator.session(request)
        return (session if session and session.sent(form.get("csrf", "")) else None), form


def page_behind(request: Request) -> str:
    """Where somebody is: the page that was asked for, or the one that a form was sent from.

    The answer to some forms has no address that could be asked for again.
    """
    if request.url.path not in _FORMS:
        return request.url.path
    came = urlsplit(request.headers.get("referer", ""))
    own = came.netloc == request.headers.get("host") and came.path not in _FORMS
    return (came.path if own else "") or "/"
