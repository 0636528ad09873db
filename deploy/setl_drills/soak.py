"""Both sites write for minutes while faults come one after another; nothing may grow or hang.

The faults are those of the drills, one at a time, each followed by recovery. After each recovery
the nodes' memory, threads, file handles and connections are sampled; over the whole time they
have to stay flat. In the end everything is checked as after a drill.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from setl_drills.checkers import check_flat
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.node import ZOOKEEPER, Node
from setl_drills.other_tools import OtherTools
from setl_drills.processes import Role, Usage, send, usage
from setl_drills.proxy import Direction
from setl_drills.waiting import DidNotHappenError, wait_for
from setl_drills.world import Needs, World

_RECOVERY_LIMIT = 120.0
_REST = (3.0, 8.0)
"""Seconds without a fault between two, shortest and longest."""

# How much more than at first something may be at last: a factor, and an allowance for what is
# small. The JVM's heap fills up to its limit before it is collected, so memory gets room. So do
# its thread pools once a node leads: measured, from 126 threads to 310 to 325, where they stay.
# Those of Python are setl's own business, and so is the memory of the driver, beside which the JVM
# hides any growth: it once rose from 190 to 290 MiB in 14 minutes.
_FLAT = {
    "rss": (1.5, 300e6),
    "driver_rss": (1.15, 30e6),
    "python_threads": (1.2, 15),
    "jvm_threads": (1.2, 220),
    "handles": (1.2, 30),
    "connections": (1.2, 15),
}


def soak_drill(minutes: float) -> Drill:
    """The soak as a drill of its own, of so many minutes."""
    return Drill(
        "soak",
        f"random faults one after another for {minutes:g} minutes; nothing grows, nothing hangs",
        "the faults and the moments",
        partial(soak, minutes),
        Needs(quorum=True),
    )


def soak(minutes: float, world: World, seed: int) -> DrillResult:
    """Run faults drawn from the drills for so many minutes, with recovery after each."""
    with DrillRun(world, "soak", seed, calm=True) as run, run.other_tools() as tools:
        run.pause_users()
        tools.change_online("entries")
        run.resume_users()
        return _Soak(run, tools, minutes).run()


class _Soak:
    def __init__(self, run: DrillRun, tools: OtherTools, minutes: float) -> None:
        self._run = run
        self._tools = tools
        self._world = run.world
        self._draw = run.random
        self._end = time.monotonic() + minutes * 60
        # By node, by life of its process, and by how many pipelines it led: a node that was started
        # again restarts, and one that leads holds more connections than one that stands by.
        self._samples: dict[tuple[str, int, int], list[Usage]] = {}

    def run(self) -> DrillResult:
        run = self._run
        counts: dict[str, int] = {}
        self._sample()
        while time.monotonic() < self._end:
            run.play(self._draw.uniform(*_REST))
            if self._draw.random() < 0.4:
                site = self._draw.choice("ab")
                run.writers[site].large(self._draw.randint(2_000, 8_000))
            name, act = self._draw.choice(list(self._faults().items()))
            counts[name] = counts.get(name, 0) + 1
            leader = run.leader(self._draw.choice(("ab", "ba")))
            run.say(f"{name}: {leader.nid}")
            act(leader)
            if not self._recover(name):
                break
            self._sample()
        run.result.evidence["soak"] = {
            "faults": counts,
            "samples": {
                f"{nid}, pid {pid}, leading {led}": [asdict(sample) for sample in samples]
                for (nid, pid, led), samples in self._samples.items()
            },
        }
        self._check_flat()
        self._tools.checksum()
        return run.finish()

    def _faults(self) -> dict[str, Callable[[Node], None]]:
        hold = self._draw.uniform(1.0, self._world.session_timeout + 4.0)
        return {
            "kill the leader": Node.kill,
            "freeze the leader": lambda node: self._for(hold, node.freeze, node.thaw),
            "cut off from ZooKeeper": lambda node: self._for(
                hold, partial(node.cut, ZOOKEEPER), node.heal
            ),
            "cut off from the databases": lambda node: self._for(
                hold, partial(node.cut, "a", "b"), node.heal
            ),
            "cut off from everything": lambda node: self._for(
                hold, partial(node.cut, ZOOKEEPER, "a", "b"), node.heal
            ),
            "cut one way": lambda node: self._for(
                hold,
                partial(node.cut, ZOOKEEPER, direction=self._draw.choice(list(Direction))),
                node.heal,
            ),
            "reset connections": self._reset,
            "stop the quorum": lambda _: self._for(
                hold, self._pause_quorum, self._world.resume_zookeeper
            ),
            "kill the workers": lambda node: send(node.processes(Role.WORKER), signal.SIGKILL),
            "fail in a task": lambda node: node.arm("task.before_commit", "error"),
            "die after a commit": lambda node: node.arm("task.after_commit", "kill node"),
            "rotate the binlogs": lambda _: self._rotate(),
        }

    def _for(self, seconds: float, begin: Callable[[], object], end: Callable[[], object]) -> None:
        begin()
        self._run.play(seconds)
        end()

    @staticmethod
    def _reset(node: Node) -> None:
        for links in node.links.values():
            for link in links:
                link.reset()

    def _pause_quorum(self) -> None:
        for member in self._draw.sample(self._world.zookeeper_members(), 2):
            member.pause()

    def _rotate(self) -> None:
        for site in self._world.sites.values():
            with site.connect() as connection, connection.cursor() as cursor:
                cursor.execute("FLUSH BINARY LOGS")

    def _recover(self, fault: str) -> bool:
        """Wait until both directions apply again and all nodes are warm."""
        run = self._run
        since = time.time()
        try:
            for pipeline in ("ab", "ba"):
                key = run.key(pipeline)
                wait_for(
                    f"{key} to go on after: {fault}",
                    lambda key=key: len(run.marks.since(key, since)) > 1,
                    _RECOVERY_LIMIT,
                )
            self._world.repair(all_warm=True)
        except DidNotHappenError as error:
            run.problem(f"it hangs: {error}")
            return False
        return True

    def _sample(self) -> None:
        for nid, node in self._world.nodes.items():
            key = (nid, node.pid, len(self._run.led_by(node)))
            self._samples.setdefault(key, []).append(usage(node.processes()))

    def _check_flat(self) -> None:
        for (nid, pid, led), samples in self._samples.items():
            for figure, (factor, allowance) in _FLAT.items():
                values = [float(getattr(sample, figure)) for sample in samples]
                flat, first, last = check_flat(values, factor=factor, allowance=allowance)
                self._run.require(
                    flat,
                    f"{figure} of {nid}, pid {pid}, grew from {first:,.0f} to {last:,.0f}"
                    f" (it led {led})",
                )
