"""The rules: what is wrong with a pipeline or a node. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from setl.alarms.judgement import CRITICAL_PART, AlarmKey, Judgement, Severity, seconds_before
from setl.error_text import public
from setl.operate.units import DIFFERENCES, ECHOES, count, duration, size
from setl.systems.expiry import ServerDisk

if TYPE_CHECKING:
    from setl.alarms.facts import NodeFacts, PipelineFacts
    from setl.alarms.zookeeper_facts import CertificateFacts, ZooKeeperFacts
    from setl.channel.fields.alarms import AlarmRule, Alarms

RULES = (
    "lag", "stopped", "no_leader", "no_answer", "no_progress", "no_standby", "dead_letters",
    "echoes", "verification_differences", "verification_age", "position", "position_lost",
    "certificate", "password", "target_disk", "disk", "cutover", "channels_lost",
    "zookeeper_server",
)  # fmt: skip
"""Names of all rules, as `--rule`, messages and metrics have them."""


_FREE_PERCENT = 10.0
"""Percent of a target's disk that must be free, if neither the file nor the server says it."""


def judge_pipeline(facts: PipelineFacts, now: float) -> Iterator[Judgement]:
    """What all rules that count say of one pipeline.

    Args:
        facts: what is known of it.
        now: seconds since 1970 UTC.
    """
    made = _Judging(facts)
    yield from _of_leadership(made)
    yield from _of_figures(made)
    yield from _of_verification(made)
    yield from _of_position(made)
    yield from _of_expirations(made, now)
    yield from _of_disks(made)
    yield from _of_cutover(made)


def not_known(facts: PipelineFacts) -> Iterator[AlarmKey]:
    """What nobody can judge now, since a server did not answer or was not asked yet.

    Such alarms have a subject that only the server's answer would name, so that no judgement is
    made of them; these keys have none.
    """
    unasked = facts.expirations is None
    if not (unasked or facts.unreachable):
        return
    if facts.rules.expiry.enabled:
        yield AlarmKey("certificate", facts.channel, facts.pipeline)
        yield AlarmKey("password", facts.channel, facts.pipeline)
    if facts.rules.target_disk.enabled and facts.disks is None:
        yield AlarmKey("target_disk", facts.channel, facts.pipeline)


def judge_node(facts: NodeFacts, least_free: float) -> Judgement:
    """Whether a node's disk is nearly full.

    Args:
        facts: what is known of it.
        least_free: part of the disk that must be free, from 0 to 1.
    """
    free = facts.disk_free
    part = f"{100 * free:.0f} %" if free is not None else ""
    return Judgement(
        AlarmKey("disk", subject=f"node {facts.nid}"),
        None if free is None else free < least_free,
        f"only {part} of the disk of {facts.disk} is free",
        "Free space there; Spark writes what does not fit into memory",
        patience=60.0,
    )


def judge_channels(lost: str) -> Judgement:
    """Whether ZooKeeper holds none of the channels that it held.

    Args:
        lost: what a node says of it, "" if none has noticed anything.
    """
    what, _, hint = lost.partition(". ")
    return Judgement(AlarmKey("channels_lost"), bool(lost), what, hint, "critical")


def judge_zookeeper(facts: ZooKeeperFacts) -> Judgement:
    """Whether one server of ZooKeeper is gone while others answer."""
    return Judgement(
        AlarmKey("zookeeper_server", subject=facts.address),
        None if facts.answers is None else not facts.answers,
        facts.sentence,
        facts.hint,
        patience=60.0,
    )


def judge_certificate(facts: CertificateFacts, now: float) -> Judgement:
    """Whether a certificate for ZooKeeper expires soon."""
    return Judgement(
        AlarmKey("certificate", subject=facts.subject),
        facts.expires_soon(now),
        facts.sentence(now),
        facts.hint,
        "critical" if facts.critical(now) else "warning",
    )


class _Judging:
    """Makes judgements about one pipeline."""

    def __init__(self, facts: PipelineFacts) -> None:
        self.facts = facts
        self.rules: Alarms = facts.rules
        self.started = facts.wanted == "START"
        self.figures: Mapping[str, Any] = facts.figures or {}
        # Without an answer nobody knows; without a leader there are no figures to be wrong.
        self.known = facts.figures is not None or not facts.leader

    def made(
        self,
        name: str,
        rule: AlarmRule,
        *,
        holds: bool | None,
        text: str,
        hint: str = "",
        severity: Severity = "warning",
        subject: str = "",
    ) -> Iterator[Judgement]:
        if rule.enabled:
            key = AlarmKey(name, self.facts.channel, self.facts.pipeline, subject)
            yield Judgement(
                key,
                holds,
                text,
                hint,
                severity,
                patience=rule.for_,
                calm=self.rules.recover_after,
                repeat=self.rules.repeat,
            )

    def of_figures(self, holds: object) -> bool | None:
        """What holds by the figures: unknown without an answer, nothing unless it is to run."""
        if not self.started:
            return False
        return bool(holds) if self.known else None


def _of_leadership(made: _Judging) -> Iterator[Judgement]:
    facts, rules = made.facts, made.rules
    led = bool(facts.leader)
    yield from made.made(
        "no_leader",
        rules.no_leader,
        holds=made.started and not led,
        text=facts.missing or "no node leads the pipeline, so that nothing is applied",
        hint=""
        if facts.missing
        else "See `setl topology`: a node must be warm and able to lead it",
        severity="critical",
    )
    yield from made.made(
        "no_answer",
        rules.no_answer,
        holds=made.started and led and facts.figures is None,
        text=f"its leader {facts.leader} does not answer over HTTP, so that nothing is known of it",
        hint="If it applies nothing, `setl failover`",
    )
    yield from made.made(
        "no_standby",
        rules.no_standby,
        holds=made.started and led and not facts.standbys,
        text=f"no node would take over from {facts.leader}",
        hint="Start another node, or switch the rule off where one node is enough",
    )


def _of_figures(made: _Judging) -> Iterator[Judgement]:
    figures, rules = made.figures, made.rules
    error = str(figures.get("error") or "")
    failed = figures.get("state") == "failed"
    yield from made.made(
        "stopped",
        rules.stopped,
        holds=made.of_figures(failed),
        text=f"stopped with an error: {error}",
        hint=f"Once it is fixed, `setl start {made.facts.channel}`",
        severity="critical",
    )
    lag = figures.get("lag") or 0.0
    yield from made.made(
        "lag",
        rules.lag,
        holds=made.of_figures(lag > rules.lag.above),
        text=f"is {duration(lag)} behind",
        hint="See `setl status -v`, which shows where time goes",
    )
    stalled = str(figures.get("stalled") or "")
    tried = int(figures.get("attempts") or 0)
    failed_ones = count(tried, "attempt in a row has", "attempts in a row have")
    why = stalled or f"{failed_ones} failed: {error}"
    yield from made.made(
        "no_progress",
        rules.no_progress,
        holds=made.of_figures(not failed and bool(stalled or tried)),
        text=f"makes no progress: {why}",
        hint="It continues automatically once that is over; `setl status"
        f" {made.facts.channel}` shows its state",
    )
    letters = int(figures.get("dead_letters") or 0)
    yield from made.made(
        "dead_letters",
        rules.dead_letters,
        holds=made.of_figures(letters > rules.dead_letters.above),
        text=f"{count(letters, 'faulty row was', 'faulty rows were')} put aside",
        hint=f"`setl deadletter list {made.facts.channel}/{made.facts.pipeline}`",
    )
    echoes = int(figures.get("echoes_replicated") or 0)
    yield from made.made(
        "echoes",
        rules.echoes,
        holds=made.of_figures(echoes > rules.echoes.above),
        text=f"{count(echoes, *ECHOES)} not dropped",
        hint="See what changes rows of retl.retl_mark at the source",
        severity="critical",
    )


def _of_verification(made: _Judging) -> Iterator[Judgement]:
    if made.facts.verify_every is None:
        return
    rules = made.rules
    verification: Mapping[str, Any] = made.figures.get("verification") or {}
    differences = int(verification.get("differences") or 0)
    yield from made.made(
        "verification_differences",
        rules.verification_differences,
        holds=made.of_figures(differences > rules.verification_differences.above),
        text=count(differences, *DIFFERENCES),
        hint=f"`setl verify {made.facts.channel} --repair`, or wait for a pass that repairs",
        severity="critical",
    )
    age, limit = (
        verification.get("age") or 0.0,
        rules.verification_age.passes * made.facts.verify_every,
    )
    error = str(verification.get("error") or "")
    yield from made.made(
        "verification_age",
        rules.verification_age,
        holds=made.of_figures(age > limit),
        text=f"no whole pass of its verification has ended for {duration(age)}"
        + (f": {error}" if error else ""),
        hint="See `setl verify --last`; raise `rate` if passes take longer than `every`",
    )


def _of_position(made: _Judging) -> Iterator[Judgement]:
    """Whatever the operator wants of the channel: a paused one loses its position most easily."""
    retention, rule = made.facts.retention, made.rules.position
    left = retention.seconds_left(rule.retention) if retention else None
    yield from made.made(
        "position",
        rule,
        holds=None
        if retention is None
        else not retention.lost and left is not None and left < rule.before,
        text=f"position will be purged in {duration(left)}: the source may remove then what was not"
        " applied yet"
        if left
        else "position may be purged at any moment: the source need not keep any longer what was"
        " not applied yet",
        hint="Let the pipeline go on, or have the source keep its stream longer",
        severity="critical",
    )
    yield from made.made(
        "position_lost",
        rule,
        holds=None if retention is None else bool(retention.lost),
        text=f"position is lost: {public(retention.lost) if retention else ''}",
        hint="Move on with `setl position reset`, then load the tables again: `setl status`"
        " says how",
        severity="critical",
    )


def _of_expirations(made: _Judging, now: float) -> Iterator[Judgement]:
    rule = made.rules.expiry
    for each in made.facts.expirations or ():
        left = each.at - now
        before = rule.before if rule.before is not None else seconds_before(each.begins, each.at)
        when = f"expires in {duration(left)}" if left > 0 else "has expired"
        yield from made.made(
            each.what,
            rule,
            holds=left < before,
            text=f"the {each.what} of {each.of} {when}",
            hint="Renew it",
            severity="critical" if left < before / CRITICAL_PART else "warning",
            subject=each.of,
        )


def _of_cutover(made: _Judging) -> Iterator[Judgement]:
    """Whatever the operator wants of the channel: nobody can write to the source meanwhile."""
    cutover = made.facts.cutover
    name = f"{made.facts.channel}/{made.facts.pipeline}"
    yield from made.made(
        "cutover",
        made.rules.cutover,
        holds=None if cutover is None else bool(cutover),
        text=f"its source may be read-only: {public(cutover or '')}",
        hint=f"If nobody works on it, `setl cutover {name} --status`, and `--abort` puts it back",
        severity="critical",
    )


def _of_disks(made: _Judging) -> Iterator[Judgement]:
    rule = made.rules.target_disk
    for disk in made.facts.disks or ():
        least = _least_free(disk, rule.free_percent)
        refuses = disk.last is not None and disk.free < disk.last
        portion = f"{100 * disk.free / disk.size:.0f} % ({size(disk.free)})"
        yield from made.made(
            "target_disk",
            rule,
            holds=made.started and disk.free < least,
            text=f"only {portion} of the disk of {disk.of} is free"
            + (", and indexes on it take no writes" if refuses else ""),
            hint="Free space there, or add a node; a server that is too full takes no writes",
            severity="critical" if refuses else "warning",
            subject=disk.of,
        )


def _least_free(disk: ServerDisk, percent: float | None) -> float:
    """Bytes that must be free: as a person says, as the server says, or a tenth."""
    if percent is None and disk.needed is not None:
        return disk.needed
    return disk.size * (_FREE_PERCENT if percent is None else percent) / 100
