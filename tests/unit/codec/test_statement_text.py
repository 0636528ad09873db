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
