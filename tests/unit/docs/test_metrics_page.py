"""Every metric and every kind of error is on the page about it, and nothing else is."""

import inspect
import re

from prometheus_client.core import CounterMetricFamily

from setl import errors
from setl.node.metrics import CONTACTS, STATES, NodeCollector
from setl.node.status import NodeStatus

from .pages import PAGES

METRICS = (PAGES / "monitoring.md").read_text(encoding="utf-8")
ERRORS = (PAGES / "troubleshooting.md").read_text(encoding="utf-8")


def first_cells(page, pattern):
    return set(re.findall(rf"^\| `({pattern})` \|", page, re.M))


def metrics():
    """The names that Prometheus sees."""
    status = NodeStatus("n1", "1", "connected", warm=True, started=0.0, pipelines=())
    for family in NodeCollector(lambda: status, lambda: 0.0).collect():
        counts = isinstance(family, CounterMetricFamily)
        yield f"{family.name}_total" if counts else family.name


def test_every_metric_is_there():
    named = set(metrics())
    assert len(named) > 25
    assert first_cells(METRICS, r"setl_\w+") == named


UNITS = {"seconds": "seconds", "bytes": "bytes", "ratio": "0 to 1", "rows": "rows"}
"""What a name ends with → what the page says."""


def test_every_metric_has_a_unit_that_agrees_with_its_name():
    units = dict(re.findall(r"^\| `(setl_\w+)` \| ([^|]+) \| [^|]+ \|$", METRICS, re.M))
    assert set(units) == set(metrics())
    for name, unit in units.items():
        ending = name.removesuffix("_total").rpartition("_")[2]
        assert unit == UNITS.get(ending, unit), name


def test_numbers_of_states_and_contacts_are_those_of_the_metrics():
    for number, name in [(n, s.value) for s, n in STATES.items()] + [
        (n, c) for c, n in CONTACTS.items()
    ]:
        assert f"{number} {name}" in METRICS


def test_every_kind_of_error_is_there():
    kinds = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.SetlError) and kind is not errors.SetlError
    }
    assert len(kinds) > 5
    assert first_cells(ERRORS, r"\w+Error") == kinds
