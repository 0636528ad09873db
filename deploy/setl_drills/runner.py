"""Runs drills one after another in one world, and keeps what is worth keeping."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from pathlib import Path

from setl_drills.drill import Drill, DrillResult
from setl_drills.world import Needs, Say, World


class Runner:
    """Runs drills with seeds; a drill that raises has failed, and the next one goes on.

    Attributes:
        folder: where everything of this run lies.
        results: what came of the runs so far.
    """

    def __init__(
        self,
        *,
        say: Say,
        folder: Path | None = None,
        keep: bool = False,
        slack: float = 0.0,
        sites: str = "mariadb",
        done: Callable[[DrillResult], None] = lambda _: None,
    ) -> None:
        """Describe a run.

        Args:
            say: takes lines of progress.
            folder: None for a temporary one.
            keep: keep all logs, also of drills that passed.
            slack: seconds added to all bounds on outages.
            sites: a key of `setl_drills.world.SITES`.
            done: called with each result.
        """
        self.folder = folder or Path(tempfile.mkdtemp(prefix="setl-drills-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results: list[DrillResult] = []
        self._say = say
        self._keep = keep
        self._slack = slack
        self._sites = sites
        self._done = done

    def run(self, drills: Sequence[Drill], seeds: Sequence[int]) -> list[DrillResult]:
        """Run every drill with every seed; returns all results.

        Raises:
            EmbeddedError: a server or node did not start; the folder stays, with the logs.
            DidNotHappenError: the same, for nodes that did not get ready in time.
        """
        needs = reduce(or_, (drill.needs for drill in drills), Needs())
        with World(
            self.folder / "world", needs, say=self._say, slack=self._slack, sites=self._sites
        ) as world:
            for drill in drills:
                for seed in seeds:
                    self.run_one(world, drill, seed)
        self._tidy()
        return self.results

    def run_one(self, world: World, drill: Drill, seed: int) -> DrillResult:
        """Run one drill with one seed in a world that is there."""
        begun = time.monotonic()
        sizes = {nid: _size(node.log) for nid, node in world.processes.items()}
        try:
            result = drill.run(world, seed)
        except Exception as error:  # noqa: BLE001 - shown as the drill's failure
            result = DrillResult(drill.name, seed)
            result.problems.append(f"{type(error).__name__}: {error}")
            result.evidence["traceback"] = traceback.format_exc()
        result.seconds = time.monotonic() - begun
        if self._keep or not result.passed:
            result.folder = self._save_logs(world, result, sizes)
        self.results.append(result)
        self._done(result)
        return result

    def _save_logs(self, world: World, result: DrillResult, sizes: dict[str, int]) -> Path:
        """What the nodes logged during one drill, and its result."""
        folder = self.folder / f"{result.drill}-{result.seed}"
        folder.mkdir(exist_ok=True)
        for nid, node in world.processes.items():
            with node.log.open("rb") as file:
                file.seek(sizes[nid])
                (folder / f"{nid}.log").write_bytes(file.read())
        (folder / "result.json").write_text(json.dumps(result.to_json(), indent=2, default=str))
        return folder

    def _tidy(self) -> None:
        """Remove the servers' data, and everything if there is nothing to look at."""
        if self._keep:
            return
        shutil.rmtree(self.folder / "world", ignore_errors=True)
        if all(result.passed for result in self.results):
            shutil.rmtree(self.folder, ignore_errors=True)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
