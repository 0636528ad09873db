import pytest

from setl.systems.mysql.identifiers import qualified, quote


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders", "`orders`"),
        ("a`b", "`a``b`"),
        ("`", "````"),
        ("a.b", "`a.b`"),
        ("été 😀", "`été 😀`"),
        ("x'; DROP", "`x'; DROP`"),
    ],
)
def test_a_name_in_backticks(name, text):
    assert quote(name) == text


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="not an identifier"):
        quote(name)


def test_a_table_with_its_schema():
    assert qualified("shop", "a`b") == "`shop`.`a``b`"
