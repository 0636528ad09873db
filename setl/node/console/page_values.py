"""What the pages of the console are made from: values for each kind of page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.values import HistoryItem, OperatorAction, PipelineId
from setl.alarms.rules import RULES
from setl.clock import Clock
from setl.error_text import public
from setl.node.cluster.view import ClusterView
from setl.node.console.actions.jobs import Job, Jobs
from setl.node.console.actions.rebalancing import CLUSTER
from setl.node.console.actions.silencing import ALARMS, SilenceRow, silence_rows
from setl.node.console.open_loads import LoadRow, load_rows
from setl.node.console.pages.node import node_page
from setl.node.console.pages.overview import channel_page, overview_of
from setl.node.console.pages.pipeline import pipeline_page
from setl.node.console.serving.authentication import Session
from setl.node.console.under_way import without_put_back, work_elsewhere
from setl.node.console.watching import CachedLooks, ClusterWatch
from setl.operate.cutover.inspection import OpenCutover, open_cutovers

_Cutovers = Mapping[PipelineId, OpenCutover]

_CACHE_SECONDS = 3.0
MOST_ACTIONS = 200


@dataclass(frozen=True, slots=True)
class ActionsPage:
    """The page of what operators did: newest first."""

    actions: Sequence[OperatorAction]


@dataclass(frozen=True, slots=True)
class Address:
    """Which page is meant.

    Attributes:
        kind: ``overview``, ``channel``, ``pipeline``, ``node`` or ``actions``.
        channel: its channel, "" for none.
        pipeline: its pipeline, "" for none.
        node: the node, "" for none.
    """

    kind: str
    channel: str = ""
    pipeline: str = ""
    node: str = ""

    @property
    def ident(self) -> PipelineId:
        """The pipeline."""
        return PipelineId(self.channel, self.pipeline)


def address_of(path: str) -> Address | None:
    """The page at a path; None if none is there that is kept up to date."""
    parts = [part for part in path.split("/") if part]
    if not parts:
        return Address("overview")
    if parts == ["console", "actions"]:
        return Address("actions")
    if len(parts) == 3 and parts[:2] == ["console", "channels"]:
        return Address("channel", parts[2])
    if len(parts) == 3 and parts[:2] == ["console", "nodes"]:
        return Address("node", node=parts[2])
    if len(parts) == 4 and parts[:2] == ["console", "pipelines"]:
        return Address("pipeline", parts[2], parts[3])
    return None


class PageValues:
    """Gathers what a page needs; every call may block for a second or two."""

    def __init__(
        self,
        nid: str,
        watch: ClusterWatch,
        open_watch: ClusterWatch,
        arbiter: Arbiter,
        clock: Clock,
        *,
        jobs: Jobs,
        contact: Callable[[], str],
        environment: Mapping[str, str],
    ) -> None:
        """Nothing is looked at yet.

        Args:
            nid: the node.
            watch: the cluster.
            open_watch: the same as anybody may read it.
            arbiter: for histories and the log of actions.
            clock: for the age of what is known.
            jobs: long work that was begun from here.
            contact: how well the arbiter is reached: ``connected``, or what else and why.
            environment: of the node, for addresses of sites.
        """
        self._nid = nid
        self._watch = watch
        self._open_watch = open_watch
        self._arbiter = arbiter
        self._jobs = jobs
        self._contact = contact
        self._environment = environment
        self._histories: CachedLooks[Sequence[HistoryItem]] = CachedLooks(clock, _CACHE_SECONDS, ())
        self._silences: CachedLooks[Sequence[SilenceRow]] = CachedLooks(clock, _CACHE_SECONDS, ())
        self._cutovers: CachedLooks[_Cutovers] = CachedLooks(clock, _CACHE_SECONDS, {})
        self._loads: CachedLooks[Sequence[LoadRow]] = CachedLooks(clock, _CACHE_SECONDS, ())
        self._clock = clock
        self._actions: CachedLooks[Sequence[OperatorAction]] = CachedLooks(
            clock, _CACHE_SECONDS, ()
        )

    def view(self) -> ClusterView:
        """The cluster as of a moment ago."""
        return self._watch.view()

    @property
    def looked(self) -> bool:
        """Whether the node has looked at the cluster since it started."""
        return self._watch.looked

    def forget(self) -> None:
        """Something was changed: look again."""
        self._histories.forget()
        self._actions.forget()
        self._silences.forget()
        self._cutovers.forget()
        self._loads.forget()

    def values(self, address: Address, session: Session | None) -> dict[str, Any] | None:
        """What the templates of a page are given; None if there is no such page.

        Args:
            address: which page.
            session: of whoever looks, None for a stranger.
        """
        view = self.view() if session else self._open_watch.view()
        contact, cutovers = self._contact(), self.cutovers(view)
        # Addresses of sites may be secrets that somebody keeps in the node's environment.
        environment = self._environment if session else None
        if session is None:
            contact = public(contact)
            cutovers = {
                of: replace(each, words=public(each.words)) for of, each in cutovers.items()
            }
        page: object | None = None
        others: list[str] = []
        jobs: Sequence[Job] = ()
        loads: Sequence[LoadRow] = ()
        cutover = ""
        if address.kind == "overview":
            page = overview_of(
                view,
                here=self._nid,
                contact=contact,
                looked=self.looked,
                cutovers=cutovers,
                environment=environment,
            )
            jobs = self._work(CLUSTER) if session else ()
        elif address.kind == "channel" and address.channel in view.facts.channels:
            page = channel_page(view, address.channel, environment, contact=contact)
            jobs = self._work(address.channel) if session else ()
        elif address.kind == "pipeline" and any(p.ident == address.ident for p in view.pipelines):
            ident = address.ident
            page = pipeline_page(view, ident, self.history(ident), environment, contact=contact)
            begun = cutovers.get(ident)
            cutover = begun.words if begun else ""
            loads = self.loads(ident) if session else ()
            others = [standby.node for standby in view.pipeline(ident).standbys]
            jobs = self._work(str(ident)) if session else ()
        elif address.kind == "node" and address.node in view.facts.nodes:
            page = node_page(view, address.node, self._nid, contact=contact)
        elif address.kind == "actions":
            # Who did what, and the conditions of loads, are no business of strangers.
            actions = self._log() if session else ()
            page = ActionsPage(tuple(reversed(actions[-MOST_ACTIONS:])))
        if page is None:
            return None
        others_at = [(n.nid, n.http) for n in view.facts.nodes.values() if n.nid != self._nid]
        return {
            "page": page,
            "elsewhere": [(nid, http) for nid, http in others_at if http.startswith("http")],
            "session": session,
            "others": others,
            "jobs": jobs,
            "cutover": cutover,
            "loads": loads,
            "silences": self.silences() if session and address.kind == "overview" else (),
            "everything": ALARMS,
            "cluster": CLUSTER,
            "rules": RULES,
        }

    def _log(self) -> Sequence[OperatorAction]:
        return self._actions.get("", self._arbiter.actions.all)

    def _work(self, on: str) -> Sequence[Job]:
        """Long work on something, from wherever it was begun; this node's own last."""
        # First: of work that has ended by then, a log that is read later knows the end, too.
        own = self._jobs.of(on)
        log, session, now = self._log(), self._arbiter.session.session_id(), self._clock.now()
        return [*work_elsewhere(log, on, own, session, now), *without_put_back(log, own)]

    def cutovers(self, view: ClusterView) -> _Cutovers:
        """The cut-overs of all pipelines that have one."""
        idents = [pipeline.ident for pipeline in view.pipelines]
        return self._cutovers.get("", lambda: open_cutovers(self._arbiter, idents))

    def loads(self, ident: PipelineId) -> Sequence[LoadRow]:
        """The loads of a pipeline that wait or are under way."""
        return self._loads.get(ident, lambda: load_rows(self._arbiter, ident))

    def silences(self) -> Sequence[SilenceRow]:
        """The silences of alarms that have not ended."""
        return self._silences.get("", lambda: silence_rows(self._arbiter, self._clock.now()))

    def history(self, ident: PipelineId) -> Sequence[HistoryItem]:
        """Past leaderships of a pipeline."""
        return self._histories.get(ident, lambda: self._arbiter.history.all(ident))
