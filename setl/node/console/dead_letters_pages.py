"""The page of dead letters. They hold rows, so that strangers do not see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from arbiter.snapshot import Snapshot
from arbiter.values import PipelineId
from setl.node.console.actions.dead_letters import dead_letters_page
from setl.node.console.links import pipeline_link
from setl.node.console.serving.answers import Answers, Endpoint
from setl.node.console.serving.authentication import Authenticator, HttpError
from setl.node.console.serving.daemon_calls import DaemonCalls
from setl.node.stored import pipelines_of

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
