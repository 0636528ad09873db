"""Long work that is begun from the console: comparing, cutting over, in a process of its own.

It is the command of the same name. It has memory and a Spark session of its own, so that what is
compared takes nothing from what is loaded; and it ends with the node.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from setl.clock import Clock
from setl.errors import SetlError
from setl.node.console.actions.cli_subprocess import CliSubprocess
from setl.operate import units
from setl.operate.differing_rows import differing_rows
from setl.operate.progress_lines import progress_in

MOST_AT_ONCE = 1
MAX_JOBS = 20
_LONGEST_ERROR = 4000
_LINES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of long work.

    Attributes:
        number: tells it from others of this node.
        on: the pipeline.
        title: what it does.
        state: ``waits``, ``under way``, ``done`` or ``failed``.
        began: seconds since 1970 UTC.
        words: how far it is, or what came of it.
        rows: what was compared, a mapping for each target.
        lines: what else it said, a sentence each; of what is under way the last ones.
        error: why it failed.
    """

    number: int
    on: str
    title: str
    state: str
    began: float
    words: str = ""
    rows: Sequence[Mapping[str, Any]] = ()
    lines: Sequence[str] = ()
    error: str = ""


class Jobs:
    """The work that was begun from this node; one piece at a time, from any thread."""

    def __init__(
        self,
        clock: Clock,
        cli_subprocess: CliSubprocess,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing is begun.

        Args:
            clock: for the time it takes.
            cli_subprocess: runs the commands.
            changed: is reported, from another thread, that a command has ended and may have changed
                anything, before `of` says so.
        """
        self._clock = clock
        self._beside = cli_subprocess
        self._changed = changed
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(MOST_AT_ONCE)
        self._jobs: dict[int, Job] = {}
        self._number = 0

    def of(self, on: str) -> list[Job]:
        """The work on a pipeline, newest first, with how long it has taken so far."""
        with self._lock:
            mine = [job for job in self._jobs.values() if job.on == on]
        now = self._clock.now()
        return [
            replace(job, words=_so_far(job, now)) if job.state == "under way" else job
            for job in reversed(mine)
        ][:3]

    def begin(
        self, on: str, title: str, arguments: Sequence[str], ended: Callable[[Job], None]
    ) -> Job:
        """Begin a piece of work; it waits for its turn.

        Args:
            on: the pipeline.
            title: what it does.
            arguments: of the command line, without ``setl``.
            ended: is told how it ended, from another thread.
        """
        with self._lock:
            self._number += 1
            job = Job(self._number, on, title, "waits", self._clock.now())
            self._jobs[job.number] = job
            over = [n for n, each in self._jobs.items() if each.state in ("done", "failed")]
            for number in over[: max(0, len(self._jobs) - MAX_JOBS)]:
                del self._jobs[number]
        thread = threading.Thread(
            target=self._run, args=(job, list(arguments), ended), name="console-job", daemon=True
        )
        thread.start()
        return job

    @property
    def waiting(self) -> int:
        """How many pieces are not over."""
        with self._lock:
            return sum(job.state in ("waits", "under way") for job in self._jobs.values())

    def _run(self, job: Job, arguments: list[str], ended: Callable[[Job], None]) -> None:
        with self._turn:
            job = replace(job, state="under way", began=self._clock.now())
            self._keep(job)
            job = self._done(job, arguments)
        self._changed()
        self._keep(job)
        ended(job)

    def _heard(self, number: int, line: str) -> None:
        """Keep what a command says while it is under way."""
        with self._lock:
            job = self._jobs.get(number)
            if job is None or not line:
                return
            words = progress_in(line)
            if words is None:
                job = replace(job, lines=(*job.lines, line)[-_LINES_SHOWN:])
            else:
                job = replace(job, words=words)
            self._jobs[number] = job

    def _done(self, job: Job, arguments: list[str]) -> Job:
        try:
            code, out, err = self._beside.output(
                arguments, said=lambda line: self._heard(job.number, line)
            )
        except SetlError as error:
            return replace(job, state="failed", error=str(error))
        took = f"in {units.duration(self._clock.now() - job.began)}"
        printed = _printed(out)
        rows = _rows(printed)
        if rows:
            lines = [line for row in rows for line in _differing(row)]
            return replace(
                job, state="done", words=f"{_found(rows)}, {took}", rows=rows, lines=lines
            )
        if code == 0:
            return replace(job, state="done", words=took, lines=_lines(printed))
        if code < 0:
            err = f"{err}\nIt was killed by signal {-code}. What it had changed stays as it is."
        return replace(job, state="failed", words=took, error=_last_lines(err))

    def _keep(self, job: Job) -> None:
        with self._lock:
            if job.number in self._jobs:
                self._jobs[job.number] = job


def _found(rows: Sequence[Mapping[str, Any]]) -> str:
    differ, undecided, merged = (
        sum(int(row.get(name) or 0) for row in rows)
        for name in ("differences", "undecided", "merged")
    )
    failed = sum(bool(row.get("error")) for row in rows)
    found = [units.count(differ, "row differs", "rows differ")] if differ else []
    found += [f"{undecided:,} undecided"] if undecided else []
    found += [f"{units.count(failed, 'table')} could not be compared"] if failed else []
    if not found and merged:
        found = [f"no key differs, {units.count(merged, 'row')} merged"]
    return ", ".join(found) or "all equal"


def _differing(row: Mapping[str, Any]) -> Iterator[str]:
    if row.get("error"):
        yield f"{row['target']}: {row['error']}"
    for one in differing_rows(row):
        unlike = f" ({'; '.join(one.columns)})" if one.columns else ""
        yield f"{row['target']}: {one.words}{unlike}"


def _so_far(job: Job, now: float) -> str:
    took = f"for {units.duration(now - job.began)}"
    return f"{took}: {job.words}" if job.words else took


def _printed(text: str) -> object:
    """The JSON that a command has printed, None if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _rows(value: object) -> list[Mapping[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _lines(value: object) -> list[str]:
    """What `setl cutover` and `setl rebalance` say, as sentences; of other commands nothing."""
    if not isinstance(value, dict):
        return []
    result = cast("dict[str, Any]", value)
    if "leads_after" in result:
        after: Mapping[str, Any] = result["leads_after"] or {}
        leads = ", ".join(f"{nid} leads {count}" for nid, count in after.items())
        return [*(_moved(step) for step in result["moves"]), *([f"now: {leads}"] if leads else [])]
    if result.get("outcome") == "done":
        begun = "the application may write to the target now"
        return [begun, *map(str, result.get("left") or ())]
    if "objections" not in result:
        return []
    steps = [f"{n}. {step['step']}: {step['what']}" for n, step in enumerate(result["steps"], 1)]
    against = [f"against it: {each}" for each in result["objections"]]
    return [*steps, *(against or ["nothing is against it now"])]


def _moved(step: Mapping[str, Any]) -> str:
    """A switchover of `setl rebalance -o json`."""
    line = f"{step['pipeline']}: {step['from']} → {step['to']}, {step['outcome']}"
    if step["seconds"] is None:
        return line
    line = f"{line} in {units.duration(step['seconds'])}"
    if step["redelivered"] is None:  # no target but MySQL tells
        return line
    return f"{line}, {units.count(step['redelivered'], 'row')} applied again"


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and progress_in(line) is None]
    return "\n".join(lines[-12:])[-_LONGEST_ERROR:] or "it ended without a word"
