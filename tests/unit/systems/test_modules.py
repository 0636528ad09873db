"""Which systems a stored channel names."""

import sys
from importlib import import_module

import pytest

from setl.systems.modules import modules_of

ELASTICSEARCH = "setl.systems.elasticsearch.target_system"
MYSQL = "setl.systems.mysql.source_system"
SOURCE = {"type": "mysql"}


@pytest.mark.parametrize(
    ("pipelines", "named"),
    [
        ([{"source": SOURCE, "target": {"type": "elasticsearch"}}], {MYSQL, ELASTICSEARCH}),
        ([3, {"source": [], "target": {"type": []}}, {"source": SOURCE}], {MYSQL}),
        ("nonsense", set()),
    ],
)
def test_the_modules_of_sources_and_targets(pipelines, named):
    assert modules_of({"pipelines": pipelines}) == named
    for module in named:
        import_module(module)
        assert module in sys.modules
