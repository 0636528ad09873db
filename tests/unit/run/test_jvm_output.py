"""What a JVM writes becomes lines of the log, each at the level that it is worth."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from setl.run.jvm_output import OUTPUT, SPARK, JvmOutput, level_of
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector", logging.DEBUG),
        ("Picked up JAVA_TOOL_OPTIONS: -Xshare:auto", logging.DEBUG),
        ("Terminating due to java.lang.OutOfMemoryError: Java heap space", logging.ERROR),
        ("# A fatal error has been detected by the Java Runtime Environment:", logging.ERROR),
        ("Error: Could not create the Java Virtual Machine.", logging.ERROR),
        ("whatever user code prints", logging.INFO),
    ],
)
def test_the_level_of_a_line(line, level):
    assert level_of(line) == level


def test_lines_of_sparks_log_keep_their_level_and_their_traceback(caplog):
    caplog.set_level(logging.DEBUG)
    output = JvmOutput()
    with output.writing() as end:
        os.write(end, b"spark ERROR Executor: it failed\\r\\njava.lang.Error: x\\n\tat a.b\\n\n")
        os.write(end, b"spark INFO SparkContext: Running\nhello\n\n")
        os.write(end, b"not UTF-8: \xff\n")
    assert output.last_lines().endswith("hello\nnot UTF-8: \ufffd")
    assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
        (SPARK, logging.ERROR, "Executor: it failed\njava.lang.Error: x\n\tat a.b"),
        (SPARK, logging.INFO, "SparkContext: Running"),
        (OUTPUT, logging.INFO, "hello"),
        (OUTPUT, logging.INFO, "not UTF-8: \ufffd"),
    ]


_FLUSH = """PySpark daemon failed to flush the output to the worker process:
Traceback (most recent call last):
  File "/x/lib/pyspark/daemon.py", line 91, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe

"""
_FORK = """Traceback (most recent call last):
  File "/x/pyspark.zip/pyspark/daemon.py", line 255, in manager
    outfile.flush()
    ^^^^^^^^^^^^^^^
ConnectionResetError: [Errno 104] Connection reset by peer
"""
_USER = """Traceback (most recent call last):
  File "/x/mine.py", line 3, in f
    pipe.write("x")
BrokenPipeError: [Errno 32] Broken pipe
"""
_DEFECT = """Traceback (most recent call last):
  File "/x/lib/pyspark/daemon.py", line 80, in worker
    import_module(name)
ModuleNotFoundError: No module named 'mine'
"""


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (_FLUSH, logging.DEBUG),
        (_FORK, logging.DEBUG),
        (_USER, logging.INFO),
        (_DEFECT, logging.INFO),
        ("Traceback (most recent call last):\n", logging.INFO),
    ],
)
def test_a_worker_that_nobody_listens_to_any_more_is_no_news(caplog, text, level):
    caplog.set_level(logging.DEBUG)
    output = JvmOutput()
    with output.writing() as end:
        os.write(end, b"before\n" + text.encode() + b"after\n")
    output.last_lines()
    shown = [(r.levelno, r.getMessage()) for r in caplog.records]
    assert [line for _, line in shown] == ["before", *filter(None, text.splitlines()), "after"]
    assert {at for at, line in shown if line in text} == {level}
    assert shown[0][0] == shown[-1][0] == logging.INFO


_SESSION = """
import signal
from setl.log import configure_command
configure_command()
from setl.run.spark_session import SparkSettings, start_session
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
session.stop()
"""


def test_a_session_writes_nothing_to_the_terminal_and_leaves_no_files():
    folder = Path("/tmp", f"j{os.getpid()} x")  # pytest's own is too long for sockets
    (folder / "setl-jvm-dead" / "blockmgr-1").mkdir(parents=True)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _SESSION],
            capture_output=True, text=True, timeout=180, check=False,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout == "PythonException\n['setl-jvm', 'setl-py-']\n"
        assert done.returncode == 0
        eventually(lambda: not list(folder.iterdir()))  # the JVM ends after the process
    finally:
        shutil.rmtree(folder)
