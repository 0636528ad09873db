"""A Spark session whose JVM runs out of memory: it ends, and that is noticed."""

import subprocess
import sys

# In a process of its own, which the JVM's end would end for all other tests.
_SCRIPT = """
import contextlib, threading
from py4j.protocol import Py4JError
from setl.node.engines.spark import SparkEngine
from setl.run.spark.session import SparkSettings

lost, ended = [], threading.Event()
engine = SparkEngine(
    SparkSettings(
        "local[1]",
        "memory",
        {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-Dmine=1 -Xss4m"},
    )
)
engine.start(lambda error: (lost.append(error), ended.set()), lambda: False)
gateway = engine._spark.context._gateway
say = gateway.jvm.java.lang.System.getProperty
assert say("mine") == "1", "an option of the user's is not there"
assert say("log4j2.configurationFile"), "an option of setl's is not there"
with contextlib.suppress(Py4JError, OSError):
    gateway.new_array(gateway.jvm.long, 1 << 28)  # 2 GiB
assert ended.wait(60), "nobody noticed"
print("lost:", lost[0].message)
engine.stop()
"""


def test_a_jvm_without_memory_ends_and_options_of_the_user_stand_beside_our_own():
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "java.lang.OutOfMemoryError" in done.stdout + done.stderr
    assert "lost: the Spark session's JVM ended with status 3" in done.stdout
