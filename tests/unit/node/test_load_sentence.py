import pytest

from setl.node.cluster.pipeline_texts import load_sentence


@pytest.mark.parametrize(
    ("size", "shown"),
    [(2_000_000, ", 2.0 MB/s"), (60_000, ", 0.1 MB/s"), (49_999, ""), (300, ""), (0, "")],
)
def test_a_rate_that_would_be_shown_as_nothing_is_left_out(size, shown):
    """The source's own figures of a table may be older than its rows."""
    load = {"state": "reading", "rows": 5, "rows_per_second": 100.0, "bytes_per_second": size}
    assert load_sentence(load) == f"5 rows, 100 rows/s{shown}"
