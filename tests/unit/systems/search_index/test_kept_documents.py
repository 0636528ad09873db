"""What is said of an index that may lose what it has taken."""

import pytest

from setl.systems.finding import Report
from setl.systems.search_index.preflight.indexes import check_durability


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, []),
        ({"translog": {"durability": "request", "sync_interval": "5s"}}, []),
        ({"translog": {"durability": "ASYNC"}}, ["documents-not-flushed"]),
        ({"translog.durability": "async"}, ["documents-not-flushed"]),
    ],
)
def test_documents_that_are_not_flushed(settings, said):
    report = Report("here")
    check_durability("orders", settings, report)
    assert [finding.code for finding in report.findings] == said
