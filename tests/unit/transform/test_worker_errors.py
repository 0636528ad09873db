"""What a Python worker raised, in the two forms in which Spark 4.3 tells of it."""

import pytest

from setl.errors import FatalError, TransientError
from setl.run.spark.errors import spark_error
from setl.transform.worker_errors import worker_error

OF_PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
    run_process()
    ^^^^^^^^^^^^^
{raised}"""
OF_JAVA = """An error occurred while calling o108.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was \
thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
    run_process()
{raised}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.PythonRunner$$anon$5.read(PythonRunner.scala:1642)
"""
CHAINED = """KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "tasks.py", line 7, in load
{raised}"""


@pytest.mark.parametrize("form", [OF_PYTHON, OF_JAVA, OF_PYTHON.format(raised=CHAINED)])
@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        ("ValueError: no\nsuch form", FatalError, "unexpectedly: ValueError: no"),
        ("AssertionError", FatalError, "unexpectedly: AssertionError"),
        ("MemoryError", TransientError, "failed: MemoryError"),
        ("OSError: [Errno 24] Too many open files", TransientError, "failed: OSError: [Errno 24]"),
        ("BrokenPipeError: [Errno 32] x", TransientError, "failed: BrokenPipeError"),
    ],
)
def test_what_a_worker_raised(form, raised, kind, message):
    text = form.format(raised=raised)
    for error in (worker_error(text), spark_error(RuntimeError(text), cancelled=False)):
        assert type(error) is kind
        assert message in str(error)


def test_what_no_worker_raised():
    assert worker_error("Job aborted due to stage failure") is None


def test_the_cause_is_reported_and_not_who_passed_it_on():
    text = OF_JAVA.partition("Caused by")[0] + "Caused by: java.lang.Error: stack\n\tat x"
    error = spark_error(RuntimeError(text), cancelled=False)
    assert isinstance(error, TransientError)
    assert error.message == "the Spark job failed: java.lang.Error: stack\n\tat x"
