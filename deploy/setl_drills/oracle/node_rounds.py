"""One round through a node: a history runs on the source; then all three servers are compared.

Where the source and its replica have the same rows and the target has others, without the pipeline
having stopped, setl is wrong. Where the pipeline has stopped and the replica went on, the round
says so; the operator's hint is taken, and the next round begins.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from setl_drills.oracle.comparison import Difference, count_rows, differences
from setl_drills.oracle.definitions import Grammar
from setl_drills.oracle.histories import History
from setl_drills.oracle.node_world import Applied, NodeWorld
from setl_drills.oracle.sessions import Step
from setl_drills.oracle.shapes import shapes_of
from setl_drills.oracle.shrinking import smallest

SCHEMA = "oracle_db"
"""What statements call the schema; each time they run it has another name."""
_MOVES = (10, 25, 40, 60)
_SELDOM_NEEDED = ("SET ", "setl ", ("BEGIN", "COMMIT", "SAVEPOINT", "ROLLBACK"), "UPDATE", "DELETE")
"""What is left out at once when a history is made smaller."""
_LOST = (2006, 2013, 1927)
_numbers = itertools.count(1)


@dataclass(slots=True)
class Outcome:
    """What came of a history.

    Attributes:
        options: what the schema was created with.
        steps: what was run, in order.
        refused: the source's error by the position of a step that it did not take.
        stopped: why the pipeline did not come to the end, None if it did.
        replica: the error that the replica has stopped with, or "".
        differences: in which the target differs from the source, and the replica does not.
        native: in which the replica differs, too.
        rows: how many rows of the source were compared.
    """

    options: str = ""
    steps: list[Step] = field(default_factory=list[Step])
    refused: dict[int, str] = field(default_factory=dict[int, str])
    stopped: Applied | None = None
    replica: str = ""
    differences: list[Difference] = field(default_factory=list[Difference])
    native: list[Difference] = field(default_factory=list[Difference])
    rows: int = 0

    @property
    def wrong(self) -> list[Difference]:
        """Differences of rows, tables and indexes: nothing has said that they are there."""
        return [d for d in self.differences if d.kind != "definition"]

    @property
    def kind(self) -> str:
        """What is to be looked at in it, without names and numbers; "" if all is well."""
        if self.stopped is not None:
            return f"{self.stopped.state}: {reason(self.stopped.error)}" if not self.replica else ""
        return ", ".join(sorted({d.kind for d in self.wrong} or {d.kind for d in self.differences}))

    @property
    def native_kind(self) -> str:
        """Why the replica is no oracle, without names and numbers; "" if it is one."""
        if self.replica:
            return f"stopped: {reason(self.replica)}"
        return ", ".join(sorted({d.kind for d in self.native}))

    @property
    def taken(self) -> list[Step]:
        """The steps that the source took."""
        return [step for at, step in enumerate(self.steps) if at not in self.refused]


def reason(text: str) -> str:
    """The first line of an error, without what differs from case to case."""
    line = re.split(r" \(pipeline|\. Make | \(table|\n", text.strip())[0]
    line = re.sub(r"/\*setl:\d+\*/ .*(?=: MySQL)|(?<=with error )(\d+): .*", r"\1 …", line)
    line = re.sub(r": (CREATE|ALTER|DROP|RENAME|TRUNCATE) .*", "", line)
    line = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\([^()]*\)", "…", line)
    line = re.sub(r"\b[\w$]+\.[\w$]+\b", "x.y", line)
    return re.sub(r"\d+", "N", line)[:200]


class NodeRounds:
    """Plays rounds in a world, and makes those smaller that have failed."""

    def __init__(self, world: NodeWorld, seed: int, grammar: Grammar, folder: Path) -> None:
        """Describe it.

        Args:
            world: where.
            seed: decides the histories, with each round's number.
            grammar: what they may have.
            folder: where they are written, each as it runs.
        """
        self._world = world
        self._seed = seed
        self._grammar = grammar
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def file(self, number: int) -> Path:
        """Where the history of a round is, for `replay`."""
        return self._folder / f"{self._seed}-{number}.jsonl"

    def play(self, number: int) -> Outcome:
        """Play a round."""
        chance = random.Random(f"{self._seed}.{number}")
        options = ""
        if self._grammar.has("charsets") and chance.random() < 0.5:
            charset, collation = self._grammar.collation(chance)
            options = f"CHARACTER SET {charset} COLLATE {collation}"
        count, wild = chance.choice(_MOVES), chance.random() < 0.4

        def steps(schema: str) -> Iterable[Step]:
            def look() -> dict[str, object]:
                return shapes_of(self._world.source, schema)  # pyright: ignore[reportReturnType]

            history = History(chance, self._grammar, SCHEMA, look, wild=wild)  # pyright: ignore[reportArgumentType]
            for move in itertools.islice(history.moves(), count):
                yield from move

        return self._run(options, steps, self.file(number))

    def replay(self, file: Path) -> Outcome:
        """Run what a file has, statement by statement."""
        options, steps = read_history(file)
        return self._run(options, lambda _: steps)

    def smaller(self, outcome: Outcome, seconds: float) -> Outcome:
        """A shorter history that fails in the same way; the same one if there is none."""
        best = outcome

        def fails(units: list[list[Step]]) -> bool:
            nonlocal best
            again = self._run(outcome.options, lambda _: itertools.chain(*units))
            if again.kind != outcome.kind:
                return False
            best = again
            return True

        units = _units(outcome.taken)
        if fails(units):
            for left_out in _SELDOM_NEEDED:
                rest = [unit for unit in units if not unit[0].sql.startswith(left_out)]
                if len(rest) < len(units) and fails(rest):
                    units = rest
            smallest(units, fails, seconds)
            write_history(self._folder / f"smallest-{next(_numbers)}.jsonl", best)
        return best

    def _run(
        self, options: str, steps: Callable[[str], Iterable[Step]], file: Path | None = None
    ) -> Outcome:
        world, outcome = self._world, Outcome(options)
        schema = f"oracle_{next(_numbers)}"
        world.make_schema(schema, options)
        with _Recorder(file, options) as recorder:
            self._send(schema, steps(schema), outcome, recorder)
        world.roll_back_prepared()
        world.resume()
        applied = world.wait_applied()
        outcome.replica = world.wait_replicated()
        if applied.state == "applied":
            self._compare(schema, outcome)
        else:
            outcome.stopped = applied
        if outcome.stopped or outcome.replica:
            world.give_up(schema)
        else:
            world.drop_schema(schema)
        return outcome

    def _send(
        self, schema: str, steps: Iterable[Step], outcome: Outcome, recorder: _Recorder
    ) -> None:
        charset, abandoned = "", False
        with (
            self._world.source.connect(database=schema) as connection,
            connection.cursor() as cursor,
        ):
            for step in steps:
                # A tool for online changes whose shadow is refused, or that warns of rows that it
                # could not copy as they are, copies and swaps nothing.
                abandoned = abandoned and step.joined
                if abandoned and step.sql.startswith(("INSERT", "RENAME")):
                    continue
                if step.charset != charset:
                    charset = step.charset
                    cursor.execute(f"SET NAMES {charset}")
                try:
                    if step.is_command:
                        self._command(step.sql, schema)
                    else:
                        cursor.execute(step.bytes.replace(SCHEMA.encode(), schema.encode()))
                        abandoned = abandoned or (_fills_shadow(step) and cursor.warning_count > 0)
                except (pymysql.MySQLError, RuntimeError) as error:
                    if error.args and error.args[0] in _LOST:
                        raise
                    outcome.refused[len(outcome.steps)] = str(error)
                    abandoned = abandoned or _fills_shadow(step)
                recorder.write(step, outcome.refused.get(len(outcome.steps), ""))
                outcome.steps.append(step)

    def _command(self, text: str, schema: str) -> None:
        _, command, *arguments = text.split()
        if command == "load":
            self._world.load(f"{schema}.{arguments[0]}")
        else:
            {"pause": self._world.pause, "resume": self._world.resume}[command]()

    def _compare(self, schema: str, outcome: Outcome) -> None:
        world = self._world
        outcome.rows = count_rows(world.source, schema)
        found = differences(world.source, world.target, schema, mixed=world.mixed)
        if found:
            # Tasks of one load commit in any order: once more, behind another mark.
            applied = world.wait_applied()
            if applied.state != "applied":
                outcome.stopped = applied
                return
            found = differences(world.source, world.target, schema, mixed=world.mixed)
        if found and not outcome.replica:
            tables = {d.table for d in differences(world.source, world.replica, schema)}
            outcome.native = [d for d in found if d.table in tables]
            found = [d for d in found if d.table not in tables]
        # A replica stops also where the source has other rows than it logs.
        outcome.differences = [] if outcome.replica else found


def _fills_shadow(step: Step) -> bool:
    """Whether a statement makes a shadow what shall replace the table."""
    words = step.sql.partition("_gho")[0].partition("_new")[0]
    return step.joined and words != step.sql and words.startswith(("ALTER", "INSERT"))


def _units(steps: list[Step]) -> list[list[Step]]:
    """The steps, those together that mean nothing alone."""
    units: list[list[Step]] = []
    for step in steps:
        if step.joined and units:
            units[-1].append(step)
        else:
            units.append([step])
    return units


class _Recorder:
    """Writes a history step by step, so that it is there whatever happens."""

    def __init__(self, file: Path | None, options: str) -> None:
        self._file = file.open("w", encoding="utf-8") if file else None
        self._line({"options": options})

    def write(self, step: Step, refused: str) -> None:
        entry = {"sql": step.sql, "charset": step.charset, "joined": step.joined}
        self._line({**entry, "refused": refused} if refused else entry)

    def _line(self, entry: dict[str, object]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            self._file.flush()

    def __enter__(self) -> _Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()


def write_history(file: Path, outcome: Outcome) -> None:
    """Write what was run, for `read_history`."""
    with _Recorder(file, outcome.options) as recorder:
        for at, step in enumerate(outcome.steps):
            recorder.write(step, outcome.refused.get(at, ""))


def read_history(file: Path) -> tuple[str, list[Step]]:
    """What a round has written: the schema's options, and the steps."""
    first, *lines = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
    return first["options"], [Step(line["sql"], line["charset"], line["joined"]) for line in lines]
