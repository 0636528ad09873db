"""An application moves to the other site, and who takes part dies or is cut off in the middle."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pymysql

from arbiter.values import ChannelState, PipelineId
from setl.operate.cutover.steps import Step
from setl_drills.binlog import binlog_end
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.setting import FENCE_TIMEOUT
from setl_drills.tables import binlog_of, create_tables, drop_tables, two_way
from setl_drills.waiting import wait_for
from setl_drills.watching import Watch
from setl_drills.world import World
from setl_embedded import DatabaseServer

_LIMIT = 120.0
_READ_ONLY = 1290  # ER_OPTION_PREVENTS_STATEMENT
_SECRET = "application"
_PAUSE = 0.05
"""Seconds between two rows of the application: some are always under way."""
_PACE_BESIDE = 6.0
"""Of the users of the drill's other channel, who have no part in it and write until its end."""

# What the command says when the step before is done; None: when its record is kept.
_BEGINS = {
    Step.CHECK: None,
    Step.VERIFY: "check:",
    Step.STOP_WRITES: "verify:",
    Step.DRAIN: "stop writes:",
    Step.VERIFY_AGAIN: "drain:",
    Step.WAY_BACK: "verify again:",
}


class Application(Watch):
    """Writes to site A with an account that a read-only server refuses."""

    def __init__(self, server: DatabaseServer, schema: str, tempo: float) -> None:
        """Describe it; the account has to exist, and `tempo` is the world's."""
        super().__init__("application")
        self._pause = _PAUSE / tempo
        self._server = server
        self._schema = schema
        self.committed: list[int] = []

    def watch(self) -> None:
        """See `Watch`."""
        number = 1
        with (
            pymysql.connect(
                host=self._server.host,
                port=self._server.port,
                user=self._schema,
                password=_SECRET,
                autocommit=True,
            ) as connection,
            connection.cursor() as cursor,
        ):
            statement = f"INSERT INTO `{self._schema}`.entries VALUES (%s, 'a', %s, 'application')"
            while not self._stopping.wait(self._pause):
                try:
                    cursor.execute(statement, (number, number))
                except pymysql.MySQLError as error:
                    if error.args[0] != _READ_ONLY:
                        raise
                    continue
                self.committed.append(number)
                number += 1

    def goes_on(self) -> None:
        """Wait until more is committed."""
        self.check()
        before = len(self.committed)
        wait_for("the application to write", lambda: len(self.committed) > before, _LIMIT)


class Move:
    """A channel of its own whose application is to move from site A to site B."""

    def __init__(self, run: DrillRun) -> None:
        self._run = run
        self.world = run.world
        self.schema, self.channel = f"{run.schema}_move", f"{run.channel}-move"
        self.ident = PipelineId(self.channel, "ab")
        site = self.world.sites["a"]
        self.application = Application(site, self.schema, self.world.tempo)

    @contextmanager
    def under_way(self) -> Generator[None]:
        """The channel runs and the application writes, until the end of the block."""
        sites = self.world.sites
        try:
            for site in sites.values():
                create_tables(site, self.schema)
            account = f"`{self.schema}`@`%`"
            _execute(sites["a"], f"CREATE USER {account} IDENTIFIED BY '{_SECRET}'")
            _execute(sites["a"], f"GRANT ALL ON `{self.schema}`.* TO {account}")
            sources = {name: binlog_of(name, binlog_end(site)) for name, site in sites.items()}
            definition = two_way(self.channel, self.schema, sources, FENCE_TIMEOUT)
            stored = self.world.arbiter.channels.put(self.channel, definition)
            self.world.arbiter.channels.set_state(stored, ChannelState.START)
            self.application.start()
            wait_for("its rows to arrive", lambda: len(self.there()) > 1, _LIMIT)
            yield
        finally:
            self.application.stop()
            self.world.heal()
            _execute(sites["a"], "SET GLOBAL read_only = OFF")
            self.world.remove_channel(self.channel)
            _execute(sites["a"], f"DROP USER IF EXISTS `{self.schema}`@`%`")
            for site in sites.values():
                drop_tables(site, self.schema)

    def there(self) -> set[int]:
        """Ids of the application's rows at site B."""
        found = _execute(self.world.sites["b"], f"SELECT id FROM `{self.schema}`.entries")
        return {row[0] for row in found}

    def struck(self, step: Step, strike: Callable[[subprocess.Popen[str]], None]) -> int:
        """Begin a cut-over and strike at a step; returns the command's exit status."""
        command = self.world.cluster.begin(
            "cutover", str(self.ident), "-y", "--max-lag", "60", "--without-standby"
        )
        with command:
            try:
                self._await(command, step)
                strike(command)
                command.wait(_LIMIT)
            finally:
                command.kill()
        return command.returncode

    def _await(self, command: subprocess.Popen[str], step: Step) -> None:
        begins = _BEGINS[step]
        if begins is None:
            arbiter, ident = self.world.arbiter, self.ident
            wait_for("a cut-over to begin", lambda: arbiter.cutovers.read(ident), _LIMIT)
            return
        assert command.stderr is not None
        said: list[str] = []
        for line in command.stderr:
            said.append(line)
            if line.startswith(begins):
                return
        self._run.problem(f"step `{step.value}` is not reached: {''.join(said)}")

    def carry_on(self) -> None:
        """Run the command again; the application must have lost nothing."""
        done = self._setl()
        self._run.require(done.returncode == 0, f"it does not go on: {done.stderr}")
        self.is_complete()

    def is_complete(self) -> None:
        """See that the application may move: it cannot write, and all that it wrote is there."""
        self._run.require(_read_only(self.world.sites["a"]), "the source takes writes")
        written = set(self.application.committed)
        missing = written - self.there()
        self._run.require(not missing, f"{len(missing)} of {len(written)} rows are not there")

    def put_back(self) -> None:
        """Put everything back; the application must go on where it was."""
        if self.world.arbiter.cutovers.read(self.ident) is not None:
            done = self._setl("--abort")
            self._run.require(done.returncode == 0, f"it is not put back: {done.stderr}")
        self.is_as_before()

    def is_as_before(self) -> None:
        """See that nothing of a cut-over is left, and that the application writes."""
        left = self.world.arbiter.cutovers.read(self.ident)
        self._run.require(left is None, f"a cut-over is left: {left}")
        self._run.require(not _read_only(self.world.sites["a"]), "the source is read-only")
        self.application.goes_on()

    def _setl(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.world.cluster.run(
            "cutover", str(self.ident), "-y", "--max-lag", "60", "--without-standby", *options,
            check=False,
        )  # fmt: skip


def cut_over_dies(world: World, seed: int) -> DrillResult:
    """Kill the command of a cut-over at any of its steps."""
    with DrillRun(world, "cut-over-dies", seed, pace=_PACE_BESIDE) as run:
        move, steps = Move(run), list(_BEGINS)
        with move.under_way():
            step = steps[(seed + 2) % len(steps)]  # as many seeds as there are steps try them all
            run.say(f"the command of a cut-over is to die at `{step.value}`")
            move.struck(step, lambda command: command.send_signal(signal.SIGKILL))
            if run.random.random() < 0.5:
                move.carry_on()
            move.put_back()
        return run.finish()


def cut_over_fails(world: World, seed: int) -> DrillResult:
    """Once writes are stopped, kill the leader, or cut the command off from the target."""
    with DrillRun(world, "cut-over-fails", seed, pace=_PACE_BESIDE) as run:
        move = Move(run)
        with move.under_way():
            if seed % 2:
                run.say("the leader is to die once writes are stopped")
                status = move.struck(Step.DRAIN, lambda _: _kill_leader(world, move.ident))
                run.require(status == 0, "a cut-over does not bear another leader")
                move.is_complete()
                move.put_back()
            else:
                run.say("the target is to be out of reach once writes are stopped")
                status = move.struck(Step.VERIFY_AGAIN, lambda _: world.cut_commands("b"))
                run.require(status not in (0, None), "it ended well without its target")
                world.heal()
                move.is_as_before()
        return run.finish()


def _kill_leader(world: World, ident: PipelineId) -> None:
    leader_lock = world.arbiter.leader_locks.one(ident)
    if leader_lock is not None:
        world.nodes[leader_lock.nid].kill()
        world.restart_dead()


def _read_only(server: DatabaseServer) -> bool:
    return str(_execute(server, "SELECT @@GLOBAL.read_only")[0][0]) in {"1", "ON"}


def _execute(server: DatabaseServer, statement: str) -> Any:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


DRILLS = (
    Drill(
        "cut-over-dies",
        "the command of a cut-over dies; it is carried on or put back, and nothing is lost",
        "at which step, and whether it is carried on or put back",
        cut_over_dies,
    ),
    Drill(
        "cut-over-fails",
        "writes are stopped, then the leader dies or the target is out of reach; nothing is lost",
        "which of both",
        cut_over_fails,
    ),
)
