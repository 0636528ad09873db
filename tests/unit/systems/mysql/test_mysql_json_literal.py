"""JSON documents as SQL: numbers that the server's parser would change go in as SQL numbers."""

import pytest

from setl.systems.mysql.load.json_literal import json_literal


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a": [1, -2.5, 18446744073709551615, -9223372036854775808], "b": "1.10"}',
        "1.0",
        "-0.0",
        '"1e400 and 0.30000000000000004"',
    ],
)
def test_text_that_the_server_reads_as_it_is(text):
    assert json_literal(text) == f"'{text}'"


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("1.10", ",'$',CAST('1.10' AS DECIMAL(3,2))"),
        ("[0, 1.50]", ",'$[1]',CAST('1.50' AS DECIMAL(3,2))"),
        ('{"a": {"b, c": [[], [0.30000000000000004]]}}',
         ",'$.\"a\".\"b, c\"[1][0]',0.30000000000000004e0"),
        ('{"x": "]", "y": 18446744073709551616}',
         ",'$.\"y\"',CAST('18446744073709551616' AS DECIMAL(20,0))"),
        ("1.7976931348623157e308", ",'$',1.7976931348623157e308"),
    ],
)  # fmt: skip
def test_numbers_that_are_put_in(text, replaced):
    assert json_literal(text) == f"JSON_REPLACE('{text}'{replaced})"


def test_quotes_and_backslashes_in_keys_and_text():
    quoted = r"""{"it\'s \\"k\\"": 1.10}"""
    path = r'$."it\'s \\"k\\""'
    found = json_literal("""{"it's \\"k\\"": 1.10}""")
    assert found == f"JSON_REPLACE('{quoted}','{path}',CAST('1.10' AS DECIMAL(3,2)))"


def test_a_number_that_mysql_has_not_is_refused():
    with pytest.raises(ValueError, match="more digits"):
        json_literal(f"[0.{'0' * 29}10]")
