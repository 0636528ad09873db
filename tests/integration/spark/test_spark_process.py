"""A process that starts Spark: it leaves nothing on the terminal, and no JVM and no file behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from setl.cli.terminal.interruption import EXIT_INTERRUPTED
from tests.unit.cli.cluster_in_memory import definition
from tests.waiting import eventually

_COMPARING = """
from setl.cli.rows.comparing import Comparer
from setl.cli.main import main
Comparer.compare = lambda self, *_, **__: [self._spark.session]
main()
"""


def javas_of(mark):
    """The JVMs that a process with a mark in its environment has started, whoever is their parent.

    Spark's launcher is one, too, before the one that it starts; it lives for a moment only.
    """
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if "java" in process.name() and process.environ().get("SETL_TEST_MARK") == mark:
                found.append((process, process.cmdline()))
    return found


def has_begun(mark, moment):
    """Whether a process with this mark is there; the launcher's arguments name the class, too."""
    commands = [" ".join(command) for _, command in javas_of(mark)]
    return any(f"org.apache.spark.{moment}" in command for command in commands) and not (
        moment != "launcher.Main" and any("launcher.Main" in command for command in commands)
    )


def at_moment(process, mark, moment):
    """The moment once it has come, "over" if the process has ended, None before."""
    if has_begun(mark, moment):
        return moment
    return None if process.poll() is None else "over"


@pytest.mark.parametrize("moment", ["launcher.Main", "deploy.SparkSubmit"])
def test_a_command_that_starts_spark_ends_and_its_jvm_with_it(tmp_path, moment):
    """The comparison needs Spark at once, so that no server is asked before."""
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(definition()))
    while True:
        mark = uuid.uuid4().hex
        process = subprocess.Popen(
            [sys.executable, "-c", _COMPARING, "verify", str(file), "--master", "local[1]"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "SETL_TEST_MARK": mark},
        )  # fmt: skip
        try:
            # The launcher lives for a moment: on a busy machine all may be over before it is seen.
            seen = eventually(
                lambda mark=mark, process=process: at_moment(process, mark, moment),
                60,
                interval=0.005,
            )
            process.send_signal(signal.SIGINT)
            reported, said = process.communicate(timeout=280)
        finally:
            process.kill()
        if seen != "over":
            break
    assert (process.returncode, reported, said) == (EXIT_INTERRUPTED, "", "interrupted\n")
    eventually(lambda: not javas_of(mark), 60)


_SESSION = """
import signal
from setl.log import configure_command
configure_command()
from setl.run.spark.session import SparkSettings, start_session
before = signal.getsignal(signal.SIGINT)
session = start_session(SparkSettings(master="local[1]", name="x", log_level="off"))
assert signal.getsignal(signal.SIGINT) is before
try:
    session.sparkContext.parallelize([1]).map(lambda n: 1 / 0).collect()
except Exception as error:
    print(type(error).__name__)
import os
from pathlib import Path
print(sorted(path.name[:8] for path in Path(os.environ["TMPDIR"]).iterdir()))
import sys
print("pandas" in sys.modules)
session.createDataFrame([(1,)], "n long").toPandas()
session.stop()
"""


def test_a_session_prints_nothing_leaves_no_files_and_imports_pandas_only_if_used():
    folder = Path("/tmp", f"j{os.getpid()} x")  # pytest's own is too long for sockets
    try:
        (folder / "setl-jvm-dead" / "blockmgr-1").mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", _SESSION],
            capture_output=True, text=True, timeout=180, check=False,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout == "PythonException\n['setl-jvm', 'setl-py-']\nFalse\n"
        assert done.returncode == 0
        eventually(lambda: not list(folder.iterdir()), 60)  # the JVM ends after the process
    finally:
        shutil.rmtree(folder)
