"""The classes that Spark loads, in a file from which JVMs take them as they are.

Reading and checking them takes four of the eight seconds of processor time that a session's start
takes, and the tests start some fifty. Masters, workers and executors of clusters read it as well.
The file is made once for each Java and installed Spark, and kept in ``$XDG_CACHE_HOME/setl`` or
``~/.cache/setl``. Without it everything works alike, and takes longer.

Source: JDK 17, java(1), "-XX:ArchiveClassesAtExit" and "-XX:SharedArchiveFile".
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from setl_embedded.programs import java

_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the JVM that `spark-submit` starts; Spark has no setting of its
own that could say it from outside."""
_LIMIT_S = 240.0
_KEPT = 3
"""Files of other checkouts; each has 160 MB."""


def environment() -> dict[str, str]:
    """Variables with which sessions start from the file; it is made if there is none.

    Raises:
        RuntimeError: it could not be made; says what was printed.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "setl")
    folder.mkdir(parents=True, exist_ok=True)
    shown = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    known = f"{shown}{java()}{pyspark.__version__}{pyspark.__file__}{_jars()}"
    file = folder / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"
    with (folder / "spark-classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once would make two
        if not file.exists():
            _make(file)
            for old in sorted(folder.glob("spark-classes-*.jsa"), key=_age)[_KEPT:]:
                old.unlink()
    # What a JVM finds wrong with the file would stand before the JSON that commands print.
    quiet = "-Xlog:disable -Xlog:all=warning:stderr"
    return with_options(os.environ, f"-XX:SharedArchiveFile={file} {quiet}")


def _jars() -> list[tuple[str, int, int]]:
    """What a JVM compares with the file: it leaves one alone that was made with other jars."""
    found = sorted(Path(pyspark.__file__).parent.glob("jars/*.jar"))
    return [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in found]


def _age(file: Path) -> float:
    return -file.stat().st_mtime


def with_options(variables: Mapping[str, str], more: str) -> dict[str, str]:
    """The variable with further options beside those that are there."""
    return {_OPTIONS: f"{variables.get(_OPTIONS, '')} {more}".strip()}


def _make(file: Path) -> None:
    half = file.with_suffix(".half")
    half.unlink(missing_ok=True)
    variables = with_options(os.environ, f"-XX:ArchiveClassesAtExit={half}")
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode != 0 or not half.exists():
        raise RuntimeError(f"status {done.returncode}: {done.stdout[-2000:]}")
    half.rename(file)


def _load_everything() -> None:
    """Start a session, do what nodes do, and end its JVM in good order, which writes the file."""
    from pyspark import SparkContext

    from setl.run.runners.warming import warm, warm_queries
    from setl.run.spark.session import SparkSettings, start_session

    session = start_session(SparkSettings(master="local[2]", name="setl-classes"))
    warm(session.sparkContext)
    warm_queries(session)
    session.stop()
    gateway = vars(SparkContext)["_gateway"]
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_LIMIT_S)


if __name__ == "__main__":
    _load_everything()
