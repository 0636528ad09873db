"""Executors that come late, lack something, or whose cluster ends the session."""

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from setl.errors import ConfigurationError, TransientError
from setl.run.spark import executors
from setl.run.spark.executors import ContextWatch, _Seen, check_executors, wait_for_executors
from setl.run.spark.session import SparkGone
from tests.waiting import eventually


def context(**options) -> Any:
    """A SparkContext of a cluster.

    Args:
        options: `executors`, a function; `stopped`, a function; `seen`, what tasks return, or
            raise.
    """

    def collect():
        if isinstance(options["seen"], Exception):
            raise options["seen"]
        return options["seen"]

    def answer(name):
        found = options[name]()
        if isinstance(found, Exception):
            raise found
        return found

    tracker = SimpleNamespace(getExecutorInfos=lambda: [0] * (1 + answer("executors")))
    java = SimpleNamespace(statusTracker=lambda: tracker, isStopped=lambda: answer("stopped"))
    jobs = SimpleNamespace(map=lambda _: SimpleNamespace(collect=collect))
    return SimpleNamespace(
        master="spark://m:7077", defaultParallelism=2, parallelize=lambda *_: jobs,
        _jsc=SimpleNamespace(sc=lambda: java),
    )  # fmt: skip


class Time:
    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def monotonic(self):
        return self.now


def test_executors_are_waited_for_and_it_is_said_now_and_then(caplog):
    time = Time()
    late = context(executors=lambda: 1 if time.now > 70 else 0)
    assert wait_for_executors(late, lambda: False, sleep=time.sleep, monotonic=time.monotonic)
    assert 70 < time.now < 71
    assert caplog.messages == ["Spark gives this node no executors"] * 2
    assert "spark.cores.max" in caplog.records[0].setl["hint"]


def test_nobody_waits_when_the_node_is_to_end():
    time = Time()
    never = context(executors=lambda: Py4JError("stopped"))
    done = wait_for_executors(
        never, lambda: time.now > 5, sleep=time.sleep, monotonic=time.monotonic
    )
    assert not done
    assert time.now < 6


def seen(host, **versions):
    return _Seen(host, "3.11", {**executors._look().versions, **versions})


def test_executors_that_have_everything_pass_in_silence(caplog):
    check_executors(context(seen=[seen("a"), seen("b")]))
    assert caplog.messages == []


def test_what_an_executor_lacks_is_named():
    with pytest.raises(ConfigurationError, match="on b lacks fastavro, PyMySQL") as caught:
        check_executors(context(seen=[seen("a"), seen("b", PyMySQL=None, fastavro=None)]))
    assert "--archives" in caught.value.hint


def test_other_versions_are_reported_and_do_no_harm(caplog):
    with caplog.at_level(logging.WARNING):
        check_executors(context(seen=[seen("a"), seen("b", pyarrow="1.0")]))
    (record,) = caplog.records
    assert record.setl["host"] == "b"
    assert record.setl["worker"] == "pyarrow 1.0"


@pytest.mark.parametrize(
    "text",
    [
        'Caused by: java.io.IOException: Cannot run program "./environment/bin/python": error=2',
        "  File x\npyspark.errors: [PYTHON_VERSION_MISMATCH] Python in worker has different v",
        "    import pyarrow\nModuleNotFoundError: No module named 'pyarrow'\n\n",
    ],
)
def test_a_python_that_is_not_the_right_one(text):
    with pytest.raises(ConfigurationError, match="cannot run setl's tasks") as caught:
        check_executors(context(seen=RuntimeError(text)))
    assert "PYSPARK_PYTHON" in caught.value.hint


def test_other_failures_are_what_they_are():
    with pytest.raises(TransientError):
        check_executors(context(seen=RuntimeError("Job 1 cancelled")))


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(executors, "_LOOK_SECONDS", 0.02)


def test_a_session_that_the_cluster_ends_is_reported_once(quick):
    reported, ended = [], threading.Event()
    watch = ContextWatch(context(stopped=ended.is_set), reported.append)
    watch.start()
    threading.Event().wait(0.1)
    assert reported == []
    ended.set()
    eventually(lambda: reported)
    watch._thread.join(60)
    (error,) = reported
    assert isinstance(error, SparkGone)
    assert "Spark has ended this node's session" in str(error)


def test_a_jvm_that_does_not_answer_is_not_taken_for_one(quick):
    reported, asked = [], []

    def fail():
        asked.append(1)
        return Py4JError("gone")

    watch = ContextWatch(context(stopped=fail), reported.append)
    watch.start()
    eventually(lambda: len(asked) > 2)
    watch.stop()
    watch._thread.join(60)
    assert reported == []
