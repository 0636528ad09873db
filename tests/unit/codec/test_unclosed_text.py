"""Quotes and comments without their end: one token, however much follows."""

import pytest

from setl.codec.sql.tokens import Quoting, TokenKind, lexemes, literal_text, text_of, tokenize

PLAIN, ANSI = Quoting(), Quoting(ansi=True)
BARE = Quoting(no_backslash=True)


@pytest.mark.parametrize("count", [1 << 16, 1 << 18])
@pytest.mark.parametrize(
    ("begin", "more", "quoting", "kind"),
    [
        ("'", r"\'", PLAIN, TokenKind.TEXT),
        ('"', r"\"", PLAIN, TokenKind.TEXT),
        ("'", "''", PLAIN, TokenKind.TEXT),
        ("'", "''", BARE, TokenKind.TEXT),
        ("'", "\\\\", PLAIN, TokenKind.TEXT),
        ('"', '""', ANSI, TokenKind.NAME),
        ("`", "``", PLAIN, TokenKind.NAME),
        ("/*", " /*", PLAIN, TokenKind.COMMENT),
        ("/*", " * / ", PLAIN, TokenKind.COMMENT),
        ("/*M! ", "/*M! ", Quoting(mysql=True), TokenKind.COMMENT),
    ],
)
def test_it_is_read_once(begin, more, quoting, kind, count):
    """A lexer that looks for the end again behind each piece would take hours for this."""
    text = begin + more * count
    (token,) = lexemes(text, quoting)
    assert token == (kind, text, 0, len(text), False)


@pytest.mark.parametrize(("begin", "count"), [("--", 1 << 18), ("/*!", 1 << 16), ("-", 1 << 18)])
def test_what_has_no_end_of_its_own_is_read_once_too(begin, count):
    assert sum(len(token.text) for token in lexemes(begin * count)) == len(begin) * count


@pytest.mark.parametrize(
    ("text", "inside"), [("'it''s", "it's"), (r"'it\'", "it'"), ("'", ""), ("'a\\", "a\\")]
)
def test_its_text(text, inside):
    *_, token = tokenize(f"SELECT {text}")
    assert (token.kind, token.closed, text_of(token)) == (TokenKind.TEXT, False, inside)


def test_its_name():
    (token,) = tokenize("`a``b")
    assert (token.name, token.word, token.closed) == ("a`b", "", False)


def test_what_is_in_front_of_it_stays():
    tokens = tokenize("a 'b' `c` /* d */ e 'f /* g */")
    assert [token.text for token in tokens] == ["a", "'b'", "`c`", "e", "'f /* g */"]
    assert [token.closed for token in tokens] == [True] * 4 + [False]
    assert literal_text("a /*!80000 b */ 'c /*! d */") == "a          b    'c /*! d */"
