"""What a process does when the JVM of its Spark session has ended."""

import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from setl.errors import FatalError, TransientError
from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.run.loads import job as job_module
from setl.run.loads.job import LoadJob
from setl.run.spark import errors as spark_errors
from setl.run.spark.errors import start_error
from setl.run.spark.session import JvmWatch, SparkGone, jvm_exit
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index.load.sink import IndexSinkSettings
from tests.waiting import eventually

TICKET = LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0)


@pytest.fixture
def jvm(monkeypatch):
    """A process instead of the JVM."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    yield process
    process.kill()
    process.wait()


class Context:
    """A SparkContext of which every call ends in the same way."""

    def __init__(self, call):
        self._call = call

    def getConf(self):  # noqa: N802 - as Spark spells it
        return {}

    def __getattr__(self, name):
        return self._call


def refuse(*_args, **_options):
    raise ConnectionRefusedError(111, "Connection refused")


def load_job(call) -> LoadJob:
    spark: Any = SimpleNamespace(context=Context(call))
    plan: Any = SimpleNamespace(codec="binlog", router=SimpleNamespace(decides=False))
    sink = IndexSinkSettings(ElasticEndpoint(("http://127.0.0.1:1",)))
    return LoadJob(spark, name="shop/orders", epoch=7, plan=plan, sink=sink, rows_per_task=10)


@pytest.fixture
def plain_replace(monkeypatch):
    monkeypatch.setattr(job_module, "replace", lambda value, **_: value)
    monkeypatch.setattr(job_module, "parallelism", lambda _: 1)


def test_without_a_jvm_of_its_own_nothing_is_known(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert jvm_exit() is None
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=None))
    assert jvm_exit(1.0) is None


def test_the_end_of_the_jvm_is_reported_once_with_how_it_ended(jvm):
    reported = []
    watch = JvmWatch(reported.append)
    watch.start()
    assert jvm_exit() is None
    jvm.send_signal(signal.SIGKILL)
    eventually(lambda: reported)
    assert jvm_exit() == -9
    assert isinstance(reported[0], SparkGone)
    assert "was ended by signal 9" in str(reported[0])
    threading.Event().wait(1.2)
    assert len(reported) == 1


def test_a_jvm_that_is_ended_on_purpose_is_not_reported(jvm):
    reported = []
    watch = JvmWatch(reported.append)
    watch.start()
    watch.stop()
    jvm.kill()
    watch._thread.join(60)
    assert not watch._thread.is_alive()
    assert reported == []


def test_an_end_that_is_under_way_is_waited_for_but_not_for_long(jvm):
    assert jvm_exit(0.2) is None
    threading.Timer(0.3, jvm.kill).start()
    assert jvm_exit(30) == -9


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "no"), EOFError(), Py4JNetworkError("no")]
)
def test_a_load_without_a_jvm_fails_for_good(jvm, plain_replace, error):
    def fail(*_args, **_options):
        raise error

    jvm.kill()
    with pytest.raises(SparkGone):
        load_job(fail).run([], TICKET, 0)
    with pytest.raises(SparkGone):
        load_job(fail).activity()


def test_a_connection_to_a_living_jvm_that_breaks_is_tried_again(jvm, plain_replace, monkeypatch):
    monkeypatch.setattr(spark_errors, "_JVM_END_SECONDS", 0.1)
    with pytest.raises(TransientError):
        load_job(refuse).run([], TICKET, 0)


def test_a_load_that_was_cancelled_before_it_began_does_not_begin(jvm, plain_replace, monkeypatch):
    jobs = []
    job = load_job(lambda *_args, **_options: jobs.append(1))
    monkeypatch.setattr(job, "_ways", SimpleNamespace(run=lambda *_: jobs.append("began")))
    job.cancel()
    with pytest.raises(TransientError, match="cancelled"):
        job.run([], TICKET, 0)
    assert "began" not in jobs


def test_cancelling_without_a_jvm_harms_nobody(jvm, caplog):
    jvm.kill()
    job = load_job(refuse)
    job.cancel()
    eventually(lambda: "a load could not be cancelled" in caplog.messages)


def test_cancelling_does_not_wait_for_a_jvm_that_hangs(jvm):
    gate = threading.Event()
    job = load_job(lambda *_: gate.wait(30))
    done = threading.Thread(target=job.cancel, daemon=True)
    done.start()
    done.join(20)
    assert not done.is_alive()
    gate.set()


def test_a_jvm_that_dies_while_a_session_starts_is_gone(jvm):
    jvm.kill()
    jvm.wait()
    reported = start_error(Py4JNetworkError("Answer from Java side is empty"))
    assert isinstance(reported, SparkGone)
    assert "was ended by signal 9" in str(reported)


def test_a_jvm_that_ends_before_it_can_be_asked_is_gone(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", None)
    reported = start_error(
        PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    )
    assert isinstance(reported, SparkGone)
    assert "before it was ready" in str(reported)
    assert isinstance(start_error(FileNotFoundError("spark-submit")), SparkGone)


def test_another_failure_of_a_start_is_reported_in_one_line(jvm):
    reported = start_error(ValueError("no such master\n  at org.apache.spark\n  at java.lang"))
    assert isinstance(reported, FatalError)
    assert reported.message == "the Spark session could not be started: no such master"


def test_a_start_on_a_full_disk_says_where_to_make_room():
    reported = start_error(OSError(28, "No space left on device"))
    assert "No space left" in reported.message
    assert reported.hint.startswith("Free space")
