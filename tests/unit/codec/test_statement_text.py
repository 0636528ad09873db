"""Statements of sessions that do not send UTF-8."""

import pytest

from setl.codec.binlog.statements.statement_text import statement_text
from setl.codec.sql.tokens import Quoting


@pytest.mark.parametrize(
    ("said", "charset", "text"),
    [
        ("DEFAULT 'ä' COMMENT 'ü'".encode("cp1252"), "latin1", "DEFAULT 'ä' COMMENT 'ü'"),
        (b"(_latin1'\xe4\\n''\\'')", "latin1", "(_latin1 X'e40a2727')"),
        (b"(_utf8mb4 '\xc3\xa4', '\xe4')", "latin1", "(_utf8mb4  X'c3a4', 'ä')"),
        (b"(_utf8mb4'a\\n', '\xe4')", "latin1", "(_utf8mb4'a\\n', 'ä')"),
        ("(_gbk'中a国')".encode("gbk"), "gbk", "(_gbk X'd6d061b9fa')"),
        ("(_binary'𠀀中')".encode("gb18030"), "gb18030", "(_binary X'95328236d6d0')"),
        ("(_latin1'ä')".encode(), "utf8mb4", "(_latin1'ä')"),
    ],
)
def test_literals_whose_character_set_is_named_keep_their_bytes(said, charset, text):
    assert statement_text(said, charset, Quoting()) == text


def test_a_backslash_may_stand_for_itself():
    said = b"(_latin1'\\\xe4')"
    assert statement_text(said, "latin1", Quoting(no_backslash=True)) == "(_latin1 X'5ce4')"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"(N'\xc3\xa9', n'\xc3\xa9''\\'\\\\', '\xe9')", "(N'é', n'é''''\\\\', 'é')"),
        # Nothing but N right before single quotes is that.
        (b"(N'a', N '\xe9', N\"\xe9\", t.n, '\xe9')", "(N'a', N 'é', N\"é\", t.n, 'é')"),
        (b"(_utf8mb4'\xc3' '\xa9' 'a', '\xe9')", "(_utf8mb4 X'c3a961'  , 'é')"),
        (b"(N'a' '\xc3\xa9')", "(N'aé' )"),
    ],
)
def test_national_text_and_what_continues_a_literal_keep_their_bytes(said, text):
    assert statement_text(said, "latin1", Quoting()) == text


def test_what_continues_a_literal_is_in_the_character_set_of_the_connection():
    said = b"_utf8mb4'\xc3\xa9' '\xe9'"
    assert statement_text(said, "latin1", Quoting(), "utf8mb4") == "_utf8mb4 X'c3a9c3a9' "
    assert statement_text(b"N'\xc3\xa9' '\xe9'", "latin1", Quoting(), "utf8mb4") == "N'éé' "
    with pytest.raises(ValueError, match="continues a literal"):
        statement_text(said, "latin1", Quoting(), "cp1251")


def test_national_text_stores_backslashes_that_stand_for_themselves():
    said = b"N'\xc3\xa9\\'"
    assert statement_text(said, "latin1", Quoting(no_backslash=True)) == "N'é\\'"
