"""The thread of a node that decides about alarms and sends them, if this node is the one."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from arbiter import requests
from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Contact
from arbiter.requests import Requester
from arbiter.snapshot import Snapshot
from arbiter.values import AlarmSender as Sender
from arbiter.values import Channel, PipelineId, SignalKind
from setl.alarms.alarm_state import AlarmState, Event, Notice, cut
from setl.alarms.asking import retried_on_conflict, silences_at
from setl.alarms.deciding import decide, firing
from setl.alarms.facts import NodeFacts, PipelineFacts
from setl.alarms.judgement import AlarmKey, Judgement
from setl.alarms.receivers import receivers_of
from setl.alarms.restarting import DueRestart, due_restarts, within_an_hour
from setl.alarms.rules import (
    judge_certificate,
    judge_channels,
    judge_node,
    judge_pipeline,
    judge_zookeeper,
    not_known,
)
from setl.alarms.sending import Sending
from setl.alarms.settings import AlarmSettings
from setl.alarms.stored_rules import rules_of
from setl.alarms.survey import Survey
from setl.channel.fields.alarms import Alarms
from setl.clock import Clock
from setl.log import fields
from setl.node.alarm_status import AlarmStatus, firing_alarm
from setl.node.cluster.answers import ask_nodes
from setl.node.cluster.view import ClusterView, PipelineView, public_facts, view_of
from setl.node.ensemble import all_known, needed_in, servers_in
from setl.node.public_form import public_status
from setl.node.status import NodeStatus, as_json
from setl.operate.action_log import recorded
from setl.run.measured.figures import RunState

_log = logging.getLogger(__name__)

_STOP_SECONDS = 2.0


class AlarmSender:
    """Looks every few seconds, from a thread of its own, and holds nothing else up.

    One node of the cluster decides, whoever holds the arbiter's place for it. What is raised and
    every message are kept by compare-and-set before anything is sent, and a message is forgotten
    after it was delivered. So another node goes on where this one stopped: it forgets nothing, and
    sends again at most what this one had sent and not yet kept as delivered.
    """

    def __init__(
        self,
        nid: str,
        arbiter: Arbiter,
        settings: AlarmSettings,
        clock: Clock,
        *,
        own: Callable[[], NodeStatus],
        snapshot: Callable[[], Snapshot | None],
        environment: Mapping[str, str],
    ) -> None:
        """Nothing is looked at before `start`.

        Args:
            nid: this node.
            arbiter: its session.
            settings: receivers, and how often to look.
            clock: for all times.
            own: what this node says of itself, which need not be asked for over HTTP.
            snapshot: the node's last look at the cluster, None before the first.
            environment: where channels' references get their values from.
        """
        self._nid = nid
        self._arbiter = arbiter
        self._settings = settings
        self._clock = clock
        self._own = own
        self._snapshot = snapshot
        self._environment = environment
        self._sending = Sending(receivers_of(settings, nid), clock)
        self._survey = Survey(arbiter, environment, clock, settings.survey_every)
        self._status = AlarmStatus(receivers=self._sending.names)
        self._rules: dict[tuple[str, str], tuple[Channel, tuple[Alarms, float | None]]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="alarms", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; waits a moment for a message that is being sent."""
        self._stopping.set()
        self._survey.stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def status(self) -> AlarmStatus:
        """What this node knows of alarms; from any thread."""
        return replace(
            self._status,
            failing=self._sending.failing(),
            failures=self._sending.failures(),
            dropped=self._sending.dropped,
        )

    def look(self) -> None:
        """One look, if this node is the one that decides."""
        snapshot = self._snapshot()
        if snapshot is None or snapshot.contact is not Contact.CONNECTED:
            self._rest()
            return
        me = self._arbiter.alarms.take(Sender(self._nid, self._sending.names))
        if me.session != self._arbiter.session.session_id():
            self._rest()
            return
        if not self._status.sends:
            _log.info("this node sends alarms", extra=fields(nid=self._nid))
        stored = self._arbiter.alarms.read()
        alarm_state, revision = (
            AlarmState.from_json(stored[0] if stored else {}),
            stored and stored[1],
        )
        view = self._view(snapshot)
        now = self._clock.now()
        silences = silences_at(self._arbiter, now)
        facts = list(self._facts(view))
        judged = [*self._judged(facts, now), *self._of_nodes(view, now)]
        unknown = {key for each in facts for key in not_known(each)}
        if not all_known(view.answers.values()):
            unknown.add(AlarmKey("certificate"))
        alarms, events = decide(judged, alarm_state.alarms, silences, now, unknown)
        restarts = within_an_hour(alarm_state.restarts, now)
        due = list(due_restarts(facts, alarms, restarts, now))
        for each in due:
            name = f"{each.channel}/{each.pipeline}"
            restarts[name] = (*restarts.get(name, ()), now)
        notices = (*alarm_state.notices, *self._notice((*events, *map(_restarted, due)), now))
        after = AlarmState(alarms, self._sending.bounded(notices, now), restarts)
        revision = self._store(alarm_state, after, revision)
        _log_events(events)
        self._status = AlarmStatus(
            sends=True,
            receivers=self._sending.names,
            firing=tuple(
                firing_alarm(alarm, silenced=any(s.covers(alarm.key, now) for s in silences))
                for alarm in firing(alarms, judged)
            ),
        )
        for each in due:
            self._restart(each, now)
        left = self._sending.deliver(after.notices)
        try:
            self._store(after, replace(after, notices=left), revision)
        except Conflict:
            self._forget_delivered(after.notices, left)

    def _forget_delivered(self, sent: Sequence[Notice], left: Sequence[Notice]) -> None:
        """Forget what was delivered although somebody, who asks for a test, has kept something."""
        now = {notice.id: None for notice in sent} | {notice.id: notice for notice in left}

        def forget() -> None:
            stored = self._arbiter.alarms.read()
            if stored is None:
                return
            alarm_state = AlarmState.from_json(stored[0])
            notices = [now.get(notice.id, notice) for notice in alarm_state.notices]
            others = tuple(notice for notice in notices if notice is not None)
            self._store(alarm_state, replace(alarm_state, notices=others), stored[1])

        retried_on_conflict(forget)

    def _store(self, before: AlarmState, after: AlarmState, revision: int | None) -> int | None:
        if after == before:
            return revision
        return self._arbiter.alarms.store(after.to_json(), revision)

    def _rest(self, problem: str = "") -> None:
        self._status = AlarmStatus(receivers=self._sending.names, problem=problem)

    def _view(self, snapshot: Snapshot) -> ClusterView:
        """The cluster as anybody may read it: alarms go out by mail, and stand on open pages."""
        facts = public_facts(snapshot.facts)
        others = (node for nid, node in facts.nodes.items() if nid != self._nid)
        answers = ask_nodes(others, whole=False)
        if self._nid in facts.nodes:
            answers[self._nid] = as_json(public_status(self._own()))
        return view_of(facts, answers, self._clock.now())

    def _facts(self, view: ClusterView) -> Iterable[PipelineFacts]:
        channels = view.facts.channels
        self._survey.look(
            [
                (channels[p.ident.channel], p.ident.pipeline, p.state == RunState.RUNNING.value)
                for p in view.pipelines
            ]
        )
        present = {(p.ident.channel, p.ident.pipeline) for p in view.pipelines}
        self._rules = {of: known for of, known in self._rules.items() if of in present}
        for pipeline in view.pipelines:
            ident = pipeline.ident
            rules, verify_every = self._rules_of(view, pipeline)
            known = self._survey.known(ident.channel, ident.pipeline)
            yield PipelineFacts(
                ident.channel,
                ident.pipeline,
                pipeline.channel_state.value,
                leader=pipeline.leader,
                figures=pipeline.figures or None,
                missing=pipeline.missing,
                standbys=sum(bool(standby.rank) for standby in pipeline.standbys),
                rules=rules,
                verify_every=verify_every,
                retention=known.retention,
                expirations=known.expirations,
                disks=known.disks,
                cutover=known.cutover,
                unreachable=known.unreachable,
            )

    def _rules_of(self, view: ClusterView, pipeline: PipelineView) -> tuple[Alarms, float | None]:
        """The rules of a pipeline; they are read again when its channel has changed."""
        channel = view.facts.channels[pipeline.ident.channel]
        of = (channel.name, pipeline.ident.pipeline)
        known = self._rules.get(of)
        # Not the revision alone: a channel that was removed and stored again begins at 0 again.
        if known is None or known[0] != channel:
            found = rules_of(channel.definition, of[1], self._environment)
            known = self._rules[of] = (channel, found)
        return known[1]

    def _judged(self, facts: Iterable[PipelineFacts], now: float) -> Iterable[Judgement]:
        for each in facts:
            yield from judge_pipeline(each, now)

    def _of_nodes(self, view: ClusterView, now: float) -> Iterable[Judgement]:
        entry = (str((answer or {}).get("lost_channels") or "") for answer in view.answers.values())
        yield judge_channels(next(filter(None, entry), ""))
        yield from map(judge_zookeeper, servers_in(view.answers))
        yield from (judge_certificate(each, now) for each in needed_in(view.answers))
        if not self._settings.least_disk_free:
            return
        for nid, answer in view.answers.items():
            disk: Mapping[str, Any] = (answer or {}).get("disk") or {}
            size = disk.get("size") or 0
            free = (disk.get("free") or 0) / size if size else None
            facts = NodeFacts(nid, str(disk.get("folder") or ""), free)
            yield judge_node(facts, self._settings.least_disk_free)

    def _notice(self, events: tuple[Event, ...], now: float) -> tuple[Notice, ...]:
        if not events or not self._sending.names:
            return ()
        return (Notice(uuid.uuid4().hex, now, events),)

    def _restart(self, due: DueRestart, now: float) -> None:
        """Ask the leader to restart. It was counted before, so that no crash makes it more."""
        ident = PipelineId(due.channel, due.pipeline)
        who = Requester(f"alarms of {self._nid}", now)
        try:
            with recorded(self._arbiter, who, "restart", str(ident), self._clock.now) as entry:
                requests.ask_leader(self._arbiter, ident, SignalKind.RESTART, who)
                entry.outcome = f"asked for; {due.number} of {due.limit} within an hour"
        except ArbiterError as error:
            _log.warning(
                "a stopped pipeline was not started again",
                extra=fields(channel=due.channel, pipeline=due.pipeline, error=str(error)),
            )

    def _work(self) -> None:
        while not self._stopping.wait(self._settings.every):
            try:
                self.look()
            except Conflict:
                continue  # another node sends now, or somebody asks for a test: look again
            except ArbiterError as error:
                self._rest(str(error))
                _log.debug("no look at alarms", extra=fields(error=str(error)))
            except Exception as error:  # noqa: BLE001 - a defect; tried again
                self._rest(f"unexpected {type(error).__name__}: {error}")
                _log.exception("a look at alarms failed unexpectedly")


def _restarted(due: DueRestart) -> Event:
    key = AlarmKey("stopped", due.channel, due.pipeline)
    text = f"is started again after its error, {due.number} of {due.limit} within an hour"
    return Event("restarted", key, "warning", cut(f"{text}: {due.error}"), "", 0.0)


def _log_events(events: Iterable[Event]) -> None:
    for event in events:
        level = logging.INFO if event.kind == "recovered" else logging.WARNING
        _log.log(
            level,
            "alarm is over" if event.kind == "recovered" else "alarm",
            extra=fields(
                event=event.kind,
                rule=event.key.rule,
                channel=event.key.channel,
                pipeline=event.key.pipeline,
                subject=event.key.subject,
                text=event.text,
            ),
        )
