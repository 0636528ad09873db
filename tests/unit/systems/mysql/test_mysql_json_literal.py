"""JSON documents as SQL: numbers that the server's parser would change go in as SQL numbers."""

import pytest

from setl.model.json_text import ServerJson
from setl.systems.mysql.values.json_literal import json_literal


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
        ("[12345678901234567890123e-3]",
         ",'$[0]',CAST('12345678901234567890123e-3' AS DECIMAL(23,3))"),
        ("0.12345678901234567891e0",
         ",'$',CAST('0.12345678901234567891e0' AS DECIMAL(20,20))"),
    ],
)  # fmt: skip
def test_numbers_that_are_put_in(text, replaced):
    assert json_literal(text) == f"JSON_REPLACE('{text}'{replaced})"
    if "DECIMAL" in replaced:
        assert json_literal(text, exact=True) == json_literal(text)


@pytest.mark.parametrize(
    "text",
    [
        '[0.30000000000000004, {"a": -1.7976931348623157e308}]',
        "[0.000007560404125986253, 0.0000000000000018334403205899173, 5e-324]",
        "[123456789012345.6, -0.0, 1e15]",
    ],
)
def test_doubles_are_left_to_a_server_that_parses_exactly(text):
    assert json_literal(text, exact=True) == f"'{text}'"
    assert json_literal(text).startswith("JSON_REPLACE(")


@pytest.mark.parametrize(
    "text", ["[0.5, 1.10]", '{"a": 12345678901234567890123}', "[0.12345678901234567]"]
)
def test_decimals_are_put_in_whatever_the_server(text):
    assert json_literal(text, exact=True) == json_literal(text)
    assert "AS DECIMAL" in json_literal(text)


def test_a_document_of_which_the_numbers_are_known_is_not_looked_at():
    text = ServerJson("""["it's", 0.30000000000000004]""")
    assert json_literal(text, exact=True) == r"""'["it\'s", 0.30000000000000004]'"""
    assert json_literal(text) == json_literal(str(text))


def test_quotes_and_backslashes_in_keys_and_text():
    quoted = r"""{"it\'s \\"k\\"": 1.10}"""
    path = r'$."it\'s \\"k\\""'
    found = json_literal("""{"it's \\"k\\"": 1.10}""")
    assert found == f"JSON_REPLACE('{quoted}','{path}',CAST('1.10' AS DECIMAL(3,2)))"


def test_a_number_that_mysql_has_not_is_refused():
    with pytest.raises(ValueError, match="more digits"):
        json_literal(f"[0.{'0' * 29}10]")
