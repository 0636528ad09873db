from setl.bulk.comparison import spark_failure
from setl.errors import FatalError, TransientError

_TOLD = """
  An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in main
UnicodeDecodeError: 'ascii' codec can't decode byte 0x85 in position 0

\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_the_workers_own_message_is_reported():
    error = spark_failure(_TOLD.strip())
    assert isinstance(error, FatalError)
    assert "UnicodeDecodeError: 'ascii' codec can't decode byte 0x85" in error.message


def test_a_job_that_no_worker_speaks_of_may_be_tried_again():
    error = spark_failure("Job aborted\nand more")
    assert isinstance(error, TransientError)
    assert error.message == "the Spark job failed: Job aborted"
