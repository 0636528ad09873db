"""Which texts can stand between brackets as one SQL condition."""

import pytest

from setl.codec.sql.condition import condition_problem


@pytest.mark.parametrize(
    "text",
    [
        "id > 5",
        "(a = 1 OR b = 2) AND c IS NULL",
        "name = 'it''s (1) --' AND x <> \"a;b\"",
        "`odd)name` LIKE '50%'",
        "TRUE",
    ],
)
def test_conditions(text):
    assert condition_problem(text) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1) OR (1", "closes"),
        ("(a = 1", "open"),
        ("a = 1; DROP TABLE t", ";"),
        ("a = 1 -- rest", "comment"),
        ("a = 1 # rest", "comment"),
        ("a = 1 /* rest", "comment"),
        ("a /*!50000 ) OR 1 */ = 1", "executes"),
        ("name = 'open", "has a ' without its end"),
        ("name = 'open\\'", "has a ' without its end"),
        ('name = "open', 'has a " without its end'),
        ("`name = 1", "has a ` without its end"),
        ("  ", "empty"),
        ("()", "empty"),
    ],
)
def test_what_is_none(text, problem):
    found = condition_problem(text)
    assert problem in found
    assert bool(found) == bool(problem)
