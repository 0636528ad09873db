"""What `setl demo` shows: both sites write, the leader dies in a large transaction, all is equal.

A scenario of the drills, with their users, tables and checks. Beyond that it reports how far the
pipelines are while somebody watches, and can leave everything running.
"""

from __future__ import annotations

import re
import shlex
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from setl_drills import nodes
from setl_drills.drill import DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.relaying import RelayDrillRun
from setl_drills.tables import ACCOUNTS
from setl_drills.waiting import wait_for
from setl_drills.world import Needs, World
from setl_embedded.server_home import ServerHome

LARGE_TRANSACTION = 50_000
_BEFORE_THE_KILL = 5_000
"""Rows of it that have been applied by then."""
_ROWS_PER_TRANSACTION = 9
"""Of `setl_drills.workload`, on average."""
_SEED = 1
_LIMIT = 60.0
_SHOW_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the demo shows.

    Attributes:
        keep: leave everything running at the end, until a signal comes.
        mysql: the sites are MySQL servers, not MariaDB servers.
        via_kafka: relays write both binlogs to Kafka, and everything else reads them there.
        rate: rows that each site writes per second, about.
        seconds: how long both sites write.
    """

    keep: bool = False
    mysql: bool = False
    via_kafka: bool = False
    rate: int = 300
    seconds: float = 60


class _World(World):
    """One that is not used again: at its end, nobody starts the node that was killed."""

    session_timeout = nodes.SESSION_TIMEOUT  # people are shown what nodes do by default
    ending = False

    def restart_dead(self) -> None:
        if not self.ending:
            super().restart_dead()


class Demonstration:
    """One run of the demo.

    Attributes:
        folder: data and logs of everything.
    """

    def __init__(self, console: Console, options: Options) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="setl-demo-"))
        self._console = console
        self._options = options
        self._started = time.monotonic()
        self._writing_since = 0.0

    def run(self) -> DrillResult:
        """All of it; the servers are stopped at the end whatever happens."""
        options, kafka = self._options, self._options.via_kafka
        world = _World(
            self.folder,
            Needs(search=True, kafka=kafka, relays=kafka),
            say=self._say,
            nodes=2,
            sites="mysql" if options.mysql else "mariadb",
        )
        pace = options.rate / _ROWS_PER_TRANSACTION
        with world:
            kind: Any = RelayDrillRun if kafka else DrillRun
            with kind(
                world,
                "demo",
                _SEED,
                search=True,
                pace=pace,
                calm=True,
                prefer=("n1", "r1"),
                name="demo",
            ) as run:
                try:
                    result = self._play(run)
                    self._show(run, result)
                    if options.keep:
                        self._keep(run)
                finally:
                    world.ending = True
        return result

    def _say(self, text: str) -> None:
        """A line of progress, with the time since the start."""
        line = Table.grid(padding=(0, 2, 0, 0))  # what does not fit goes on below the text
        said = re.sub(r"^demo, seed \d+: ", "", text)
        line.add_row(f"[dim]{time.monotonic() - self._started:6.1f} s[/]", said)
        self._console.print(line)

    def _play(self, run: DrillRun) -> DrillResult:
        self._writing_since = time.monotonic()
        self._invite(run)
        run.say(f"both sites write about {self._options.rate} rows a second")
        self._play_until(run, self._options.seconds * 0.35)
        run.say(f"site a writes a transaction of {LARGE_TRANSACTION:,} rows")
        run.writers["a"].large(LARGE_TRANSACTION).join(_LIMIT)
        applied = _applied(run, run.key("ab")) + _BEFORE_THE_KILL
        wait_for(
            "a part of it to be applied",
            lambda: _applied(run, run.key("ab")) >= applied,
            _LIMIT,
        )
        leaders = [run.leader()]
        if isinstance(run, RelayDrillRun):
            leaders.append(run.leader(run.relay("a")))

        def kill() -> None:
            for leader in leaders:
                leader.kill()

        fault = run.fault(
            f"[bold]SIGKILL to {' and '.join(leader.nid for leader in leaders)}[/] while that"
            " transaction is being applied; both sites go on writing",
            kill,
            [key for leader in leaders for key in run.led_by(leader)],
        )
        run.expect_takeover(fault, None)
        self._play_until(run, self._options.seconds)
        run.say("both sites stop writing")
        return run.finish()

    def _invite(self, run: DrillRun) -> None:
        """Where to watch it: at a node that is not killed, so that its pages live on."""
        cluster, leader = run.world.cluster, run.leader().nid
        survivor = next(nid for nid in cluster.http if nid.startswith("n") and nid != leader)
        run.say(
            f"watch it in a browser: {cluster.http[survivor]}/. Click a pipeline for its charts;"
            f" to act, log in with the token {cluster.token}"
        )
        if not self._options.keep:
            run.say("everything is removed at the end; `setl demo --keep` leaves it running")

    def _play_until(self, run: DrillRun, seconds: float) -> None:
        """Lines of progress until the users have written for so long."""
        while (left := self._writing_since + seconds - time.monotonic()) > 0:
            run.play(min(left, _SHOW_EVERY))
            written = ", ".join(
                f"{site} {writer.committed.rows:,}" for site, writer in run.writers.items()
            )
            applied = ", ".join(_how_far(run, key) for key in run.keys)
            run.say(f"written: {written}; applied: {applied}")

    def _show(self, run: DrillRun, result: DrillResult) -> None:
        table = Table(title="what came of it", title_justify="left", header_style="bold")
        table.add_column("")
        lines = result.evidence["pipelines"] = {key: _figures(run, key) for key in run.keys}
        for key in lines:
            table.add_column(_short(run, key), justify="right")
        for name, text_of in _LINES.items():
            table.add_row(name, *(text_of(line.get(name)) for line in lines.values()))
        self._console.print(table)
        if result.passed:
            self._console.print(
                f"[bold green]All equal, nothing echoed[/] — in"
                f" {time.monotonic() - self._started:.0f} s."
            )
            return
        self._console.print("[bold red]Not equal:[/]")
        for problem in result.problems:
            self._console.print(f"  {problem}", markup=False)
        for node in run.world.processes.values():
            self._console.print(node.failure("log"), markup=False, highlight=False)

    def _keep(self, run: DrillRun) -> None:
        world, cluster = run.world, run.world.cluster
        leader, a, b = run.leader().nid, world.sites["a"], world.sites["b"]
        variables = {"SETL_ZOOKEEPER": cluster.zookeeper}
        for name, site in world.sites.items():
            variables[f"DRILL_{name.upper()}_PORT"] = str(site.port)
            variables[f"DRILL_{name.upper()}_PASSWORD"] = site.password
        if (search := world.stack.elasticsearch) is not None:
            variables["DRILL_S_PORT"] = str(search.port)
        exports = " ".join(f"{name}={value}" for name, value in variables.items())
        self._console.print(
            f"""
Everything is still running.

In a browser: {cluster.http[leader]}/
  The first page lists what is wrong (a node is dead) and both channels with their lag.
  Click a pipeline for its charts. To start, stop, switch over and verify, log in with the token
  {cluster.token}: click "{run.key("ab")}", then "Verify".

In another terminal:
  export {exports}
  {cluster.setl} list     # nodes, pipelines, who leads, lag
  {cluster.setl} status {run.channel}    # every figure of a channel
  {cluster.setl} verify {run.channel}    # compare again
  {self._client()} -h127.0.0.1 -P{a.port} -u{a.user} -p"$DRILL_A_PASSWORD" {run.schema}    # site a
  {self._client()} -h127.0.0.1 -P{b.port} -u{b.user} -p"$DRILL_B_PASSWORD" {run.schema}    # site b
  curl '{world.stack.elasticsearch_url}/{run.schema}-items/_search?size=1'
  curl {cluster.http[leader]}/metrics
Logs: {self.folder}
Ctrl-C stops everything.""",
            markup=False,
            highlight=False,
            soft_wrap=True,  # what is copied from here must not have further line ends
        )
        signal.pause()  # ended by an exception of the signal's handler

    def _client(self) -> str:
        """The command that opens a session on a site; MySQL's client is in the folder."""
        return (
            shlex.join(ServerHome.of_this_machine("mysql").program("mysql"))
            if self._options.mysql
            else "mariadb"
        )


def _applied(run: DrillRun, key: str) -> int:
    return run.statuses.total(key, "rows_applied")


def _short(run: DrillRun, key: str) -> str:
    """A pipeline's name, without what is the same in all of them."""
    return key.removeprefix(run.channel).lstrip("-/")


def _how_far(run: DrillRun, key: str) -> str:
    """What a pipeline has applied, who leads it, its state if that is worth a word, its lag."""
    latest = run.statuses.latest(key)
    lag = latest.figures.get("lag")
    said = [
        latest.nid,
        *([] if latest.state == "running" else [latest.state]),
        *([] if lag is None else [f"lag {lag:.1f} s"]),
    ]
    return f"{_short(run, key)} {_applied(run, key):,} ({', '.join(said)})"


def _figures(run: DrillRun, key: str) -> dict[str, Any]:
    """What `_LINES` shows of a pipeline."""
    figures = run.statuses.latest(key).figures
    outages = {seen["pipeline"]: seen["seconds"] for seen in run.result.evidence["outages"]}
    writers = {run.key("ab"): run.writers["a"], run.key("ba"): run.writers["b"]}
    return {
        "rows written": writers[key].committed.rows + ACCOUNTS if key in writers else None,
        "applied": figures.get("rows_total"),
        "redelivered": run.statuses.total(key, "rows_redelivered"),
        "dropped as loopback": run.statuses.total(key, "rows_loopback"),
        "kill → first applied": outages.get(key),
        "lag p50": figures.get("lag_p50"),
        "lag p99": figures.get("lag_p99"),
    }


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


_LINES: dict[str, Callable[[Any], str]] = {
    "rows written": _count,
    "applied": _count,
    "redelivered": _count,
    "dropped as loopback": _count,
    "kill → first applied": _seconds,
    "lag p50": _seconds,
    "lag p99": _seconds,
}
"""A line of the table each, so that it fits into a terminal with 80 columns."""
