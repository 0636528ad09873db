"""The process that workers are forked from, as Spark starts it."""

import os
import struct
import subprocess
import sys

from setl.run.spark import worker_daemon

COMMAND = [sys.executable, "-m", worker_daemon.__name__, "pyspark.worker"]


def test_it_reports_its_port_and_ends_with_its_jvm():
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "s"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        (port,) = struct.unpack(">i", process.stdout.read(4))
        assert 0 < port < 65536
        process.stdin.close()
        process.wait(60)
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_one_whose_jvm_has_gone_says_nothing():
    """It would be a traceback in the log of a node that has said already what happened."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        COMMAND, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, timeout=280,
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "s"}, check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == b""
