"""The part of the HTTP interface that changes something: switchover, failover, pause, resume.

The codes are Patroni's: 200 done, 202 recorded and not done yet, 412 refused, 503 not possible
now; and those that HTTP has for requests that are wrong or come from the wrong people.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from arbiter import requests
from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Invalid, NotFound, Unreachable
from arbiter.requests import Refused, Requester
from arbiter.values import Signal, SignalState
from setl.clock import Clock
from setl.log import fields
from setl.node.http import operator_requests
from setl.node.http.authentication import UNAUTHORIZED, Gate, TokenGuard, client_of
from setl.node.http.bounded_calls import BoundedCalls
from setl.node.http.operator_requests import (
    CancelRequest,
    ChannelRequest,
    FailoverRequest,
    Sent,
    SwitchoverRequest,
)
from setl.node.http.probes import (
    BAD_REQUEST,
    NOT_FOUND,
    OK,
    SERVICE_UNAVAILABLE,
    TOO_MANY,
    Reply,
    seconds,
)
from setl.operate.action_log import NOT_DONE, recorded

_log = logging.getLogger(__name__)

ACCEPTED = 202
TIMEOUT = 408
CONFLICT = 409
REFUSED = 412
TOO_LARGE = 413
DEFECT = 500

BODY_LIMIT = 64 * 1024
BODY_SECONDS = 10.0
WAIT_SECONDS = 30.0
LONGEST_WAIT = 120.0
MOST = 16
"""Requests that are carried out or waited for at the same time."""

_THREADS = 4
_POLL_SECONDS = 0.2

_Body = TypeVar("_Body", CancelRequest, FailoverRequest, SwitchoverRequest, ChannelRequest)
_Result = TypeVar("_Result")
_Act = Callable[[Request], Awaitable[Reply]]


class _Unusable(Exception):  # noqa: N818 - an answer, not an error of ours
    def __init__(self, code: int, error: str) -> None:
        super().__init__(error)
        self.reply = Reply(code, {"error": error})


class Operations:
    """Carries operators' requests out through the node's own session with the arbiter."""

    def __init__(
        self,
        arbiter: Arbiter,
        clock: Clock,
        *,
        nid: str,
        guard: TokenGuard,
        call_seconds: float,
    ) -> None:
        """Nothing is done before a request comes.

        Args:
            arbiter: the node's session.
            clock: for the time at which somebody asks.
            nid: the node, which answers on the cluster's behalf.
            guard: knows the token that a request must show.
            call_seconds: limit of what a request needs from the arbiter.
        """
        self._arbiter = arbiter
        self._clock = clock
        self._nid = nid
        self._gate = Gate(guard)
        self._calls = BoundedCalls("http-request", threads=_THREADS, limit=call_seconds)
        self._under_way = 0
        self._leaving = False

    def routes(self) -> list[Route]:
        """Where the requests come in."""
        return [
            self._route("/switchover", "POST", self._switchover),
            self._route("/switchover", "DELETE", self._cancel),
            self._route("/failover", "POST", self._failover),
            self._route("/pause", "POST", self._pause),
            self._route("/resume", "POST", self._resume),
        ]

    def stop(self) -> None:
        """Wait for no answer any more, so that the node can end."""
        self._leaving = True
        self._calls.stop()

    def _route(self, path: str, method: str, act: _Act) -> Route:
        async def endpoint(request: Request) -> Response:
            reply = await self._admit(request, act)
            _log.info(
                "request over HTTP",
                extra=fields(
                    nid=self._nid,
                    request=f"{method} {path}",
                    client=client_of(request),
                    code=reply.code,
                    pipeline=reply.body.get("pipeline"),
                    channel=reply.body.get("channel"),
                    outcome=reply.body.get("answer") or reply.body.get("error"),
                ),
            )
            return _response(reply)

        return Route(path, endpoint, methods=[method])

    async def _admit(self, request: Request, act: _Act) -> Reply:
        """Let a request through if it may pass, and turn what goes wrong into an answer."""
        refusal = self._gate.refusal(request.headers.get("authorization"), client_of(request))
        if refusal is not None:
            return refusal
        if self._under_way >= MOST:
            return Reply(TOO_MANY, {"error": f"{MOST} requests are under way already"})
        self._under_way += 1
        try:
            return await act(request)
        except _Unusable as unusable:
            return unusable.reply
        except ArbiterError as error:
            return _troubled(error)
        finally:
            self._under_way -= 1

    async def _switchover(self, request: Request) -> Reply:
        wait, wanted = _wait(request), await _body_of(request, SwitchoverRequest)
        call = partial(
            operator_requests.switchover, self._arbiter, wanted, self._requester(request)
        )
        stored = self._stored_signal(request, "switchover", wanted.pipeline, call)
        return await self._follow(await self._calls.run(stored), wait)

    async def _failover(self, request: Request) -> Reply:
        wait, wanted = _wait(request), await _body_of(request, FailoverRequest)
        call = partial(operator_requests.failover, self._arbiter, wanted, self._requester(request))
        stored = self._stored_signal(request, "failover", wanted.pipeline, call)
        return await self._follow(await self._calls.run(stored), wait)

    async def _cancel(self, request: Request) -> Reply:
        # Some clients and proxies let a DELETE have no body.
        named = request.query_params.get("pipeline")
        if named:
            wanted = _parsed(CancelRequest, {"pipeline": named})
        else:
            wanted = await _body_of(request, CancelRequest)
        call = partial(operator_requests.cancel, self._arbiter, wanted, self._requester(request))
        try:
            return await self._calls.run(
                self._stored_signal(request, "cancel", wanted.pipeline, call)
            )
        except Refused as nothing:
            return Reply(NOT_FOUND, {"error": str(nothing)})

    async def _pause(self, request: Request) -> Reply:
        wanted = await _body_of(request, ChannelRequest)
        call = partial(operator_requests.pause, self._arbiter, wanted)
        return await self._calls.run(self._stored_signal(request, "pause", wanted.channel, call))

    async def _resume(self, request: Request) -> Reply:
        wanted = await _body_of(request, ChannelRequest)
        call = partial(operator_requests.resume, self._arbiter, wanted)
        return await self._calls.run(self._stored_signal(request, "resume", wanted.channel, call))

    async def _follow(self, sent: Sent | Reply, wait: float) -> Reply:
        """Wait until a recorded request is answered, but for a scheduled one."""
        if isinstance(sent, Reply):
            return sent
        pipeline, signal = sent
        if signal.at > self._clock.now():
            return _outcome(sent, ACCEPTED, "scheduled", "it is done when its time comes")
        loop = asyncio.get_running_loop()
        deadline, problem = loop.time() + wait, ""
        look = partial(requests.await_answer, self._arbiter, pipeline, signal, 0.0)
        while loop.time() < deadline and not self._leaving:
            try:
                signal = await self._calls.run(look)
                problem = ""
            except Unreachable as error:
                problem = f"; {error}"
            if signal.state is SignalState.DONE:
                return _outcome(Sent(pipeline, signal), OK, "done", signal.answer)
            if signal.state is SignalState.REFUSED:
                return _outcome(Sent(pipeline, signal), REFUSED, "refused", signal.answer)
            await asyncio.sleep(_POLL_SECONDS)
        text = "this node is leaving" if self._leaving else "it is recorded and under way"
        return _outcome(
            sent, ACCEPTED, "pending", f"{text}{problem}; GET /cluster shows it until then"
        )

    def _stored_signal(
        self, request: Request, what: str, on: str, call: Callable[[], _Result]
    ) -> Callable[[], _Result]:
        """A call that is kept in the log of actions, see `recorded`."""
        requester = self._requester(request)

        def act() -> _Result:
            with recorded(self._arbiter, requester, what, on, self._clock.now) as entry:
                result = call()
                if isinstance(result, Sent):
                    entry.outcome = f"asked for: {result.signal.leader or 'nobody'} → " + (
                        result.signal.to or "whoever is next"
                    )
                elif isinstance(result, Reply) and "error" in result.body:
                    entry.outcome = f"{NOT_DONE}{result.body['error']}"
                return result

        return act

    def _requester(self, request: Request) -> Requester:
        return Requester(by=f"{client_of(request)} over HTTP at {self._nid}", now=self._clock.now())


async def _body_of(request: Request, model: type[_Body]) -> _Body:
    """The body of a request, within limits of size and time."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_LIMIT:
                    raise _Unusable(TOO_LARGE, f"the body is larger than {BODY_LIMIT} bytes")
    except TimeoutError:
        raise _Unusable(TIMEOUT, f"the body did not arrive within {BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise _Unusable(BAD_REQUEST, "the client went away") from None
    return _parsed(model, bytes(body))


def _parsed(model: type[_Body], body: bytes | dict[str, Any]) -> _Body:
    try:
        if isinstance(body, bytes):
            return model.model_validate_json(body)
        return model.model_validate(body)
    except ValidationError as error:
        # Without the values: somebody may have put a secret where it does not belong.
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        texts = [": ".join((*map(str, fault["loc"]), fault["msg"])) for fault in faults[:10]]
        raise _Unusable(BAD_REQUEST, "; ".join(texts)) from None


def _wait(request: Request) -> float:
    wait = seconds("wait", request.query_params.get("wait"), most=LONGEST_WAIT)
    if isinstance(wait, Reply):
        raise _Unusable(wait.code, wait.body["error"])
    return WAIT_SECONDS if wait is None else wait


def _outcome(sent: Sent, code: int, outcome: str, answer: str) -> Reply:
    signal: Signal = sent.signal
    body: dict[str, Any] = {
        "outcome": outcome,
        "answer": answer,
        "pipeline": str(sent.pipeline),
        "request": signal.kind.value,
        "id": signal.id,
        "from": signal.leader,
        "to": signal.to,
        "at": signal.at or signal.sent,
    }
    return Reply(code, body)


def _troubled(error: ArbiterError) -> Reply:
    text = str(error)
    if isinstance(error, Refused):
        return Reply(REFUSED, {"outcome": "refused", "error": text})
    if isinstance(error, Unreachable):
        text += "; whether anything was recorded is not known, GET /cluster shows it"
        return Reply(SERVICE_UNAVAILABLE, {"error": text})
    codes = ((NotFound, NOT_FOUND), (Conflict, CONFLICT), (Invalid, BAD_REQUEST))
    code = next((code for kind, code in codes if isinstance(error, kind)), DEFECT)
    return Reply(code, {"error": text})


def _response(reply: Reply) -> Response:
    headers: dict[str, str] = {}
    if reply.code == UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="setl"'
    if reply.code in {TOO_MANY, SERVICE_UNAVAILABLE}:
        headers["Retry-After"] = str(reply.retry_after)
    return JSONResponse(reply.body, status_code=reply.code, headers=headers)
