"""The options of a JVM's heap."""

import pytest

from setl.run.spark.jvm_heap import heap_options


@pytest.mark.parametrize("chosen", [(), ("",), ("-Dmine=1 -Xss4m", "-XX:+UseStringDeduplication")])
def test_the_serial_collector_is_the_default(chosen):
    assert "-XX:+UseSerialGC" in heap_options(chosen).split()


@pytest.mark.parametrize(
    "chosen", ["-XX:+UseG1GC", "-Dmine=1 -XX:+UseZGC", "-XX:+UseParallelGC -Dmine=1"]
)
def test_a_collector_that_is_chosen_stays_alone(chosen):
    """A JVM with two does not start."""
    assert "GC" not in heap_options(["", chosen])
