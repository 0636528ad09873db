"""Of which disk a node tells how full it is."""

import tempfile

import pytest

from setl.node.host.resources import look_at_disk


@pytest.mark.parametrize(
    ("variable", "configured", "looked_at"),
    [
        ("", "", "temporary"),
        ("", "/,/nowhere", "/"),
        ("/usr, /", "/nowhere", "/usr"),
        ("", "/nowhere", ""),
    ],
)
def test_it_is_the_one_that_spark_writes_to(variable, configured, looked_at):
    environment = {"SPARK_LOCAL_DIRS": variable} if variable else {}
    found = look_at_disk(environment, configured)
    assert found.folder == (tempfile.gettempdir() if looked_at == "temporary" else looked_at)
    assert (found.size > 0) == bool(found.folder)
