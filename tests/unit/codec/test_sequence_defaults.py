"""Defaults that take numbers of a sequence, wherever they stand in a statement."""

import pytest

from setl.codec.sql.sequence_defaults import sequence_defaults
from setl.codec.sql.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a INT DEFAULT nextval(`s`) COMMENT 'x'", [("DEFAULT nextval(`s`)", ("", "s"))]),
        ("a INT DEFAULT NEXT VALUE FOR d.s NOT NULL", [("DEFAULT NEXT VALUE FOR d.s", ("d", "s"))]),
        ("a INT DEFAULT (1 + nextval(d.s)), b INT", [("DEFAULT (1 + nextval(d.s))", ("d", "s"))]),
        ("a INT DEFAULT (next value for s + 1)", [("DEFAULT (next value for s + 1)", ("", "s"))]),
        ("a INT DEFAULT PREVIOUS VALUE FOR s", [("DEFAULT PREVIOUS VALUE FOR s", ("", "s"))]),
        ("a INT DEFAULT s.nextval, b INT", [("DEFAULT s.nextval", ("", "s"))]),
        ("a INT DEFAULT d.s.currval", [("DEFAULT d.s.currval", ("d", "s"))]),
        ("a INT DEFAULT 1, b INT DEFAULT LASTVAL(s)", [("DEFAULT LASTVAL(s)", ("", "s"))]),
        ("a INT DEFAULT 1, b TEXT DEFAULT 'nextval(s)', nextval INT", []),
        (
            "a INT DEFAULT (`nextval` + 1), FOREIGN KEY (a) REFERENCES p (a) ON DELETE SET DEFAULT",
            [],
        ),
        ("a INT DEFAULT", []),
    ],
)
def test_each_is_found_with_its_sequences(text, found):
    tokens = tokenize(text)
    defaults = list(sequence_defaults(tokens))
    texts = [text[tokens[d.start].start : tokens[d.end - 1].end] for d in defaults]
    assert [(t, *d.sequences) for t, d in zip(texts, defaults, strict=True)] == found
