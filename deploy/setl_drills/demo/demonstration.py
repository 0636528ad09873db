"""The demo, step by step: start, write on both sites, kill the leader, compare."""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from setl.model.position import BinlogPosition, KafkaPosition, Position
from setl.run.measured.progress import percentile
from setl_drills.binlog import binlog_end
from setl_drills.demo.audit import Audit, audit
from setl_drills.demo.report import PipelineResult, Result, show
from setl_drills.demo.shop import RELAY, channel_files, environment, prepare, topic_of
from setl_drills.demo.users import SiteWriter
from setl_drills.demo.watching import (
    PIPELINES,
    RELAYS,
    PipelineView,
    SearchProbe,
    Watch,
    site_lags,
    topic_end,
)
from setl_drills.nodes import SESSION_TIMEOUT, Cluster
from setl_embedded import Stack
from setl_embedded.ports import free_port
from setl_embedded.server_home import ServerHome

LARGE_TRANSACTION = 50_000


@dataclass(frozen=True, slots=True)
class Options:
    """What the demo shows.

    Attributes:
        keep: leave everything running at the end, until a signal comes.
        mysql: the sites are MySQL servers, not MariaDB servers.
        via_kafka: relays write both binlogs to Kafka, and everything else reads them there.
        rate: rows that each site writes per second.
        seconds: how long both sites write.
    """

    keep: bool = False
    mysql: bool = False
    via_kafka: bool = False
    rate: int = 300
    seconds: float = 60


class Demonstration:
    """One run of the demo, step by step."""

    def __init__(self, console: Console, options: Options) -> None:
        self.console = console
        self.options = options
        self.started = time.monotonic()
        self.stack = Stack(
            mariadb=0 if options.mysql else 2,
            mysql=2 if options.mysql else 0,
            zookeeper=1,
            elasticsearch=True,
            kafka=options.via_kafka,
        )
        self.relays = ("r1", "r2") if options.via_kafka else ()
        self.names = (*RELAYS, *PIPELINES) if options.via_kafka else PIPELINES
        self.result = Result(session_timeout=SESSION_TIMEOUT)

    def say(self, text: str) -> None:
        """A line of progress, with the time since the start."""
        line = Table.grid(padding=(0, 2, 0, 0))  # what does not fit goes on below the text
        line.add_row(f"[dim]{time.monotonic() - self.started:6.1f} s[/]", text)
        self.console.print(line)

    def run(self) -> Result:
        """All steps; the servers are stopped at the end whatever happens."""
        more = ", Elasticsearch and Kafka" if self.relays else " and Elasticsearch"
        product = "MySQL" if self.options.mysql else "MariaDB"
        self.say(f"starting ZooKeeper, two {product} servers{more}")
        with self.stack:
            a, b = self.stack.databases
            prepare(a, "a")
            prepare(b, "b")
            self.cluster = Cluster(self.stack.folder, self.stack.zookeeper_hosts, environment(a, b))
            try:
                self._bring_up()
                self._write_and_kill()
                self._wait_until_applied()
                self._compare()
                self.result.seconds = time.monotonic() - self.started
                show(self.console, self.result)
                if self.options.keep:
                    self._keep()
            except Exception:
                self._show_logs()
                raise
            finally:
                self.cluster.stop()
        return self.result

    def _bring_up(self) -> None:
        a, b = self.stack.databases
        brokers = self.stack.kafka_brokers if self.relays else ""
        files = channel_files(a, b, self.stack.elasticsearch_url, brokers)
        for name, text in files.items():
            path = self.stack.folder / f"{name}.yaml"
            path.write_text(text)
            self.cluster.run("apply", str(path))
        self.watch = Watch(self.cluster, self.names)
        self.say("starting node n1, then n2 as its hot standby")
        self.cluster.start_node("n1", free_port())
        self.cluster.start_node("n2", free_port())
        if self.relays:
            self._start_relays()
        self.wait_for("both nodes to be warm", lambda: all(map(self._warm, ("n1", "n2"))), 120)
        check = self.cluster.run("check", str(self.stack.folder / "sites.yaml"))
        self.say(f"setl check: {check.stdout.strip().splitlines()[-1]}")
        for name in ("sites", "search"):
            self.cluster.run("start", name, "--no-wait")
        self.wait_for("all pipelines to run", lambda: self._running(self.names), 60)
        for name, view in self.watch.pipelines.items():
            first = "r1" if name in RELAYS else "n1"
            if view.leader != first:  # it was slow, and the preference is no guarantee
                self.cluster.run("switchover", name, "--to", first, "--yes")
        self.watch.start()

    def _start_relays(self) -> None:
        """Relays make the topics that all else reads, so they come first."""
        self.say("starting relay r1, then r2 as its hot standby")
        for nid in self.relays:
            self.cluster.start_relay(nid, free_port())
        self.wait_for("both relays to be ready", lambda: all(map(self._warm, self.relays)), 60)
        self.cluster.run("start", RELAY, "--no-wait")
        self.wait_for("the relays to run", lambda: self._running(RELAYS), 60)

    def _warm(self, nid: str) -> bool:
        status = self.cluster.status(nid)
        return bool(status and status["warm"] and status["contact"] == "connected")

    def _running(self, names: Sequence[str]) -> bool:
        self.watch.look()
        return all(self.watch.pipelines[name].state == "running" for name in names)

    def wait_for(self, what: str, condition: Callable[[], bool], limit: float) -> None:
        """Wait for a condition; TimeoutError says what for."""
        deadline = time.monotonic() + limit
        while not condition():
            self.watch.check()
            for nid, process in self.cluster.nodes.items():
                if not process.running and nid not in self._killed:
                    raise process.failure("ended while waiting for " + what)
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {limit:.0f} s for {what}")
            time.sleep(0.1)

    _killed: tuple[str, ...] = ()

    def _write_and_kill(self) -> None:
        a, b = self.stack.databases
        rate = self.options.rate
        self.writers = [
            SiteWriter(a, "a", rows_per_second=rate, seed=1),
            SiteWriter(b, "b", rows_per_second=rate, seed=2),
        ]
        self.probe = SearchProbe(self.stack.elasticsearch_url, a)
        self.probe.start()
        self.say(f"both sites write about {rate} rows a second")
        for writer in self.writers:
            writer.start()
        self._show_until(self.options.seconds * 0.35)
        self.say(f"site a writes a transaction of {LARGE_TRANSACTION:,} rows")
        self.writers[0].write_large(LARGE_TRANSACTION)
        self.writers[0].large_done.wait(60)
        before = self.watch.pipelines["sites/a-to-b"].total("rows_applied")
        limit = time.monotonic() + 30
        while (
            self.watch.pipelines["sites/a-to-b"].total("rows_applied") < before + 5_000
            and time.monotonic() < limit
        ):
            time.sleep(0.02)
        self._kill()
        self._show_until(self.options.seconds)
        for writer in self.writers:
            writer.stop()
        for writer in self.writers:
            writer.join(60)
            if writer.error is not None:
                raise writer.error
        self.say("both sites stopped writing")

    def _kill(self) -> None:
        """SIGKILL to whatever is active; the JVM and workers find out by themselves."""
        active = {"n1": "the active node"} | ({"r1": "the active relay"} if self.relays else {})
        self._killed = tuple(active)
        self.killed_at = time.time()
        for nid in active:
            os.kill(self.cluster.nodes[nid].pid, signal.SIGKILL)
        self.result.killed = " and ".join(active.values())
        self.result.kill_during = "while that transaction was being applied"
        names = " and ".join(f"{nid}, {what}," for nid, what in active.items())
        self.say(f"[bold]killed {names} with SIGKILL[/]; both sites go on writing")

    def _show_until(self, seconds: float) -> None:
        """Lines of progress until the writers have written for so long."""
        if not hasattr(self, "writing_since"):
            self.writing_since = time.monotonic()
        following = time.monotonic() + 5
        while time.monotonic() - self.writing_since < seconds:
            time.sleep(0.2)
            if time.monotonic() >= following:
                following += 5
                self._show_progress()

    def _show_progress(self) -> None:
        self.watch.check()
        written = ", ".join(f"{w.site} {w.written.rows:,}" for w in self.writers)
        applied = ", ".join(
            f"{name.partition('/')[2]} {view.total('rows_applied'):,} ({_where(view)})"
            for name, view in self.watch.pipelines.items()
        )
        self.say(f"written: {written}; applied: {applied}")

    def _wait_until_applied(self) -> None:
        """Wait until every pipeline has applied everything that was written."""
        self.written = {w.site: w.written for w in self.writers}
        self.say("waiting for the lag to reach zero")
        self.wait_for("both sites to be in step", self._sites_in_step, 90)
        end: Position = binlog_end(self.stack.databases[0])
        if self.relays:
            self.wait_for("the relay to be in step", lambda: self._is_past(f"{RELAY}/a", end), 90)
            end = topic_end(self.stack.kafka_brokers, topic_of("a"))
        self.wait_for(
            "the index to be in step", lambda: self._is_past("search/a-to-search", end), 90
        )
        self.probe.stop()
        self._show_progress()

    def _sites_in_step(self) -> bool:
        return all(
            self._figure(name, "rows_total") >= self.written[site].rows
            for name, site in (("sites/a-to-b", "a"), ("sites/b-to-a", "b"))
        )

    def _is_past(self, name: str, end: Position) -> bool:
        """Whether a pipeline has come to a position, which its figures write as text."""
        text = str(self._figure(name, "position"))
        if isinstance(end, KafkaPosition):
            return int(text.rpartition("@")[2] or 0) >= end.offset
        file, _, offset = text.rpartition(":")
        return bool(file) and BinlogPosition(file, int(offset)).order >= end.order

    def _figure(self, name: str, figure: str) -> Any:
        """A figure of the new leader; rows_total counts over all leaderships, each row once."""
        leader = "r2" if name in RELAYS else "n2"
        status = self.cluster.status(leader) or {"pipelines": []}
        for line in status["pipelines"]:
            if f"{line['channel']}/{line['pipeline']}" == name:
                return line["figures"][figure]
        return -1 if figure == "rows_total" else ""

    def _compare(self) -> None:
        a, b = self.stack.databases
        self.say("comparing all tables and documents on Spark (setl verify), auditing both binlogs")
        verified = self.cluster.run("verify", "sites", "search", "-o", "json", check=False)
        try:
            self.result.tables = json.loads(verified.stdout)
        except ValueError:
            raise RuntimeError(f"setl verify: {verified.stdout}{verified.stderr}") from None
        audits = {"b": audit(b, "b", binlog_end(b)), "a": audit(a, "a", binlog_end(a))}
        lags = {
            "sites/a-to-b": site_lags(b, "a"),
            "sites/b-to-a": site_lags(a, "b"),
            "search/a-to-search": self.probe.lags(),
        }
        for name in self.names:
            self.result.pipelines.append(self._result(name, audits, lags))

    def _result(
        self, name: str, audits: dict[str, Audit], lags: dict[str, list[float]]
    ) -> PipelineResult:
        view = self.watch.pipelines[name]
        last = view.epochs[max(view.epochs)]
        target = {"sites/a-to-b": "b", "sites/b-to-a": "a"}.get(name)
        if target is not None:
            written = self.written["a" if target == "b" else "b"].rows
        elif name in RELAYS:  # everything, whoever wrote it
            written = audits[name[-1]].by_table.total()
        else:  # the index gets what B wrote too, as it arrives at A
            written = audits["a"].by_table.total() - audits["a"].by_table["probe_b"]
        differing = [t for t in self.result.tables if t["pipeline"] == name]
        applied_at = last["first_applied_at"]
        seen = lags.get(name)
        return PipelineResult(
            pipeline=name,
            written=written,
            applied=int(self._figure(name, "rows_total")),
            redelivered=int(last["rows_redelivered"]) if target else None,
            loopback=view.total("rows_loopback"),
            failover_seconds=applied_at - self.killed_at if applied_at else None,
            lag_p50=view.lag_p50 if seen is None else percentile(seen, 0.5),
            lag_p99=view.lag_p99 if seen is None else percentile(seen, 0.99),
            differences=(None if name in RELAYS else sum(int(t["differences"]) for t in differing)),
            echoes=audits[target].echoes if target else None,
        )

    def _keep(self) -> None:
        a, b = self.stack.databases
        self.console.print(
            f"""
Everything is still running.

In a browser: {self.cluster.http["n2"]}/
  The first page lists what is wrong (n1 is dead) and both channels with their lag.
  Click a channel for its picture and charts. Log in with the token {self.cluster.token}
  to start, stop, switch over and verify: choose "sites", then "Verify".

In another terminal:
  export SETL_ZOOKEEPER={self.stack.zookeeper_hosts}
  export SHOP_A_PASSWORD={a.password} SHOP_B_PASSWORD={b.password}
  {self.cluster.setl} list                 # nodes, pipelines, who leads, lag
  {self.cluster.setl} status sites         # every figure of a channel
  {self.cluster.setl} verify sites search  # compare again
  {self._client()} -h127.0.0.1 -P{a.port} -u{a.user} -p$SHOP_A_PASSWORD shop   # site a
                                            # site b: port {b.port}, $SHOP_B_PASSWORD
  curl {self.stack.elasticsearch_url}/orders/_search?size=1
  curl {self.cluster.http["n2"]}/metrics
Logs and channel files: {self.stack.folder}
Ctrl-C stops everything.""",
            markup=False,
            highlight=False,
        )
        signal.pause()  # ended by an exception of the signal's handler

    def _client(self) -> str:
        """The command that opens a session on a site; MySQL's client is in the folder."""
        return (
            shlex.join(ServerHome.of_this_machine("mysql").program("mysql"))
            if self.options.mysql
            else "mariadb"
        )

    def _show_logs(self) -> None:
        for nid, process in self.cluster.nodes.items():
            self.console.rule(f"end of the log of {nid}")
            self.console.print(process.tail(), markup=False, highlight=False)


def _where(view: PipelineView) -> str:
    """Who leads a pipeline, its state if that is worth a word, and its lag."""
    state = [] if view.state == "running" else [view.state]
    lag = [] if view.lag is None else [f"lag {view.lag:.1f} s"]
    return ", ".join([view.leader, *state, *lag])
