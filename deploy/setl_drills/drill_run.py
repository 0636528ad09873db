"""One run of a drill: channels and users of its own, watched from outside, checked at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from arbiter.values import PipelineId
from setl_drills.binlog import binlog_end, read_transactions
from setl_drills.checkers import longest_gap, longest_silence, outage_until_epoch
from setl_drills.drill import DrillResult
from setl_drills.observing import Leadership
from setl_drills.other_tools import OtherTools
from setl_drills.setting import Setting
from setl_drills.verification import Verification
from setl_drills.waiting import DidNotHappenError, wait_for
from setl_drills.world import World

TAKEOVER_ALLOWANCE = 2.0
"""Seconds beyond the session timeout within which a standby applies its first batch (I4)."""
_RECOVERY_LIMIT = 90.0
_HISTORY_ALLOWANCE = 1.0
"""Seconds by which the history may have less of an outage than was seen at the target."""


@dataclass
class Fault:
    """Something that was done to the world.

    Attributes:
        what: in words.
        at: when, seconds since 1970.
        epochs: the epoch of each pipeline at that moment.
        struck: keys of the pipelines that it concerns.
    """

    what: str
    at: float
    epochs: dict[str, int]
    struck: list[str] = field(default_factory=list)


class DrillRun(Setting):
    """A setting in which faults are made, waited out and judged.

    Attributes:
        result: what comes of it.
    """

    def __init__(self, world: World, drill: str, seed: int, **options: Any) -> None:
        """Describe it; options are those of `Setting`."""
        super().__init__(world, drill, seed, **options)
        self.result = DrillResult(drill, seed)

    # -- faults ---------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A line of progress."""
        self.world.say(f"{self.result.drill}, seed {self.result.seed}: {text}")

    def play(self, seconds: float) -> None:
        """Let the users write for a while."""
        time.sleep(seconds)

    def note(self, text: str) -> None:
        """Something worth knowing."""
        self.result.notes.append(text)

    def problem(self, text: str) -> None:
        """Something that should not be."""
        self.result.problems.append(text)
        self.say(f"PROBLEM: {text}")

    def require(self, holds: object, text: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problem(text)

    def fault(self, what: str, act: Callable[[], object], struck: Iterable[str]) -> Fault:
        """Do something to the world, and remember what was before."""
        keys = list(struck)
        epochs = {key: self.epoch(key) for key in keys}
        self.say(what)
        fault = Fault(what, time.time(), epochs, keys)
        act()
        self.result.evidence.setdefault("faults", []).append({"what": what, "at": fault.at})
        return fault

    def epoch(self, key: str) -> int:
        """The epoch of a pipeline's leadership, as ZooKeeper says, else the last that wrote."""
        leader_lock = self.world.arbiter.leader_locks.one(PipelineId(*key.split("/")))
        if leader_lock is not None:
            return leader_lock.epoch
        return self.marks.epoch(key) if key in self.marks.advances else 0

    def expect_takeover(self, fault: Fault, bound: float | None, *, planned: bool = False) -> None:
        """Wait until a newer epoch has applied something in each struck pipeline.

        Args:
            fault: what happened.
            bound: seconds after which it is a problem; None for no bound.
            planned: the former leader goes on applying for a while, so that the outage is the
                longest time without a load and not the time since the request.
        """
        for key in fault.struck:
            former = fault.epochs[key]

            def outage(key: str = key, former: int = former) -> tuple[float, int] | None:
                return self._outage(key, fault.at, former)

            try:
                seconds, epoch = wait_for(
                    f"a new leader to apply something in {key}", outage, _RECOVERY_LIMIT
                )
            except DidNotHappenError as error:
                latest = self.statuses.latest(key)
                self.problem(f"{error} ({latest.nid} says {latest.state}: {latest.error})")
                continue
            if planned:
                until = fault.at + seconds
                seconds = longest_gap(self.seen(key, fault.at) or (), fault.at, until)
            self._recovered(fault, key, seconds, bound)
            self.result.evidence.setdefault("epochs", []).append(
                {"pipeline": key, "before": former, "after": epoch}
            )

    def _outage(self, key: str, fault_at: float, former: int) -> tuple[float, int] | None:
        if key in self.marks.advances:
            return outage_until_epoch(self.marks.since(key, fault_at), fault_at, former)
        # Elasticsearch keeps no marks; there the leader's own word has to do.
        applied = self._first_applied(key, former)
        return (applied[0] - fault_at, applied[1]) if applied else None

    def expect_history(self, fault: Fault) -> None:
        """See that the history has no shorter outage than the target saw, after a take-over.

        Args:
            fault: after which nothing was applied but what was being committed then.
        """
        for key in fault.struck:
            former, seen = fault.epochs[key], self.seen(key, fault.at) or []
            found = outage_until_epoch(seen, fault.at, former)
            if found is None:
                continue  # Elasticsearch keeps no marks
            began = max([fault.at, *(a.at for a in seen if a.epoch <= former)])
            without = fault.at + found[0] - began

            def seconds_of(key: str = key, epoch: int = found[1]) -> float | None:
                items = self.world.arbiter.history.all(PipelineId(*key.split("/")))
                return next((item.outage for item in items if item.epoch == epoch), None)

            try:
                outage = wait_for(
                    f"the outage of {key} in the history", seconds_of, _RECOVERY_LIMIT
                )
            except DidNotHappenError as error:
                self.problem(str(error))
                continue
            self.say(f"the history has {outage:.2f} s, without a load were {without:.2f} s")
            self.result.evidence.setdefault("history", []).append(
                {"pipeline": key, "outage": outage, "without_loads": without}
            )
            self.require(
                outage >= without - _HISTORY_ALLOWANCE,
                f"the history has an outage of {outage:.2f} s of {key}, to which nothing was"
                f" applied for {without:.2f} s",
            )

    def _first_applied(self, key: str, former: int) -> tuple[float, int] | None:
        """When a leader of a newer epoch says that it first applied something, and its epoch."""
        for epoch, leadership in self.statuses.leaderships_of(key).items():
            applied = leadership.figures.get("first_applied_at")
            if epoch > former and applied:
                return applied, epoch
        return None

    def expect_resumption(self, fault: Fault, over_at: float, bound: float | None = None) -> None:
        """Wait until each struck pipeline applies something again, whoever leads it.

        Args:
            fault: what happened.
            over_at: when it was over, seconds since 1970.
            bound: seconds from `over_at` after which it is a problem; None for no bound.
        """
        for key in fault.struck:
            if self.seen(key, fault.at) is None:
                continue
            try:
                wait_for(
                    f"{key} to go on",
                    lambda key=key: len(self.seen(key, over_at) or ()) > 1,
                    _RECOVERY_LIMIT,
                )
            except DidNotHappenError as error:
                latest = self.statuses.latest(key)
                self.problem(f"{error} ({latest.nid} says {latest.state}: {latest.error})")
                continue
            seen = self.seen(key, fault.at) or []
            seconds = longest_silence(seen, fault.at, seen[-1].at)
            late = fault.at + seconds - over_at
            self._recovered(fault, key, seconds, None)
            if bound is not None and late > bound:
                self.problem(f"{key} went on {late:.1f} s after it could, bound {bound:.1f} s")

    def _recovered(self, fault: Fault, key: str, seconds: float, bound: float | None) -> None:
        self.result.outages.append(seconds)
        self.say(f"{key.partition('/')[2]} applies again after {seconds:.2f} s")
        self.result.evidence.setdefault("outages", []).append(
            {"fault": fault.what, "pipeline": key, "seconds": seconds, "bound": bound}
        )
        if bound is not None and seconds > bound:
            self.problem(f"{key} was out for {seconds:.2f} s, bound {bound:.2f} s ({fault.what})")

    @property
    def takeover_bound(self) -> float:
        """I4's bound for a take-over after a crash."""
        return self.world.session_timeout + TAKEOVER_ALLOWANCE + self.world.slack

    def pause_users(self) -> None:
        """Have nothing written, and wait until everything written is on both sites."""
        for writer in self.writers.values():
            writer.pause()
        wait_for("both sites to be equal", self.equal, _RECOVERY_LIMIT, interval=0.2)

    def equal(self) -> bool:
        """Whether both sites, and the index if there is one, hold the same now."""
        return self._verification().equal()

    def resume_users(self) -> None:
        """Have the users write again."""
        for writer in self.writers.values():
            writer.resume()

    def save_audit(self, site: str) -> None:
        """Read a site's binlog now, since it will be purged; later reading begins at its end."""
        end = binlog_end(self.world.sites[site])
        self.stored.setdefault(site, []).extend(
            read_transactions(self.world.sites[site], self.schema, self.begins[site], end)
        )
        self.begins[site] = end

    @contextmanager
    def other_tools(self) -> Generator[OtherTools]:
        """Have others write to site A what a managed server has, for the time of a block.

        Whether it passed is checked at the end of the block, when the run is finished.
        """
        tools = OtherTools(self.world.sites["a"], self.schema)
        tools.start()
        try:
            tools.checksum()
            yield tools
        finally:
            tools.stop()
        key = self.key("ab")
        latest = self.statuses.latest(key)
        self.require(latest.state != "failed", f"{key} failed: {latest.error}")
        self.result.evidence["other tools"] = {
            "heartbeats": tools.heartbeats,
            "statements skipped": latest.figures.get("statements_skipped"),
        }
        self.require(tools.heartbeats, "no heartbeats were written beside the drill")

    # -- the end --------------------------------------------------------------------------

    def finish(self) -> DrillResult:
        """Stop the users, let everything drain, check it all; the verdict is in the result."""
        self.say("draining and checking")
        last = {name: writer.finish() for name, writer in self.writers.items()}
        verification = self._verification()
        failed = verification.drain(last, self._failure)
        if failed:
            self.problem(failed)
        verification.check(self.result)
        self._record()
        return self.result

    def _verification(self) -> Verification:
        return Verification(
            sites=self.world.sites,
            schema=self.schema,
            channel=self.channel,
            writers=self.writers,
            begins=self.begins,
            stored=self.stored,
            elasticsearch=self.world.stack.elasticsearch if self.search_key else None,
        )

    def _record(self) -> None:
        """Put what was seen into the result.

        Raises:
            WatchEndedError: not all of the drill was seen, so there is no verdict.
        """
        self.marks.check()
        self.statuses.look()
        for key in self.keys:
            self.result.redelivered += self.statuses.total(key, "rows_redelivered")
        self.result.evidence["written"] = {
            name: {"transactions": w.committed.transactions, "rows": w.committed.rows}
            for name, w in self.writers.items()
        }
        self.result.evidence["leaderships"] = {
            key: {
                str(epoch): _seen(s)
                for epoch, s in sorted(self.statuses.leaderships_of(key).items())
            }
            for key in self.keys
        }
        self.result.seconds = time.monotonic() - self.begun

    def _failure(self) -> str:
        """Why a pipeline will not continue automatically, "" if none is known to be so."""
        for key in self.keys:
            latest = self.statuses.latest(key)
            if latest.state == "failed":
                return f"{key} failed on {latest.nid}: {latest.error}"
        return ""


def _seen(leadership: Leadership) -> dict[str, object]:
    names = ("rows_applied", "rows_redelivered", "rows_loopback", "retries", "first_applied_at")
    return {
        "nid": leadership.nid,
        "state": leadership.state,
        "error": leadership.error,
        **{name: leadership.figures.get(name) for name in names},
    }
