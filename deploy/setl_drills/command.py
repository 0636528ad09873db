"""The command `setl drill`, which setl finds through the entry point group ``setl.commands``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from setl_drills.extras import require_embedded
from setl_drills.interruption import interrupted_by_signals

if TYPE_CHECKING:
    from rich.console import Console

    from setl_drills.drill import Drill, DrillResult

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where servers, logs and results go. [default: a temporary folder]",
)
_KEEP = click.option("--keep", is_flag=True, help="Keep all logs, also of drills that passed.")
_JSON = click.option(
    "--json",
    "record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write everything that was seen to FILE.",
)
_SLACK = click.option(
    "--slack",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Seconds added to every bound on an outage, for machines that are busy with other work.",
)

_SITES = click.option(
    "--sites",
    # The keys of `setl_drills.world.SITES`, which is slow to import, see `_run`.
    type=click.Choice(["mariadb", "mysql", "mixed"]),
    default="mariadb",
    show_default=True,
    help="What the two sites are; mixed: A is MySQL, B is MariaDB."
    " MySQL is unpacked first by `deploy/install mysql`.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def drill() -> None:
    """Rehearse faults on own servers (list, run, soak, oracle).

    A drill starts real nodes and embedded servers, kills, freezes or cuts off something, and then
    checks everything: rows, sums, epochs, echoes, outages. Ctrl-C and SIGTERM stop the servers;
    logs stay.
    """
    require_embedded("drills")


@drill.command("list")
def list_() -> None:
    """List the drills."""
    from setl_drills.catalogue import CATALOGUE  # noqa: PLC0415 - slow, see `_run`
    from setl_drills.report import show_list  # noqa: PLC0415

    show_list(_console(), list(CATALOGUE.values()))


@drill.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME...|all")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, help="Run seeds 1 to N. [default: 1]"
)
@click.option("--seed", type=int, help="Run this seed only, to repeat what failed.")
@click.option(
    "--live",
    metavar="CHANNEL",
    help="Rehearse on this channel of the cluster that --zookeeper names, not on embedded servers;"
    " for harmless drills only.",
)
@click.option("-y", "--yes", is_flag=True, help="With --live: do not ask.")
@click.option(
    "--zookeeper",
    envvar="SETL_ZOOKEEPER",
    default="127.0.0.1:2181",
    help="With --live: ZooKeeper's addresses. [env: SETL_ZOOKEEPER]",
)
@click.option(
    "--root",
    envvar="SETL_ROOT",
    default="/setl",
    help="With --live: path in ZooKeeper. [env: SETL_ROOT]",
)
@_JSON
@_FOLDER
@_KEEP
@_SLACK
@_SITES
def run(  # noqa: PLR0917 - click passes options by name
    names: tuple[str, ...],
    seeds: int,
    seed: int | None,
    live: str | None,
    yes: bool,  # noqa: FBT001
    zookeeper: str,
    root: str,
    record: Path | None,
    **how: Any,
) -> None:
    """Run drills by NAME, or all of them. Exit status 0 only if all passed, else 1.

    Each drill starts its own servers on free ports of 127.0.0.1. Nothing else is touched, unless
    --live says so.
    """
    if live is not None:
        _run_live(names, live, record, yes=yes, zookeeper=zookeeper, root=root)
        return
    chosen = _chosen(names)
    numbers = [seed] if seed is not None else list(range(1, seeds + 1))
    _run(chosen, numbers, record, **how)


@drill.command()
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="How long faults follow each other.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Decides the faults.")
@_JSON
@_FOLDER
@_KEEP
@_SLACK
@_SITES
def soak(minutes: float, seed: int, record: Path | None, **how: Any) -> None:
    """Let random faults follow each other for minutes while both sites write.

    Memory, threads, file handles and connections of the nodes must stay flat, and nothing may
    hang. At the end everything is checked as after a drill.
    """
    from setl_drills.soak import soak_drill  # noqa: PLC0415 - slow, see `_run`

    _run([soak_drill(minutes)], [seed], record, **how)


@drill.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Decides everything.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="How long rounds follow each other.",
)
@click.option("--first", type=click.IntRange(min=1), default=1, help="Begin with this round.")
@click.option(
    "--adapters",
    is_flag=True,
    help="Not through a node: rows only, in this process, with batches cut anywhere and target"
    " tables that have other keys.",
)
@click.option(
    "--through",
    # The keys of `setl_drills.oracle.formats.LOST`.
    type=click.Choice(["dts", "debezium", "canal"]),
    help="Through a relay and a topic, in this format. Features that it loses are left out of the"
    " histories; `--without help` lists them.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="FEATURE",
    help="Leave a feature out of the histories; may be repeated. `help` lists them.",
)
@click.option(
    "--shrink",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to spend on the smallest history of what is wrong, and of each kind of stop.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run the history of a file that an earlier run has written, and nothing else.",
)
@_FOLDER
@_SITES
def oracle(
    *, minutes: float, adapters: bool, through: str | None, without: tuple[str, ...], **how: Any
) -> None:
    """Compare what setl makes of random histories with what the server's own replica makes of them.

    Sessions, tables, rows and schema changes are random. They go through a node and a channel with
    `ddl: pass` and `create: true`. Where source and replica have the same rows and the target has
    not, setl is wrong: the smallest history found is printed. Stops are counted by kind; then the
    tables are dropped, and the next round begins. Exit status 0: nothing was wrong; else 1. Repeat
    a round with --seed, --first and --minutes 0.
    """
    from setl_drills.oracle.definitions import FEATURES  # noqa: PLC0415 - slow, see `_run`
    from setl_drills.oracle.formats import LOST, left_out  # noqa: PLC0415
    from setl_embedded import EmbeddedError  # noqa: PLC0415

    if adapters and through:
        raise click.UsageError("--through needs a node; leave --adapters out")
    lost = LOST[through] if through else {}
    if unknown := set(without) - set(FEATURES):
        listed = "\n".join(
            f"  {name}: {text}"
            + (f" (not through {through}: {lost[name]})" if name in lost else "")
            for name, text in FEATURES.items()
        )
        raise click.BadParameter(
            f"no feature is called {', '.join(sorted(unknown))}; these are:\n{listed}",
            param_hint="--without",
        )
    click.get_current_context().with_resource(interrupted_by_signals())
    play = _play_adapters if adapters else _play_node
    try:
        wrong = play(
            _console(),
            seconds=minutes * 60,
            without=left_out(through or "", without),
            through=through or "",
            **how,
        )
    except EmbeddedError as error:
        raise click.ClickException(f"servers could not be started: {error}") from error
    if wrong:
        sys.exit(1)


def _play_adapters(
    console: Console,
    *,
    sites: str,
    seed: int,
    folder: Path | None,
    seconds: float,
    first: int,
    **_: Any,
) -> bool:
    from setl_drills.oracle.running import own_servers, play_for, summary  # noqa: PLC0415 - slow

    with own_servers(sites, seed, folder) as servers:
        rounds = play_for(servers, seed, seconds, _progress(console), first)
    console.print(summary(rounds), markup=False)
    return any(one.faults for one in rounds)


def _play_node(
    console: Console,
    *,
    sites: str,
    seed: int,
    folder: Path | None,
    seconds: float,
    first: int,
    without: frozenset[str],
    through: str,
    shrink: float,
    replay: Path | None,
) -> bool:
    from setl_drills.oracle import running  # noqa: PLC0415 - slow, see `_run`
    from setl_drills.oracle.definitions import Grammar  # noqa: PLC0415
    from setl_drills.oracle.node_rounds import NodeRounds  # noqa: PLC0415

    console.soft_wrap = True  # statements are long, and may be copied
    say, root = _progress(console), running.folder_of(folder)
    say(f"starting servers and a node in {root}")
    with running.own_world(sites, seed, root, through, without) as world:
        grammar = Grammar(world.mariadb, world.mixed, without)
        rounds = NodeRounds(world, seed, grammar, root / "histories")
        if replay is not None:
            outcome = rounds.replay(replay)
            if shrink and outcome.kind:
                outcome = rounds.smaller(outcome, shrink)
            say(running.as_text(outcome))
            return bool(outcome.wrong)
        tally = running.play_through_node(rounds, seconds, say, first=first, shrink=shrink)
    for line in tally.lines:
        console.print(line, markup=False)
    return bool(tally.wrong)


def _run(chosen: list[Drill], seeds: list[int], record: Path | None, **how: Any) -> None:
    """Run drills on servers of their own, and say what came of them; `how` is a `Runner`'s."""
    # Imported late: with them come Spark and the servers' clients, which `setl --help` need not
    # wait for.
    from setl_drills.runner import Runner  # noqa: PLC0415
    from setl_drills.waiting import DidNotHappenError  # noqa: PLC0415
    from setl_embedded import EmbeddedError  # noqa: PLC0415

    click.get_current_context().with_resource(interrupted_by_signals())
    console = _console()
    runner = Runner(say=_progress(console), done=lambda result: _say_done(console, result), **how)
    try:
        results = runner.run(chosen, seeds)
    except (EmbeddedError, DidNotHappenError) as error:
        raise click.ClickException(
            f"servers and nodes could not be started: {error}\nLogs: {runner.folder}"
        ) from error
    _conclude(console, results, record)


def _run_live(
    names: tuple[str, ...], channel: str, record: Path | None, *, yes: bool, **where: str
) -> None:
    """Rehearse on a live cluster, after explicit confirmation."""
    from setl_drills import live  # noqa: PLC0415 - slow, see `_run`

    if set(names) - set(live.HARMLESS):
        raise click.BadParameter(
            f"only {', '.join(live.HARMLESS)} may be run on a live cluster", param_hint="NAME"
        )
    command = live.setl_command({f"SETL_{name.upper()}": value for name, value in where.items()})
    try:
        pipelines = live.pipelines_of(channel, command)
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None
    moved = f"{', '.join(pipelines)} to another node and back"
    question = f"Hand {moved}, on the cluster {where['zookeeper']}?"
    if not yes and not click.confirm(question):
        raise click.Abort
    console = _console()
    _conclude(console, [live.switchover_live(channel, command, _progress(console))], record)


def _conclude(console: Console, results: list[DrillResult], record: Path | None) -> None:
    """Print and record results; the exit status is 1 unless all passed."""
    from setl_drills.report import show_results, write_json  # noqa: PLC0415 - slow, see `_run`

    show_results(console, results)
    if record is not None:
        write_json(record, results)
    if not all(result.passed for result in results):
        sys.exit(1)


def _chosen(names: tuple[str, ...]) -> list[Drill]:
    from setl_drills.catalogue import CATALOGUE  # noqa: PLC0415 - slow, see `_run`

    if "all" in names:
        return list(CATALOGUE.values())
    unknown = [name for name in names if name not in CATALOGUE]
    if unknown:
        raise click.BadParameter(
            f"no drill is called {', '.join(unknown)}; `setl drill list` lists them",
            param_hint="NAME",
        )
    return [CATALOGUE[name] for name in names]


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415

    return Console(highlight=False, width=None if sys.stdout.isatty() else 150)


def _progress(console: Console) -> Callable[[str], None]:
    started = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - started:7.1f} s  {text}", markup=False)

    return say


def _say_done(console: Console, result: DrillResult) -> None:
    verdict = "[green]passed[/]" if result.passed else "[red]FAILED[/]"
    console.print(
        f"           {result.drill}, seed {result.seed}: {verdict} in {result.seconds:.0f} s"
    )
