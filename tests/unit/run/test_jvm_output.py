"""What a JVM writes becomes lines of the log, each at the level that it is worth."""

import logging
import os

import pytest

from setl.run.spark.jvm_output import OUTPUT, SPARK, JvmOutput, level_of


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


def lines(caplog):
    """What the JVM has written; py4j logs whenever something of an earlier test is collected."""
    return [record for record in caplog.records if record.name in {SPARK, OUTPUT}]


def test_lines_of_sparks_log_keep_their_level_and_their_traceback(caplog):
    caplog.set_level(logging.DEBUG)
    output = JvmOutput()
    with output.writing() as end:
        os.write(end, b"spark ERROR Executor: it failed\\r\\njava.lang.Error: x\\n\tat a.b\\n\n")
        os.write(end, b"spark INFO SparkContext: Running\nhello\n\n")
        os.write(end, b"not UTF-8: \xff\n")
    assert output.last_lines().endswith("hello\nnot UTF-8: \ufffd")
    assert [(r.name, r.levelno, r.getMessage()) for r in lines(caplog)] == [
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
    shown = [(r.levelno, r.getMessage()) for r in lines(caplog)]
    assert [line for _, line in shown] == ["before", *filter(None, text.splitlines()), "after"]
    assert {at for at, line in shown if line in text} == {level}
    assert shown[0][0] == shown[-1][0] == logging.INFO
