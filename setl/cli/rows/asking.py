"""Has a leader load rows, and waits for what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Unreachable
from arbiter.requests import Refused, ask_leader
from arbiter.values import ChannelState, Facts, PipelineId, SignalKind
from setl.cli.access.cluster import AnswerNo, requester
from setl.cli.terminal.output import to_stderr
from setl.model.load_request import LoadRequest
from setl.node.cluster.answers import node_report, node_status
from setl.node.cluster.pipeline_texts import load_sentence
from setl.run.table_loads.requests import StoredLoadRequests
from setl.waiting import polling

POLL_SECONDS = 0.5
_ITS_TURN = "waits for its turn"


def wait_for_end(
    arbiter: Arbiter,
    ident: PipelineId,
    requests: Sequence[LoadRequest],
    show: Callable[[str], None],
    timeout: float | None = None,
) -> list[LoadRequest]:
    """Ask for loads, one after another, and wait for each; returns them as they have ended.

    Args:
        arbiter: the cluster.
        ident: the pipeline.
        requests: what to ask for.
        show: is told how far it is, as the rest of a sentence about the pipeline.
        timeout: seconds to wait for all of them, None indefinitely.

    Raises:
        AnswerNo: it takes longer; what was asked for goes on.
    """
    stored = StoredLoadRequests(arbiter, ident)
    began = time.monotonic()
    ended: list[LoadRequest] = []
    for request in requests:
        made = stored.add(request)
        notify_leader(arbiter, ident)
        left = None if timeout is None else began + timeout - time.monotonic()
        ended.append(_await(arbiter, ident, made, left, show))
    return ended


def _await(
    arbiter: Arbiter,
    ident: PipelineId,
    request: LoadRequest,
    limit: float | None,
    show: Callable[[str], None],
) -> LoadRequest:
    """Wait until a request has ended, and show how far it is."""
    stored = StoredLoadRequests(arbiter, ident)
    said = ""
    for left in polling(limit, POLL_SECONDS):
        now = next((r for r in stored.all() if r.id == request.id), None)
        if now is None:
            raise AnswerNo(f"the request {request.id} of {ident} is gone")
        if now.ended:
            return now
        if not left:
            break
        status = leader_status(arbiter.facts(), ident)
        mine = status.get("id") == request.id
        words = load_sentence(status) if mine else waiting_words(arbiter, ident)
        show(words)
        if not mine and words not in {_ITS_TURN, said}:
            # It may wait for ever, and who reads no terminal is shown nothing else.
            said = words
            to_stderr(f"{ident} {words}")
    raise AnswerNo(f"load {short_id(request.id)} of {ident} is not done in time; it goes on")


def waiting_words(arbiter: Arbiter, ident: PipelineId) -> str:
    """Why a request that nobody carries out is not carried out now."""
    facts = arbiter.facts()
    channel = facts.channels.get(ident.channel)
    if channel is None or channel.state is not ChannelState.START:
        return f"waits until the channel {ident.channel} runs"
    figures = _figures(facts, ident)
    if figures.get("state") == "failed":
        start = f"once it is fixed, `setl start {ident.channel}`"
        return f"waits, since the pipeline has failed; {start}: {figures.get('error') or 'unknown'}"
    return _ITS_TURN if ident in facts.leader_locks else "waits for a leader"


def sent_words(arbiter: Arbiter, ident: PipelineId) -> str:
    """The end of a sentence about a request that is not waited for; "" if there is a leader."""
    words = waiting_words(arbiter, ident)
    return "" if words == _ITS_TURN else f"; it {words}"


def notify_leader(arbiter: Arbiter, ident: PipelineId) -> None:
    """Have the leader look at once; without one the next leader looks automatically."""
    try:
        ask_leader(arbiter, ident, SignalKind.LOADS, requester())
    except Refused:
        return
    except Unreachable:
        raise
    except ArbiterError as error:
        raise AnswerNo(
            f"the request is stored, but the leader was not notified: {error}"
        ) from error


def leader_status(facts: Facts, ident: PipelineId) -> dict[str, Any]:
    """What the leader tells of its load; empty if it tells nothing."""
    return _figures(facts, ident).get("table_load") or {}


def _figures(facts: Facts, ident: PipelineId) -> dict[str, Any]:
    """The leader's figures; empty without a leader that answers."""
    leader_lock = facts.leader_locks.get(ident)
    node = facts.nodes.get(leader_lock.nid) if leader_lock else None
    if node is None:
        return {}
    return node_report(node_status(node), ident).get("figures") or {}


def short_id(ident: str) -> str:
    """The number at the end of an id: ``load-0000000012`` is 12."""
    digits = ident.rpartition("-")[2]
    return str(int(digits)) if digits.isdigit() else ident
