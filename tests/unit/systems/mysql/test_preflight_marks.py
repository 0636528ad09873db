"""Replication filters that keep marks from a replica."""

import pytest

from setl.systems.mysql.preflight.mark_logging import mark_filter


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ""),
        ({"replicate_do_db": None, "replicate_ignore_db": ""}, ""),
        ({"replicate_do_db": "shop,retl"}, ""),
        ({"replicate_do_db": "shop"}, "replicate_do_db"),
        ({"replicate_ignore_db": "mysql,retl"}, "replicate_ignore_db"),
        ({"replicate_ignore_db": "mysql"}, ""),
        # With a list of what passes, the other is not looked at.
        ({"replicate_do_db": "retl", "replicate_ignore_db": "retl"}, ""),
        ({"replicate_do_table": "retl.retl_mark"}, ""),
        ({"replicate_do_table": "shop.orders"}, "replicate_do_table"),
        ({"replicate_ignore_table": "retl.retl_mark"}, "replicate_ignore_table"),
        ({"replicate_wild_do_table": "shop.%,retl.%"}, ""),
        ({"replicate_wild_do_table": "shop.%"}, "replicate_wild_do_table"),
        ({"replicate_wild_do_table": r"retl.retl\_mark"}, ""),
        ({"replicate_wild_ignore_table": r"retl.retl\_%"}, "replicate_wild_ignore_table"),
        ({"replicate_wild_ignore_table": "retl.x%"}, ""),
        # The first rule that names it decides.
        ({"replicate_do_table": "retl.retl_mark", "replicate_wild_ignore_table": "retl.%"}, ""),
        ({"replicate_do_table": "a.b", "replicate_wild_do_table": "retl.%"}, ""),
    ],
)
def test_the_filter_that_leaves_marks_out_is_named(status, expected):
    assert mark_filter(status) == expected
