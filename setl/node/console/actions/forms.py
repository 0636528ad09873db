"""Carries out what forms ask for, keeps it in the log of actions, and tells who asked."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Unreachable
from arbiter.requests import Requester
from arbiter.values import OperatorAction
from setl.clock import Clock
from setl.errors import SetlError
from setl.log import fields
from setl.node.cluster.view import ClusterView
from setl.node.console.actions.catalogue import ACTIONS, About, Action
from setl.node.console.actions.context import ActionContext, Preview, pipeline_of
from setl.node.console.actions.jobs import Job, Jobs
from setl.node.console.actions.long_work import LONG_WORK
from setl.node.console.actions.rebalancing import CLUSTER
from setl.node.console.links import channel_link, letters_link, pipeline_link
from setl.node.console.serving.authentication import HttpError, Session
from setl.node.console.serving.daemon_calls import DaemonCalls
from setl.operate.action_log import recorded

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 8
PATIENCE = 4.0
"""Seconds for which a page waits for what was asked; then it continues automatically."""
LOOK_SECONDS = 30.0
"""Seconds that a look at servers may take before a question."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a form asks for.

    Attributes:
        what: the name of the action.
        action: the action.
        on: the channel or the pipeline.
    """

    what: str
    action: Action
    on: str

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Asked:
        """Read a form. Raises Unwanted if nothing of this name can be done."""
        what = form.get("what", "")
        long_work = LONG_WORK.get(what)
        action = ACTIONS.get(what) if long_work is None else long_work.action
        if action is None:
            raise HttpError(400, "Unknown", "Nothing of this name can be done here.")
        return cls(what, action, form.get("on", ""))

    def known(self, view: ClusterView) -> bool:
        """Whether there is what it is to be done on."""
        if self.action.about is About.ALARMS:
            return True  # it may be a silence, which the action itself looks for
        if self.action.about is About.CLUSTER:
            return self.on == CLUSTER
        if self.action.about is About.CHANNEL:
            return self.on in view.facts.channels
        return any(str(pipeline.ident) == self.on for pipeline in view.pipelines)

    @property
    def page(self) -> str:
        """The page of what it is about."""
        about = self.action.about
        if about in (About.ALARMS, About.CLUSTER):
            return "/"
        if about is About.CHANNEL:
            return channel_link(self.on)
        ident = pipeline_of(self.on)
        return letters_link(ident) if about is About.LETTERS else pipeline_link(ident)

    @property
    def onward(self) -> str:
        """The page that shows what comes of it."""
        return "/" if self.action.ends else self.page

    def sure(self, form: Mapping[str, str]) -> bool:
        """Whether whoever asks was asked back and has confirmed it."""
        if self.action.typed and form.get("typed", "").strip() != self.on:
            return False
        return form.get("sure") == "yes"


class Acting:
    """Does what is asked in threads of its own; none of them keeps the node from ending."""

    def __init__(
        self,
        nid: str,
        arbiter: Arbiter,
        clock: Clock,
        environment: Mapping[str, str],
        jobs: Jobs,
    ) -> None:
        """Nothing is done yet.

        Args:
            nid: this node.
            arbiter: its session.
            clock: for the log of actions.
            environment: where references of channel files get their values from.
            jobs: does what takes long.
        """
        self._nid = nid
        self._arbiter = arbiter
        self._clock = clock
        self._environment = environment
        self._jobs = jobs
        self._leaving = threading.Event()
        self._looks = DaemonCalls("console-look", threads=2, limit=LOOK_SECONDS)
        self._under_way = 0

    def stop(self) -> None:
        """Begin nothing any more, and wait for no answers; returns at once."""
        self._leaving.set()
        self._looks.stop()

    def _pause(self, seconds: float) -> None:
        """Between two looks at what comes of something; raises Unreachable if the node leaves."""
        if self._leaving.wait(seconds):
            raise Unreachable("the node is leaving; what was asked stands")

    def _context(self, session: Session) -> ActionContext:
        return ActionContext(
            self._arbiter,
            Requester(f"{session.who}, console of {self._nid}", self._clock.now()),
            self._environment,
            self._pause,
            self._nid,
        )

    async def look(
        self,
        session: Session,
        asked: Asked,
        look: Callable[[ActionContext, str, Mapping[str, str]], Preview],
        form: Mapping[str, str],
    ) -> Preview | None:
        """What has to be known before it is done.

        None if it cannot be, and the session is reported.
        """
        context = self._context(session)
        try:
            return await self._looks.run(lambda: look(context, asked.on, form))
        except (ArbiterError, SetlError) as error:
            session.note("error", self._what_came(error, begun=False))
            return None

    async def do(self, session: Session, asked: Asked, form: Mapping[str, str]) -> None:
        """Do it, or at least begin; the session is told what came of it.

        Raises:
            HttpError: too much is under way.
        """
        if self._under_way >= MOST_AT_ONCE:
            raise HttpError(429, "Too many", f"{MOST_AT_ONCE} actions are under way already.")
        context = self._context(session)
        if self._leaving.is_set():
            raise HttpError(503, "Leaving", "This node is leaving.")
        self._under_way += 1
        work = self._working_long if asked.what in LONG_WORK else self._acting
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def run() -> None:
            try:
                work(session, asked, context, form)
            finally:
                with suppress(RuntimeError):  # the node has left
                    loop.call_soon_threadsafe(self._ended, done)

        threading.Thread(target=run, name="console-act", daemon=True).start()
        await _patiently(done, session, asked)

    def _ended(self, done: asyncio.Event) -> None:
        self._under_way -= 1
        done.set()

    def _acting(
        self, session: Session, asked: Asked, context: ActionContext, form: Mapping[str, str]
    ) -> None:
        begun = False
        try:
            with recorded(
                self._arbiter, context.requester, asked.what, asked.on, self._clock.now
            ) as entry:
                begun = True
                entry.outcome = asked.action.act(context, asked.on, form)
        except (ArbiterError, SetlError) as error:
            session.note("error", self._what_came(error, begun=begun))
            return
        except Exception as error:  # noqa: BLE001 - a defect; whoever asked has to know
            _log.exception("action failed unexpectedly", extra=fields(what=asked.what, on=asked.on))
            session.note("error", f"unexpected {type(error).__name__}; the node's log says more")
            return
        session.note("done", entry.outcome)

    def _what_came(self, error: ArbiterError | SetlError, *, begun: bool) -> str:
        """An error, and what it leaves undone if that cannot be seen from it."""
        if not isinstance(error, Unreachable) or self._leaving.is_set():
            return str(error)
        if not begun:
            return f"Nothing was done: no answer of ZooKeeper ({error}). Try again once it answers"
        return (
            f"No answer of ZooKeeper ({error}), so nobody knows whether it was done. Look again"
            " once it answers"
        )

    def _working_long(
        self, session: Session, asked: Asked, context: ActionContext, form: Mapping[str, str]
    ) -> None:
        """Begin what ends long after the page was shown."""
        del form  # there is nothing to choose
        if self._jobs.waiting >= MOST_AT_ONCE:
            session.note("error", f"{MOST_AT_ONCE} pieces of long work wait already")
            return
        entry = OperatorAction(context.requester.by, asked.what, asked.on, context.requester.now)
        try:
            entry = self._arbiter.actions.add(entry)
        except ArbiterError as error:
            session.note("error", f"nothing was begun: {error}")
            return

        def ended(job: Job) -> None:
            outcome = f"{job.state}: {job.error or job.words}"
            with suppress(ArbiterError):
                self._arbiter.actions.end(entry, outcome, self._clock.now())

        arguments = LONG_WORK[asked.what].arguments(asked.on)
        self._jobs.begin(asked.on, asked.action.verb, arguments, ended)
        session.note("done", f"{asked.action.verb} has begun; this page shows how it ends")


async def _patiently(done: asyncio.Event, session: Session, asked: Asked) -> None:
    """Wait for a moment; what takes longer is told by the log of actions."""
    try:
        await asyncio.wait_for(done.wait(), PATIENCE)
    except TimeoutError:
        session.note(
            "note", f"{asked.what} of {asked.on} is under way; Actions shows what comes of it"
        )
