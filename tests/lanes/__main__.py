"""Runs the checks, then all lanes side by side, and prints what came of them.

    python -m tests.lanes [quick] [PYTEST OPTION…]

With `quick`, only the lanes that need no server. Options and paths are handed to the pytest of
every lane.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from setl_embedded.database import TEMPLATES
from setl_embedded.errors import EmbeddedError
from tests.lanes import class_archive
from tests.lanes.job import Job, end_all
from tests.lanes.plan import CHECKS, LANES, QUICK, SLOW_CHECKS, Check, Lane
from tests.lanes.summary import closing_line, counted, skip_lines, slowest, together

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "SETL_TEST_LANES"
"""How many lanes run at once; more than there are cores, since they wait most of the time."""
_LIMIT_S = 5000.0
"""All together; each test has a limit of its own beside it."""
_POLL_S = 0.2
_PER_CORE = 2
_GIB_PER_LANE = 2.3  # two JVMs, four servers and pytest itself
_STATUS_FAILED, _STATUS_NO_TESTS, _STATUS_INTERRUPTED = 1, 5, 130
_WITH_VALUE = frozenset({"-k", "-m", "-p", "-o", "-W", "-c", "-r", "--family"})


def main(arguments: Sequence[str]) -> int:
    """Run everything; returns the exit status, which is pytest's."""
    begun = time.monotonic()
    quick = list(arguments[:1]) == ["quick"]
    arguments = arguments[quick:]
    folder = Path(tempfile.mkdtemp(prefix="setl-test-"))
    _keep_compiled(folder / "compiled")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(number, _interrupt)
    for check in CHECKS:
        if not _run_check(check, folder):
            return _STATUS_FAILED
    checks = [_check_job(check, folder) for check in SLOW_CHECKS]
    if not quick:
        for check in checks:  # they need no JVM, and the archive is for those that do
            check.start(ROOT)
        os.environ |= _class_archive() | {TEMPLATES: str(folder / "templates")}
    lanes = [lane for lane in _by_length(LANES) if not quick or lane.name in QUICK]
    jobs = [*checks, *(_lane_job(lane, arguments, folder) for lane in lanes)]
    status = _run(jobs, stop_early=_stops_early(arguments))
    total = together(job.results for job in jobs)
    for line in skip_lines(total):
        print(f"test: {line}")
    for job in jobs:
        if job.status is not None and not job.good:
            _show(job)
    if lines := slowest(total):
        print("test: the slowest, with what was set up for them", *lines, sep="\n")
    if total.failures:
        print("test: failed", *(f"  {name}" for name in total.failures), sep="\n")
    bad = [job for job in jobs if job.status is not None and not job.good]
    for job in bad:
        if not job.results.failures:
            total.counts["error"] += 1  # also for whoever reads the last line alone
    if bad:
        print(
            f"test: not good: {', '.join(job.name for job in bad)}; logs and data are in {folder}"
        )
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if not status:
        status = _STATUS_FAILED if bad else 0 if total.counts else _STATUS_NO_TESTS
    print(closing_line(total, time.monotonic() - begun), flush=True)
    return status


def _keep_compiled(folder: Path) -> None:
    """Where the environment says that compiled modules are not to be kept, keep them there.

    Otherwise each of some hundred nodes would compile setl's again, and its workers once more, in a
    second of processor time.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


def _class_archive() -> dict[str, str]:
    begun = time.monotonic()
    try:
        return class_archive.environment()
    except (RuntimeError, OSError, subprocess.SubprocessError, EmbeddedError) as error:
        print(f"test: sessions start more slowly, without an archive of Spark's classes: {error}")
        return {}
    finally:
        print(f"test: {'classes of Spark':22s}{time.monotonic() - begun:5.0f} s", flush=True)


def _run(jobs: Sequence[Job], *, stop_early: bool) -> int:
    """Run jobs, some at once; returns a status other than 0 if they were ended too soon."""
    width = int(os.environ.get(VARIABLE, "0")) or _width(os.cpu_count() or 1, _memory())
    waiting, running = deque(jobs), list[Job]()
    deadline = time.monotonic() + _LIMIT_S
    try:
        while waiting or running:
            while waiting and len(running) < width:
                running.append(waiting.popleft())
                if not running[-1].started:
                    running[-1].start(ROOT)
            time.sleep(_POLL_S)
            failed = False
            for job in list(running):
                for test in job.look():
                    print(f"test: FAILED {test}", flush=True)
                    failed = True
                if not job.running:
                    job.look()
                    running.remove(job)
                    _say(job)
                    failed = failed or not job.good
            if failed and stop_early:
                print("test: ending the other lanes, as told", flush=True)
                return _STATUS_FAILED
            if time.monotonic() > deadline:
                print(f"test: ending all lanes after {_LIMIT_S:.0f} s", flush=True)
                return _STATUS_FAILED
    except KeyboardInterrupt:
        print("test: interrupted; ending all lanes and their servers", flush=True)
        return _STATUS_INTERRUPTED
    finally:
        end_all(running)
    return 0


def _width(cores: int, gib: float) -> int:
    """How many jobs run at once: as many as keep the cores busy and fit into the memory."""
    return max(cores, min(_PER_CORE * cores, int(gib / _GIB_PER_LANE)))


def _memory() -> float:
    """What this machine has, GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def _say(job: Job) -> None:
    came = counted(job.results) if job.results.counts else "ok" if job.good else ""
    word = "" if job.good else "  FAILED " + job.problem()
    print(f"test: {job.name:22s}{job.seconds:5.0f} s  {came}{word}", flush=True)


def _show(job: Job) -> None:
    print(f"test: {job.name}: {job.problem() or counted(job.results)}; all that it printed:")
    print(job.log.read_text(errors="replace"))
    if job.results.under_way:
        print(f"test: {job.name} was in the middle of: {', '.join(job.results.under_way)}")


def _run_check(check: Check, folder: Path) -> bool:
    job = _check_job(check, folder)
    job.start(ROOT)
    while job.running:
        time.sleep(_POLL_S / 4)
    job.look()
    _say(job)
    if not job.good:
        _show(job)
    return job.good


def _check_job(check: Check, folder: Path) -> Job:
    own = folder / check.name.replace(" ", "-")
    own.mkdir()
    return Job(check.name, check.command, own, None)


def _lane_job(lane: Lane, arguments: Sequence[str], folder: Path) -> Job:
    own = folder / lane.name.replace(" ", "-")
    own.mkdir()
    record = own / "record.jsonl"
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header",
        "-p", "tests.lanes.recording", "--lane", lane.name, "--record", str(record),
        # Not pytest's own place, where it keeps only the last three runs.
        "--basetemp", str(own / "tmp"), "-o", "cache_dir=" + str(own / "cache"),
        # What servers of a test that passed have written need not reach the disk any more.
        "-o", "tmp_path_retention_policy=failed",
        *([] if _paths(arguments) else _where(lane)),
        *arguments,
    ]  # fmt: skip
    return Job(lane.name, command, own, record)


def _where(lane: Lane) -> list[str]:
    return [*lane.paths, *(f"--ignore={ROOT / path}" for path in lane.without)]


def _by_length(lanes: Sequence[Lane]) -> list[Lane]:
    return sorted(lanes, key=lambda lane: -lane.seconds)


def _paths(arguments: Sequence[str]) -> list[str]:
    """The arguments that are files or folders."""
    found: list[str] = []
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if before not in _WITH_VALUE and not argument.startswith("-"):
            position = argument.partition("::")[0]
            found += [argument] if position and (ROOT / position).exists() else []
    return found


def _stops_early(arguments: Sequence[str]) -> bool:
    return any(a in ("-x", "--exitfirst") or a.startswith("--maxfail") for a in arguments)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
